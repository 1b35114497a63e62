/** Conformance: change requests. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { Events } from "../../src/store/port.ts";
import { ChangeRequests } from "../../src/store/change-requests.ts";
import { addProject, makeWorld, NOON, type Check, type World } from "./store-fixture.ts";

const newest = { limit: 10, cursor: null } as const;
/**
 * Follows a project with so many requests. @returns what reads its events from there on, to the opening of the request with
 * this number.
 */
const follow = Effect.fnUntraced(function* (projectId: string, known: number) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ projectId, sessionId: null, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (last: number) =>
    // A commit shows when no older transaction runs on the server, be it another test's: readers look again.
    Effect.repeat(read(cursor), {
      until: ({ events }) =>
        events.some(({ type, data }) => type === "change_request.opened" && data["number"] === last),
      schedule: Schedule.spaced("10 millis"),
    }).pipe(
      // An opening from before may show only now, where another transaction of the server held it back.
      Effect.map(({ events }) =>
        events.filter(({ type, data }) => type !== "change_request.opened" || Number(data["number"]) > known),
      ),
      Effect.map((events) => events.map(({ type, at, data }) => [type, at, data])),
    );
});

const SIDES = { base: "b1", head: "h1" } as const;

const request = (world: World, fields: { readonly headRef: string; readonly now?: number }) => ({
  id: randomUUID(),
  projectId: world.projectId,
  sessionId: null,
  baseRef: "main",
  title: "Add a button",
  description: "",
  createdBy: world.userId,
  now: NOON,
  ...fields,
});

