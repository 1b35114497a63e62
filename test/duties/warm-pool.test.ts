/** Which sandboxes wait for a session on a node (duties/warm-pool.ts K1 to K5). */
import { randomUUID } from "node:crypto";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { TRIGGER_GRACE_MS, TRIGGER_LEAD_MS } from "../../src/duties/warm-pool.ts";
import { WISH_MS } from "../../src/services/sessions/warm-pool.ts";
import { ABANDONED_MS } from "../../src/store/ports/sessions/warm-sandboxes.ts";
import { admitSession, openSandbox } from "../support/world/sessions.ts";
import { addProject, NOON } from "../support/world/world.ts";

import { NODE, BOOT_MS, PERIOD, cron, openNode, rounds } from "./warm-node.ts";

describe("sandboxes that wait for a session", () => {
  it.effect("are as many as the manifest asks for, and get the default branch's commit", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, running, daemons, sandboxes } = yield* openNode;
      yield* begin;
      yield* rounds(3);
      expect(yield* running).toEqual([]);
      yield* asks(2);
      yield* rounds(3);
      expect(yield* ready).toHaveLength(2);
      expect(daemons.prepared).toHaveLength(2);
      expect(daemons.prepared[0]).toMatch(/^[0-9a-f]{40}$/);
      for (const { spec } of (yield* sandboxes.all).values()) {
        expect(spec.sessionId).toBe(null);
        expect(Object.keys(spec.environment)).not.toContain("PLATFORM_SESSION_ID");
        expect(spec.environment["PLATFORM_DEFAULT_BRANCH"]).toBe("main");
      }
      yield* asks(1);
      yield* rounds(3);
      expect(yield* running).toEqual(yield* ready);
      expect(yield* ready).toHaveLength(1);
    }),
  );

  it.effect("are replaced when a session takes one, and none is ended that a session has", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, running, world, inStore } = yield* openNode;
      const { pool } = yield* begin;
      yield* asks(1);
      yield* rounds(3);
      const [first] = yield* ready;
      const sessionId = yield* inStore(admitSession(world));
      const session = {
        id: sessionId,
        projectId: world.projectId,
        origin: "session",
        agentName: "default",
      } as const;
      expect(yield* pool.claim(session)).toBe(first);
      yield* inStore(openSandbox(sessionId, NOON, first));
      yield* rounds(3);
      expect(yield* ready).toHaveLength(1);
      expect(yield* running).toContain(first);
      expect(yield* running).toHaveLength(2);
    }),
  );

  it.effect("start for a person who is about to start a session, and end if she does not", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, running, world, inStore } = yield* openNode;
      const other = yield* inStore(addProject(world));
      yield* asks(2);
      const { pool } = yield* begin;
      yield* rounds(3);
      const [oldest] = yield* ready;
      // There is no place: the oldest that a project keeps ready goes.
      expect(yield* pool.wish(other)).toBe(true);
      expect(yield* pool.wish(other)).toBe(true);
      yield* rounds(3);
      expect(yield* ready).toHaveLength(2);
      expect(yield* running).not.toContain(oldest);
      yield* TestClock.adjust(WISH_MS);
      yield* rounds(3);
      expect(yield* ready).toHaveLength(2);
      const inStoreSession = {
        id: world.userId,
        projectId: other,
        origin: "session",
        agentName: "default",
      } as const;
      expect(yield* pool.claim(inStoreSession)).toBe(null);
    }),
  );

  it.effect("are replaced if the project would start them differently now", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, boots } = yield* openNode;
      yield* asks(1);
      yield* begin;
      yield* rounds(3);
      const [first] = yield* ready;
      yield* rounds(3);
      expect(yield* ready).toEqual([first]);
      boots.environment = { image: "debian:12", variables: {} };
      yield* rounds(4);
      const [second] = yield* ready;
      expect(second).not.toBe(first);
      boots.environment = { image: "debian:12", variables: { EDITOR: "vi" } };
      yield* rounds(4);
      expect(yield* ready).not.toContain(second);
      expect(yield* ready).toHaveLength(1);
    }),
  );

  it.effect(
    "are recorded as they were started, if the answer to the record was lost and the project has changed",
    () =>
      Effect.gen(function* () {
        const { boots, begin, asks, records } = yield* openNode;
        records.lost = () => void (boots.environment = { image: null, variables: { CHANGED: "yes" } });
        yield* begin;
        yield* asks(1);
        yield* rounds(3);
        const [first, second] = records.recipes;
        expect(first).toBeDefined();
        expect(second).toBe(first);
      }),
  );

  it.effect("do not wait for a build: that of one project holds up no other one", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, running, boots, world, inStore } = yield* openNode;
      yield* asks(1);
      const { pool } = yield* begin;
      yield* rounds(3);
      expect(yield* ready).toHaveLength(1);
      boots.isBuilding = true;
      yield* rounds(4);
      expect(yield* running).toEqual([]);
      boots.isBuilding = false;
      yield* pool.wish(yield* inStore(addProject(world)));
      yield* rounds(3);
      expect(yield* ready).toHaveLength(1);
    }),
  );

  it.effect("end with the service that started them, and with their own processes", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, rows, running, sandboxes, warm, world } = yield* openNode;
      yield* asks(1);
      const { end } = yield* begin;
      yield* rounds(3);
      const [spec] = [...(yield* sandboxes.all).values()].map((sandbox) => sandbox.spec);
      yield* end;
      expect([yield* rows, yield* running]).toEqual([[], []]);
      // As after a kill: the row and the sandbox of a former life.
      const left = { id: randomUUID(), projectId: world.projectId, nodeId: NODE };
      yield* warm.add({ ...left, wantedBy: "manifest", wantedUntil: null, createdAt: NOON, atMost: 1 });
      yield* warm.ready(left.id, { recipe: "of a former version", secrets: { revision: 0, versions: {} } });
      if (spec !== undefined) yield* sandboxes.plant({ ...spec, id: left.id });
      yield* begin;
      yield* rounds(3);
      const [second = ""] = yield* ready;
      expect(second).not.toBe(left.id);
      expect(yield* running).toEqual([second]);
      yield* sandboxes.end(second, { code: "memory_exceeded", message: "no memory" });
      yield* rounds(4);
      expect(yield* running).toEqual(yield* ready);
      expect(yield* ready).not.toContain(second);
    }),
  );

  it.effect("are not tried again for a minute after a failure", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, rows, running, boots, sandboxes, daemons } = yield* openNode;
      yield* asks(1);
      boots.environment = null;
      yield* begin;
      yield* rounds(2);
      expect(yield* rows).toEqual([]);
      boots.environment = { image: null, variables: {} };
      yield* rounds(2);
      expect(yield* rows).toEqual([]);
      yield* sandboxes.fault("create", { kind: "error", message: "no room" });
      yield* TestClock.adjust("1 minute");
      expect(yield* running).toEqual([]);
      daemons.runtime = "starting";
      yield* TestClock.adjust("70 seconds");
      expect(yield* running).toHaveLength(1);
      expect(yield* ready).toEqual([]);
      // It is given up after a boot's time, and its sandbox goes.
      const [hanging] = yield* running;
      yield* TestClock.adjust(BOOT_MS);
      expect(yield* running).not.toContain(hanging);
      daemons.runtime = "ready";
      yield* TestClock.adjust("2 minutes");
      expect(yield* ready).toHaveLength(1);
    }),
  );

  it.effect("are removed if the session that took one never used it", () =>
    Effect.gen(function* () {
      const { asks, begin, ready, running, world, inStore, warm } = yield* openNode;
      yield* asks(1);
      yield* begin;
      yield* rounds(3);
      const [first = ""] = yield* ready;
      const sessionId = yield* inStore(admitSession(world));
      const { projectId } = world;
      yield* warm.claim({ projectId, sessionId, nodeId: NODE, isPersons: true, now: NOON });
      const used = yield* inStore(openSandbox(sessionId));
      expect(used.id).not.toBe(first);
      yield* TestClock.adjust(ABANDONED_MS);
      yield* rounds(3);
      expect(yield* running).not.toContain(first);
    }),
  );
});

