/** Conformance: pages and events, which clients continue to read from their last position. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Schedule from "effect/Schedule";
import { Events, EVENTS_KEPT_MS } from "../../../../src/store/ports/events.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sessions, type Session } from "../../../../src/store/ports/sessions/sessions.ts";
import type { Page } from "../../../../src/store/ports/page.ts";
import { type Check } from "../fixture.ts";
import { admitOne, admitSession, fired, tellSession } from "../../../support/world/sessions.ts";
import { converse, report } from "../../../support/world/conversations.ts";
import { addPerson, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const encode = (text: string) => Buffer.from(text).toString("base64url");

export const checkPages = (check: Check): void => {
  describe("a page", () => {
    check(
      "continues where the previous one ended, newest first, also among equal instants",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { list } = yield* Sessions;
        const made: string[] = [];
        for (const _ of [1, 2, 3, 4, 5]) made.push(yield* admitSession(world));
        const seen: string[] = [];
        let cursor: string | null = null;
        do {
          const page: Page<Session> = yield* list(world.projectId, { limit: 2, cursor, status: null });
          seen.push(...page.items.map(({ id }) => id));
          cursor = page.nextCursor;
        } while (cursor !== null);
        expect(seen).toEqual(made.toSorted().toReversed());
      }),
    );

    check(
      "is refused for a cursor that no page returned [T07]",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { list } = yield* Sessions;
        const id = randomUUID();
        const forged = ["", "x", "' OR 1=1", encode(`${NOON}.x`), encode(`-1.${id}`), encode(`1e9.${id}`)];
        forged.push(
          `${encode(`${NOON}.${id}`)}=`,
          encode(`9999999999999999.${id}`),
          encode(`${NOON}.${id}\n`),
        );
        for (const cursor of forged) {
          const error = yield* Effect.flip(list(world.projectId, { limit: 2, cursor, status: null }));
          expect(error._tag).toBe("BadCursor");
        }
        const valid = yield* list(world.projectId, {
          limit: 2,
          cursor: encode(`${NOON}.${id}`),
          status: null,
        });
        expect(valid.items).toEqual([]);
      }),
    );
  });
};

const turn = (state: string, previous: string) => ["session.turn_changed", { state, previous }];

export const checkEvents = (check: Check): void => {
  describe("events", () => {
    const readFrom = Effect.fnUntraced(function* (world: World, cursor: string | null, limit = 100) {
      const { after } = yield* Events;
      return yield* after({ projectId: world.projectId, sessionId: null, cursor, limit });
    });
    // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
    const readUntil = Effect.fnUntraced(function* (world: World, cursor: string, expected: number) {
      return yield* Effect.repeat(readFrom(world, cursor), {
        until: ({ events }) => events.length >= expected,
        schedule: Schedule.spaced("10 millis"),
      });
    });

    check(
      "are delivered in order from the reader's position, and resumed after any of them",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const begin = yield* readFrom(world, null);
        expect(begin).toMatchObject({ events: [], reset: false });
        const request = fired(world);
        yield* admitOne(world, request);
        const id = request.session.id;
        yield* tellSession(id, { type: "stop.requested" }, NOON + 1);
        const read = yield* readUntil(world, begin.cursor, 3);
        expect(read.events.map(({ type }) => type)).toEqual([
          "session.status",
          "trigger.fired",
          "session.status",
        ]);
        expect(read.events[1]).toMatchObject({
          at: NOON,
          projectId: world.projectId,
          sessionId: id,
          data: { fire_id: request.fire?.id, trigger_slug: "on-push" },
        });
        expect(read.events[2]?.data).toEqual({
          status: "stopped",
          previous: "provisioning",
          failure: null,
          stop_reason: "requested",
        });
        const resumed = yield* readFrom(world, read.events[0]?.cursor ?? null);
        expect(resumed.events).toEqual(read.events.slice(1));
        const portion = yield* readFrom(world, begin.cursor, 2);
        expect(portion.events).toEqual(read.events.slice(0, 2));
        expect((yield* readFrom(world, portion.cursor)).events).toEqual(read.events.slice(2));
        const { isLater } = yield* Events;
        const cursors = [begin, ...read.events, read].map(({ cursor }) => cursor);
        for (const [index, cursor] of cursors.entries())
          expect(cursors.map((than) => isLater(cursor, than))).toEqual(
            cursors.map((than, other) => other < index && than !== cursor),
          );
        expect(yield* readFrom(world, read.cursor)).toMatchObject({ events: [], reset: false });
      }),
    );

    check(
      "of one session are delivered alone, and another project's never",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const other = { ...world, projectId: yield* addProject(world) };
        const begin = yield* readFrom(world, null);
        const [id] = [yield* admitSession(world), yield* admitSession(world), yield* admitSession(other)];
        expect((yield* readUntil(world, begin.cursor, 2)).events).toHaveLength(2);
        const { after } = yield* Events;
        const read = yield* after({
          projectId: world.projectId,
          sessionId: id,
          cursor: begin.cursor,
          limit: 9,
        });
        expect(read.events.map(({ sessionId }) => sessionId)).toEqual([id]);
      }),
    );

    check(
      "of all projects are those that the reader sees when they are read",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const other = { ...world, projectId: yield* addProject(world) };
        const userId = yield* addPerson(world);
        const { update } = yield* Projects;
        for (const { projectId } of [world, other]) yield* update(projectId, { defaultRole: null }, NOON);
        const { after } = yield* Events;
        const begin = yield* readFrom(world, null);
        const read = (reader: string | null) =>
          Effect.map(
            after({
              reader: { accountId: world.accountId, userId: reader },
              cursor: begin.cursor,
              limit: 9,
            }),
            ({ events }) => events.map(({ sessionId }) => sessionId),
          );
        const first = yield* admitSession(world);
        const second = yield* admitSession(other);
        yield* readUntil(other, begin.cursor, 1);
        expect(yield* read(null)).toEqual([first, second]);
        expect(yield* read(userId)).toEqual([]);
        yield* update(other.projectId, { defaultRole: "viewer" }, NOON);
        expect(yield* read(userId)).toEqual([second]);
      }),
    );

    check(
      "tell of each change that lists show, once",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const start = yield* readFrom(world, null);
        const { sessionId, sandboxId } = yield* converse(world);
        const { rename, noteChanges } = yield* Sessions;
        // The beginning of the session and of its sandbox.
        const begin = yield* readUntil(world, start.cursor, 2);
        const { close, note } = yield* Conversations;
        const says = (rev: number, state: "running" | "idle") =>
          note(sessionId, report(sandboxId, rev, { turn: { state, waiting_for: null } }));
        yield* says(1, "running");
        yield* says(2, "running");
        yield* says(3, "idle");
        yield* says(4, "running");
        yield* close(sessionId, { sandboxId, as: "lost", now: NOON });
        yield* rename(sessionId, { name: "Another", now: NOON });
        yield* noteChanges(sessionId, { files: 1, additions: 2, deletions: 3, head: "h" }, NOON);
        const expected = [
          turn("running", "idle"),
          turn("idle", "running"),
          turn("running", "idle"),
          turn("idle", "running"),
          ["session.updated", {}],
          ["session.updated", {}],
        ];
        const { events } = yield* readUntil(world, begin.cursor, expected.length);
        expect(events.map(({ type, data }) => [type, data])).toEqual(expected);
      }),
    );

    check(
      "are not written by a refused change",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const first = yield* readFrom(world, null);
        const stopped = yield* admitSession(world);
        yield* tellSession(stopped, { type: "stop.requested" });
        yield* admitSession(world);
        const begin = yield* readUntil(world, first.cursor, 3);
        yield* Effect.flip(tellSession(stopped, { type: "restart.requested", sandboxId: randomUUID() }));
        expect((yield* readFrom(world, begin.cursor)).events).toEqual([]);
      }),
    );

    check(
      "that were pruned make an old reader start again, and an invalid cursor does as well",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { prune } = yield* Events;
        const begin = yield* readFrom(world, null);
        const id = yield* admitSession(world);
        yield* tellSession(id, { type: "stop.requested" }, NOON + 1);
        yield* readUntil(world, begin.cursor, 2);
        const before = yield* readFrom(world, begin.cursor, 1);
        yield* prune(NOON + EVENTS_KEPT_MS);
        expect((yield* readFrom(world, begin.cursor)).events).toHaveLength(2);
        yield* prune(NOON + EVENTS_KEPT_MS + 1);
        expect(yield* readFrom(world, begin.cursor)).toMatchObject({ events: [], reset: true });
        const kept = yield* readFrom(world, before.cursor);
        expect(kept).toMatchObject({ reset: false });
        expect(kept.events.map(({ at }) => at)).toEqual([NOON + 1]);
        for (const cursor of ["", "x", "-1", "9".repeat(17), `${"9".repeat(17)}.1`]) {
          expect(yield* readFrom(world, cursor)).toMatchObject({ events: [], reset: true });
        }
      }),
    );

    check(
      "wake readers that wait for their project",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { changed } = yield* Events;
        const waiting = yield* Effect.forkChild(changed(world.projectId), { startImmediately: true });
        yield* admitSession(world);
        yield* Fiber.join(waiting);
      }),
    );
  });
};