export const checkChangeRequests = (check: Check): void => {
  describe("change requests", () => {
    check(
      "are numbered from 1 in each project, without gaps, one open one a branch",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, list } = yield* ChangeRequests;
        const first = yield* open(request(world, { headRef: "one" }));
        expect(first).toMatchObject({ number: 1, status: "open", createdAt: NOON, updatedAt: NOON });
        expect(first).toMatchObject({ mergeSides: null, merged: null });
        const taken = yield* Effect.flip(open(request(world, { headRef: "one" })));
        expect(taken).toMatchObject({ _tag: "Taken", what: "one" });
        const second = yield* open(request(world, { headRef: "two", now: NOON + 1 }));
        expect(second.number).toBe(2);
        const other = { ...world, projectId: yield* addProject(world) };
        expect((yield* open(request(other, { headRef: "one" }))).number).toBe(1);
        expect(yield* get(world.projectId, 2)).toEqual(second);
        expect(yield* get(world.projectId, 3)).toBe(null);
        const page = yield* list(world.projectId, { ...newest, status: "open" });
        expect(page.items.map(({ number }) => number)).toEqual([2, 1]);
        expect((yield* list(world.projectId, { ...newest, status: "merged" })).items).toEqual([]);
      }),
    );

    check(
      "are merged once: when, by whom and what, with one event in the same transaction",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, list, beginMerge, recordMerge } = yield* ChangeRequests;
        const { projectId } = world;
        const events = yield* follow(projectId, 0);
        const opened = yield* open(request(world, { headRef: "one" }));
        const other = yield* open(request(world, { headRef: "two" }));
        expect(yield* beginMerge(projectId, 1, { base: "b0", head: "h0" })).toBe(true);
        expect(yield* get(projectId, 1)).toEqual({ ...opened, mergeSides: { base: "b0", head: "h0" } });
        expect(yield* beginMerge(projectId, 1, SIDES)).toBe(true);
        const merge = { ...SIDES, commit: "m1", by: world.userId, now: NOON + 5 };
        const merged = {
          ...opened,
          status: "merged",
          mergeSides: SIDES,
          merged: { commit: "m1", at: NOON + 5, by: world.userId },
          updatedAt: NOON + 5,
        };
        expect(yield* recordMerge(projectId, 1, merge)).toEqual(merged);
        const again = { base: "b9", head: "h9", commit: "m9", by: world.userId, now: NOON + 9 };
        expect(yield* recordMerge(projectId, 1, again)).toEqual(merged);
        expect(yield* beginMerge(projectId, 1, { base: "b9", head: "h9" })).toBe(false);
        expect(yield* get(projectId, 1)).toEqual(merged);
        expect(yield* get(projectId, 2)).toEqual(other);
        expect((yield* list(projectId, { ...newest, status: "merged" })).items).toEqual([merged]);
        yield* open(request(world, { headRef: "last", now: NOON + 10 }));
        expect(yield* events(3)).toEqual([
          ["change_request.opened", NOON, { number: 1, status: "open" }],
          ["change_request.opened", NOON, { number: 2, status: "open" }],
          ["change_request.merged", NOON + 5, { number: 1, status: "merged" }],
          ["change_request.opened", NOON + 10, { number: 3, status: "open" }],
        ]);
      }),
    );

    check(
      "are closed once, and a merged one stays merged",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, beginMerge, recordMerge, close } = yield* ChangeRequests;
        const { projectId } = world;
        const opened = yield* open(request(world, { headRef: "one" }));
        yield* open(request(world, { headRef: "two" }));
        const events = yield* follow(projectId, 2);
        const closed = { ...opened, status: "closed", updatedAt: NOON + 5 };
        expect(yield* close(projectId, 1, NOON + 5)).toEqual(closed);
        expect(yield* close(projectId, 1, NOON + 6)).toEqual(closed);
        expect(yield* beginMerge(projectId, 1, SIDES)).toBe(false);
        expect(yield* get(projectId, 1)).toEqual(closed);
        const merge = { ...SIDES, commit: "m1", by: world.userId, now: NOON + 7 };
        const merged = yield* recordMerge(projectId, 2, merge);
        expect(merged?.status).toBe("merged");
        expect(yield* close(projectId, 2, NOON + 8)).toEqual(merged);
        // The branch is free for another one.
        expect((yield* open(request(world, { headRef: "one", now: NOON + 9 }))).number).toBe(3);
        expect(yield* events(3)).toEqual([
          ["change_request.closed", NOON + 5, { number: 1, status: "closed" }],
          ["change_request.merged", NOON + 7, { number: 2, status: "merged" }],
          ["change_request.opened", NOON + 9, { number: 3, status: "open" }],
        ]);
      }),
    );

    check(
      "become merged where git was quicker than whoever closed them",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, beginMerge, recordMerge, close } = yield* ChangeRequests;
        const { projectId } = world;
        yield* open(request(world, { headRef: "one" }));
        yield* beginMerge(projectId, 1, SIDES);
        yield* close(projectId, 1, NOON + 1);
        // The branch has its next request when git's answer comes.
        const next = yield* open(request(world, { headRef: "one", now: NOON + 2 }));
        const merge = { ...SIDES, commit: "m1", by: world.userId, now: NOON + 3 };
        expect(yield* recordMerge(projectId, 1, merge)).toMatchObject({ number: 1, status: "merged" });
        expect(next.status).toBe("open");
      }),
    );

    check(
      "that are not there are neither merged nor closed",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, beginMerge, recordMerge, close } = yield* ChangeRequests;
        const events = yield* follow(world.projectId, 0);
        const opened = yield* open(request(world, { headRef: "one" }));
        const elsewhere = yield* addProject(world);
        const merge = { ...SIDES, commit: "m1", by: world.userId, now: NOON };
        for (const [projectId, number] of [
          [world.projectId, 2],
          [elsewhere, 1],
          [randomUUID(), 1],
        ] as const) {
          expect(yield* beginMerge(projectId, number, SIDES)).toBe(false);
          expect(yield* recordMerge(projectId, number, merge)).toBe(null);
          expect(yield* close(projectId, number, NOON)).toBe(null);
        }
        expect(yield* get(world.projectId, 1)).toEqual(opened);
        yield* open(request(world, { headRef: "last" }));
        const types = (yield* events(2)).map(([type]) => type);
        expect(types).toEqual(["change_request.opened", "change_request.opened"]);
      }),
    );

    check(
      "that many merge and close at once have one fate, and one event of it",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, beginMerge, recordMerge, close } = yield* ChangeRequests;
        const { projectId } = world;
        yield* open(request(world, { headRef: "one" }));
        yield* beginMerge(projectId, 1, SIDES);
        const events = yield* follow(projectId, 1);
        const merges = [1, 2, 3, 4].map((n) =>
          recordMerge(projectId, 1, { ...SIDES, commit: `m${n}`, by: world.userId, now: NOON + n }),
        );
        const closes = [5, 6, 7, 8].map((n) => close(projectId, 1, NOON + n));
        yield* Effect.all([...merges, ...closes], { concurrency: "unbounded" });
        expect((yield* get(projectId, 1))?.status).toBe("merged");
        yield* open(request(world, { headRef: "last" }));
        const told = (yield* events(2)).map(([type]) => type);
        // A close that came first counts until the merge is recorded, and is told of.
        expect([
          ["change_request.merged", "change_request.opened"],
          ["change_request.closed", "change_request.merged", "change_request.opened"],
        ]).toContainEqual(told);
      }),
    );
  });
};
