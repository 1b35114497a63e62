/** Conformance: change requests. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { Events } from "../../src/store/ports/events.ts";
import { ChangeRequests } from "../../src/store/ports/change-requests.ts";
import { type Check } from "./store-fixture.ts";
import { addProject, makeWorld, NOON, type World } from "../support/world/world.ts";

const newest = { limit: 10, cursor: null } as const;
/**
 * Follows a project that has this many requests. @returns a function that reads its later events, up to the opening of
 * the request with this number.
 */
const follow = Effect.fnUntraced(function* (projectId: string, known: number) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ projectId, sessionId: null, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (last: number) =>
    // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
    Effect.repeat(read(cursor), {
      until: ({ events }) =>
        events.some(({ type, data }) => type === "change_request.opened" && data["number"] === last),
      schedule: Schedule.spaced("10 millis"),
    }).pipe(
      // An earlier opening may become visible only now, if another transaction on the server delayed it.
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
  tips: { base: "b0", head: "h0" },
  now: NOON,
  ...fields,
});

export const checkChangeRequests = (check: Check): void => {
  describe("change requests", () => {
    check(
      "are numbered from 1 in each project, without gaps, at most one open for each branch",
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
      "are merged once: with the time, the user and the commit, and one event in the same transaction",
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
      "have a pull request at a code host: open and possible ones are found, the one that ended first is first",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, close, withPulls, recordPull, recordMerge } = yield* ChangeRequests;
        const { projectId } = world;
        const other = { ...world, projectId: yield* addProject(world) };
        yield* open(request(other, { headRef: "one" }));
        for (const headRef of ["one", "two", "three", "four"]) yield* open(request(world, { headRef }));
        const numbers = (limit = 10) =>
          Effect.map(withPulls(projectId, limit), (found) => found.map(({ number }) => number));
        const pull = { status: "open", number: 7, url: "https://code.example.org/7" } as const;
        yield* recordPull(projectId, 2, { status: "wanted" });
        yield* recordPull(projectId, 3, pull);
        expect((yield* get(projectId, 1))?.pull).toBe(null);
        expect((yield* get(projectId, 2))?.pull).toEqual({ status: "wanted" });
        expect((yield* get(projectId, 3))?.pull).toEqual(pull);
        const merge = { ...SIDES, commit: "m1", by: null, now: NOON + 5 };
        expect(yield* recordMerge(projectId, 3, merge)).toMatchObject({ merged: { by: null }, pull });
        yield* close(projectId, 2, NOON + 5);
        yield* close(projectId, 1, NOON + 5);
        expect([yield* numbers(), yield* numbers(2)]).toEqual([
          [2, 3, 4],
          [2, 3],
        ]);
        yield* recordPull(projectId, 2, null);
        yield* recordPull(projectId, 3, { ...pull, status: "merged" });
        expect([yield* numbers(), (yield* get(projectId, 2))?.pull]).toEqual([[4], null]);
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
        // The branch is free for another request.
        expect((yield* open(request(world, { headRef: "one", now: NOON + 9 }))).number).toBe(3);
        expect(yield* events(3)).toEqual([
          ["change_request.closed", NOON + 5, { number: 1, status: "closed" }],
          ["change_request.merged", NOON + 7, { number: 2, status: "merged" }],
          ["change_request.opened", NOON + 9, { number: 3, status: "open" }],
        ]);
      }),
    );

    check(
      "become merged if git was quicker than the user who closed them",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, beginMerge, recordMerge, close } = yield* ChangeRequests;
        const { projectId } = world;
        yield* open(request(world, { headRef: "one" }));
        yield* beginMerge(projectId, 1, SIDES);
        yield* close(projectId, 1, NOON + 1);
        // The branch has its next request when git's answer arrives.
        const next = yield* open(request(world, { headRef: "one", now: NOON + 2 }));
        const merge = { ...SIDES, commit: "m1", by: world.userId, now: NOON + 3 };
        expect(yield* recordMerge(projectId, 1, merge)).toMatchObject({ number: 1, status: "merged" });
        expect(next.status).toBe("open");
      }),
    );

    check(
      "that do not exist are neither merged nor closed",
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
      "tell their readers the tips of their branches, each change once and while they are open",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, close, noteTips } = yield* ChangeRequests;
        const { projectId } = world;
        const opened = yield* open(request(world, { headRef: "one" }));
        const events = yield* follow(projectId, 1);
        const told = [
          { base: "b0", head: "h0" }, // as they were opened
          { base: "b1", head: "h0" },
          { base: "b1", head: "h0" },
          { base: "b1", head: null },
        ];
        for (const [n, tips] of told.entries()) yield* noteTips(projectId, 1, { tips, now: NOON + n });
        expect(yield* get(projectId, 1)).toEqual({ ...opened, tips: { base: "b1", head: null } });
        yield* close(projectId, 1, NOON + 5);
        for (const number of [1, 2]) yield* noteTips(projectId, number, { tips: SIDES, now: NOON + 6 });
        expect((yield* get(projectId, 1))?.tips).toEqual({ base: "b1", head: null });
        yield* open(request(world, { headRef: "last", now: NOON + 7 }));
        const updated = { number: 1, status: "open", base_commit: "b1" };
        expect(yield* events(2)).toEqual([
          ["change_request.updated", NOON + 1, { ...updated, head_commit: "h0" }],
          ["change_request.updated", NOON + 3, { ...updated, head_commit: null }],
          ["change_request.closed", NOON + 5, { number: 1, status: "closed" }],
          ["change_request.opened", NOON + 7, { number: 2, status: "open" }],
        ]);
      }),
    );

    check(
      "are found while they are open: by their branch, and one page after another",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, close, openOf, allOpen } = yield* ChangeRequests;
        const { projectId } = world;
        const other = { ...world, projectId: yield* addProject(world) };
        const c = yield* open(request(world, { headRef: "c" }));
        const a = yield* open(request(world, { headRef: "a" }));
        yield* open(request(world, { headRef: "b" }));
        const elsewhere = yield* open(request(other, { headRef: "a" }));
        yield* close(projectId, 3, NOON);
        expect(yield* openOf(projectId, "a")).toEqual(a);
        expect(yield* openOf(projectId, "b")).toBe(null);
        expect(yield* openOf(randomUUID(), "a")).toBe(null);
        expect(yield* allOpen({ projectId, after: null, limit: 9 })).toEqual([a, c]);
        expect(yield* allOpen({ projectId, after: null, limit: 1 })).toEqual([a]);
        expect(yield* allOpen({ projectId, after: a, limit: 1 })).toEqual([c]);
        expect(yield* allOpen({ projectId, after: c, limit: 1 })).toEqual([]);
        const projects: readonly string[] = [projectId, other.projectId].toSorted();
        const last = { projectId: projects[0] ?? "", headRef: "b" };
        const rest = yield* allOpen({ projectId: null, after: last, limit: 1000 });
        const ours = rest.filter((found) => projects.includes(found.projectId));
        expect(ours).toEqual(projects[0] === projectId ? [c, elsewhere] : [a, c]);
      }),
    );

    check(
      "that are merged and closed concurrently get one result, and one event for it",
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
        // A close that came first counts until the merge is recorded, and has its event.
        expect([
          ["change_request.merged", "change_request.opened"],
          ["change_request.closed", "change_request.merged", "change_request.opened"],
        ]).toContainEqual(told);
      }),
    );
  });
};
