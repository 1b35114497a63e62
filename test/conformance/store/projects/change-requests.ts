/** Conformance: change requests. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Schedule from "effect/Schedule";
import { changeRequest } from "../../../../src/machines/change-request.ts";
import { Events } from "../../../../src/store/ports/events.ts";
import { ChangeRequests } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { type Check } from "../fixture.ts";
import { tellRequest } from "../../../support/world/change-requests.ts";
import { admitSession } from "../../../support/world/sessions.ts";
import { addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

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

/** The four steps of a merge, the last one at `now`. */
const mergeAt = Effect.fnUntraced(function* (id: string, by: string | null, now: number) {
  yield* tellRequest(id, { type: "merge.requested", by, message: null });
  yield* tellRequest(id, { type: "sides.noted", sides: SIDES, at: NOON });
  yield* tellRequest(id, { type: "merged.in_git", sides: SIDES, commit: "m1" });
  yield* tellRequest(id, { type: "manifest.read" }, now);
});
const closeAt = (id: string, now: number) => tellRequest(id, { type: "close.requested" }, now);

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
        const { open, get, byId, list, memory } = yield* ChangeRequests;
        const { projectId, userId } = world;
        const events = yield* follow(projectId, 0);
        const opened = yield* open(request(world, { headRef: "one" }));
        const other = yield* open(request(world, { headRef: "two" }));
        const { id } = opened;
        yield* tellRequest(id, { type: "merge.requested", by: userId, message: null }, NOON + 1);
        yield* tellRequest(id, { type: "sides.noted", sides: SIDES, at: NOON }, NOON + 2);
        // Clients see an open request until the merge has ended.
        expect(yield* get(projectId, 1)).toEqual({ ...opened, mergeSides: SIDES });
        expect((yield* memory.load(id))?.snapshot.state).toBe("merging");
        yield* tellRequest(id, { type: "merged.in_git", sides: SIDES, commit: "m1" }, NOON + 3);
        yield* tellRequest(id, { type: "manifest.read" }, NOON + 5);
        const merged = {
          ...opened,
          status: "merged",
          mergeSides: SIDES,
          merged: { commit: "m1", at: NOON + 5, by: userId },
          updatedAt: NOON + 5,
        };
        expect(yield* get(projectId, 1)).toEqual(merged);
        expect(yield* byId(id)).toEqual(merged);
        expect(yield* closeAt(id, NOON + 9)).toBe(null);
        expect(yield* get(projectId, 2)).toEqual(other);
        expect((yield* list(projectId, { ...newest, status: "merged" })).items).toEqual([
          { ...merged, reviewAsked: null },
        ]);
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
        const { open, get, byPull, findMerged, withPulls, recordPull } = yield* ChangeRequests;
        const { projectId } = world;
        const other = { ...world, projectId: yield* addProject(world) };
        yield* open(request(other, { headRef: "one" }));
        const ids: string[] = [];
        for (const headRef of ["one", "two", "three", "four"])
          ids.push((yield* open(request(world, { headRef }))).id);
        const [first = "", second = "", third = ""] = ids;
        const numbers = (limit = 10) =>
          Effect.map(withPulls(projectId, limit), (found) => found.map(({ number }) => number));
        const pull = { status: "open", number: 7, url: "https://a.example/7" } as const;
        yield* recordPull(projectId, 2, { status: "wanted" });
        yield* recordPull(projectId, 3, pull);
        expect([(yield* get(projectId, 1))?.pull, yield* byPull(other.projectId, 7)]).toEqual([null, null]);
        expect((yield* get(projectId, 2))?.pull).toEqual({ status: "wanted" });
        expect([(yield* get(projectId, 3))?.pull, (yield* byPull(projectId, 7))?.number]).toEqual([pull, 3]);
        yield* mergeAt(third, null, NOON + 5);
        expect(yield* get(projectId, 3)).toMatchObject({ merged: { by: null }, pull });
        const merged = (project: string, headRef: string, rest: { baseRef?: string; before?: number } = {}) =>
          Effect.map(
            findMerged(project, { headRef, baseRef: "main", ...rest }),
            (found) => found?.number ?? null,
          );
        expect([
          yield* merged(projectId, "three"),
          yield* merged(projectId, "two"),
          yield* merged(other.projectId, "three"),
          yield* merged(projectId, "three", { baseRef: "next" }),
          yield* merged(projectId, "three", { before: 3 }),
          yield* merged(projectId, "three", { before: 4 }),
        ]).toEqual([3, null, null, null, null, 3]);
        yield* closeAt(second, NOON + 5);
        yield* closeAt(first, NOON + 5);
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
        const { open, get } = yield* ChangeRequests;
        const { projectId } = world;
        const opened = yield* open(request(world, { headRef: "one" }));
        const second = yield* open(request(world, { headRef: "two" }));
        const events = yield* follow(projectId, 2);
        const closed = { ...opened, status: "closed", updatedAt: NOON + 5 };
        yield* closeAt(opened.id, NOON + 5);
        expect(yield* get(projectId, 1)).toEqual(closed);
        expect(yield* closeAt(opened.id, NOON + 6)).toBe(null);
        expect(
          yield* tellRequest(opened.id, { type: "merge.requested", by: world.userId, message: null }),
        ).toBe(null);
        expect(yield* get(projectId, 1)).toEqual(closed);
        yield* mergeAt(second.id, world.userId, NOON + 7);
        expect(yield* closeAt(second.id, NOON + 8)).toBe(null);
        expect((yield* get(projectId, 2))?.status).toBe("merged");
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
      "that are closed become merged when the code host merges them",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, memory } = yield* ChangeRequests;
        const { projectId } = world;
        const { id } = yield* open(request(world, { headRef: "one" }));
        yield* closeAt(id, NOON + 1);
        // The branch has its next request when the host tells.
        const next = yield* open(request(world, { headRef: "one", now: NOON + 2 }));
        yield* tellRequest(id, { type: "pull.merged", sides: SIDES, commit: "m1" });
        expect((yield* memory.load(id))?.snapshot.state).toBe("merging");
        expect((yield* get(projectId, 1))?.status).toBe("closed");
        yield* tellRequest(id, { type: "manifest.read" }, NOON + 3);
        expect(yield* get(projectId, 1)).toMatchObject({
          status: "merged",
          mergeSides: SIDES,
          merged: { commit: "m1", at: NOON + 3, by: null },
        });
        expect(next.status).toBe("open");
      }),
    );

    check(
      "are listed by the session whose work they propose, however many others the project has",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, list } = yield* ChangeRequests;
        const sessionId = yield* admitSession(world);
        const own = yield* open({ ...request(world, { headRef: "own" }), sessionId });
        yield* open(request(world, { headRef: "later", now: NOON + 1 }));
        const listed = (wish: { readonly status: string | null }) =>
          Effect.map(
            list(world.projectId, { limit: 1, cursor: null, sessionId, ...wish }),
            ({ items, nextCursor }) => [...items.map(({ id }) => id), nextCursor],
          );
        expect(yield* listed({ status: null })).toEqual([own.id, null]);
        expect(yield* listed({ status: "merged" })).toEqual([null]);
      }),
    );

    check(
      "that are refused a merge are open, and lose its commits if git surely did not merge",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, memory } = yield* ChangeRequests;
        const { projectId, userId } = world;
        const opened = yield* open(request(world, { headRef: "one" }));
        const { id } = opened;
        const refusal = { because: "conflict", paths: ["a.txt"] } as const;
        for (const isSure of [false, true]) {
          yield* tellRequest(id, { type: "merge.requested", by: userId, message: null });
          yield* tellRequest(id, { type: "sides.noted", sides: SIDES, at: NOON });
          yield* tellRequest(id, { type: "merge.refused", refusal, isSure }, NOON + 5);
          expect(yield* get(projectId, 1)).toEqual({ ...opened, mergeSides: isSure ? null : SIDES });
          expect((yield* memory.load(id))?.snapshot).toMatchObject({ state: "open", context: { refusal } });
        }
      }),
    );

    check(
      "wake readers of their project when a merge begins and when it is refused",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open } = yield* ChangeRequests;
        const { changed } = yield* Events;
        const { id } = yield* open(request(world, { headRef: "one" }));
        const refusal = { because: "no_changes" } as const;
        for (const event of [
          { type: "merge.requested", by: world.userId, message: null },
          { type: "merge.refused", refusal, isSure: true },
        ] as const) {
          const news = yield* Effect.forkScoped(changed(world.projectId), { startImmediately: true });
          yield* tellRequest(id, event);
          yield* Fiber.join(news);
        }
      }).pipe(Effect.scoped),
    );

    check(
      "keep their actor's commands until they are done, and are unsettled as long",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, memory, unsettled } = yield* ChangeRequests;
        const { id } = yield* open(request(world, { headRef: "one" }));
        const other = yield* open(request(world, { headRef: "two" }));
        const loaded = yield* memory.load(id);
        expect(loaded).toMatchObject({ snapshot: changeRequest.start({}).snapshot, version: 1 });
        expect(loaded?.pending.map(({ command }) => command)).toEqual([{ type: "mirrorPull" }]);
        const event = { type: "merge.requested", by: world.userId, message: null } as const;
        const saved = yield* tellRequest(id, event);
        expect(saved?.version).toBe(2);
        expect(saved?.pending.map(({ command }) => command)).toEqual([{ type: "noteSides", former: null }]);
        const pending = (yield* memory.load(id))?.pending ?? [];
        expect(pending.map(({ command }) => command.type)).toEqual(["mirrorPull", "noteSides"]);
        const ids = pending.map((entry) => entry.id);
        // Another request's commands are not its own to complete.
        yield* memory.complete(other.id, ids);
        expect((yield* memory.load(id))?.pending).toEqual(pending);
        const left = Effect.map(unsettled, (all) => new Set(all.map((actor) => actor.id)));
        const isUnsettled = Effect.map(left, (all) => [id, other.id].map((one) => all.has(one)));
        expect(yield* isUnsettled).toEqual([true, true]);
        yield* memory.complete(id, [...ids, "not-an-id"]);
        expect((yield* memory.load(id))?.pending).toEqual([]);
        expect(yield* isUnsettled).toEqual([false, true]);
      }),
    );

    check(
      "refuse a writer that read an earlier version, and write no part of it [I18]",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, memory } = yield* ChangeRequests;
        const { projectId } = world;
        const { id } = yield* open(request(world, { headRef: "one" }));
        const loaded = yield* memory.load(id);
        if (loaded === null) return yield* Effect.die("not there");
        yield* tellRequest(id, { type: "merge.requested", by: world.userId, message: null });
        const event = { type: "close.requested" } as const;
        const late = changeRequest.step(loaded.snapshot, event);
        const change = {
          id,
          version: loaded.version,
          event,
          before: loaded.snapshot,
          after: late.snapshot,
          commands: late.commands,
          completes: loaded.pending[0]?.id ?? null,
          now: NOON,
        };
        expect((yield* Effect.flip(memory.save(change)))._tag).toBe("Fenced");
        expect((yield* get(projectId, 1))?.status).toBe("open");
        const pending = (yield* memory.load(id))?.pending ?? [];
        expect(pending.map(({ command }) => command.type)).toEqual(["mirrorPull", "noteSides"]);
      }),
    );

    check(
      "that do not exist have no memory and no record",
      Effect.gen(function* () {
        const { memory, byId, get } = yield* ChangeRequests;
        const world = yield* makeWorld(3);
        const strange = randomUUID();
        expect([yield* memory.load(strange), yield* byId(strange)]).toEqual([null, null]);
        expect(yield* get(world.projectId, 1)).toBe(null);
      }),
    );

    check(
      "tell their readers the tips of their branches, each change once and while they are open",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { open, get, noteTips } = yield* ChangeRequests;
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
        yield* closeAt(opened.id, NOON + 5);
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
        const { open, findOpen, allOpen } = yield* ChangeRequests;
        const { projectId } = world;
        const other = { ...world, projectId: yield* addProject(world) };
        const c = yield* open(request(world, { headRef: "c" }));
        const a = yield* open(request(world, { headRef: "a" }));
        const b = yield* open(request(world, { headRef: "b" }));
        const elsewhere = yield* open(request(other, { headRef: "a" }));
        yield* closeAt(b.id, NOON);
        expect(yield* findOpen(projectId, "a")).toEqual(a);
        expect(yield* findOpen(projectId, "b")).toBe(null);
        expect(yield* findOpen(randomUUID(), "a")).toBe(null);
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
        const { open, get } = yield* ChangeRequests;
        const { projectId } = world;
        const { id } = yield* open(request(world, { headRef: "one" }));
        yield* tellRequest(id, { type: "merge.requested", by: world.userId, message: null });
        yield* tellRequest(id, { type: "merged.in_git", sides: SIDES, commit: "m1" });
        const events = yield* follow(projectId, 1);
        const writers = [1, 2, 3, 4].flatMap((n) => {
          const read = tellRequest(id, { type: "manifest.read" }, NOON + n);
          return [read, closeAt(id, NOON + n)];
        });
        // One of them is first; the others are fenced or refused.
        const all = writers.map((writer) => Effect.ignore(writer));
        yield* Effect.all(all, { concurrency: "unbounded" });
        expect((yield* get(projectId, 1))?.status).toBe("merged");
        yield* open(request(world, { headRef: "last" }));
        const told = (yield* events(2)).map(([type]) => type);
        expect(told).toEqual(["change_request.merged", "change_request.opened"]);
      }),
    );
  });
};