describe("sandboxes that wait for a trigger", () => {
  const MINUTE = 60_000;

  it.effect("start shortly before its instant, are given to its session, and go if none comes", () =>
    Effect.gen(function* () {
      const { begin, reads, rings, ready, rows, running, world, inStore } = yield* openNode;
      yield* reads(cron("0 0 * * * *"));
      const due = NOON + 60 * MINUTE;
      rings(due);
      const { pool } = yield* begin;
      yield* TestClock.setTime(due - TRIGGER_LEAD_MS - 2 * PERIOD);
      yield* rounds(1);
      expect(yield* rows).toEqual([]);
      yield* rounds(3);
      const [first = ""] = yield* ready;
      expect(yield* rows).toMatchObject([{ wantedBy: "trigger", wantedUntil: due + TRIGGER_GRACE_MS }]);
      const session = {
        id: yield* inStore(admitSession(world)),
        projectId: world.projectId,
        agentName: "default",
      };
      expect(yield* pool.claim({ ...session, origin: "trigger" })).toBe(first);
      yield* inStore(openSandbox(session.id, NOON, first));
      yield* rounds(3);
      // The instant has not passed, so another one starts. No session comes.
      expect(yield* ready).toHaveLength(1);
      rings(due + 60 * MINUTE);
      yield* TestClock.setTime(due + TRIGGER_GRACE_MS);
      yield* rounds(2);
      expect([yield* rows, yield* running]).toEqual([[], [first]]);
    }),
  );

  it.effect.each([
    ["fires more often than every 20 minutes", "0 */19 * * * *", false],
    ["is paused with its project", "0 0 * * * *", true],
  ] as const)("do not start if it %s", ([, expression, isPaused]) =>
    Effect.gen(function* () {
      const { begin, reads, rings, rows, projects, world } = yield* openNode;
      yield* reads(cron(expression));
      if (isPaused) yield* projects.update(world.projectId, { triggersPaused: true }, NOON);
      rings(NOON + 19 * MINUTE);
      yield* begin;
      yield* TestClock.setTime(NOON + 18 * MINUTE);
      yield* rounds(3);
      expect(yield* rows).toEqual([]);
    }),
  );

  it.effect("come after those of manifests and of people, which take their places", () =>
    Effect.gen(function* () {
      const { begin, asks, reads, rings, rows, world, inStore } = yield* openNode;
      const [other, third] = [yield* inStore(addProject(world)), yield* inStore(addProject(world))];
      const kinds = Effect.map(rows, (all) => all.map(({ wantedBy }) => wantedBy).toSorted());
      for (const id of [other, third]) {
        yield* reads(cron("0 0 * * * *"), id);
        rings(NOON + MINUTE, id);
      }
      const { pool } = yield* begin;
      yield* rounds(3);
      expect(yield* kinds).toEqual(["trigger", "trigger"]);
      yield* asks(1);
      yield* rounds(3);
      expect(yield* kinds).toEqual(["manifest", "trigger"]);
      yield* pool.wish(yield* inStore(addProject(world)));
      yield* rounds(3);
      expect(yield* kinds).toEqual(["manifest", "person"]);
    }),
  );
});
