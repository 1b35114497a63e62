/** Conformance: the stored data of triggers: versions, cursors, skipped instants, stored requests, retention. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions, type Skip } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Secrets } from "../../../../src/store/ports/projects/secrets.ts";
import { type Check } from "../fixture.ts";
import { admitOne, due, fired } from "../../../support/world/sessions.ts";
import { accountOf, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const everything = { limit: 200, cursor: null, slug: null, status: null };

const versionOf = Effect.fnUntraced(function* (projectId: string) {
  return (yield* (yield* Projects).get(projectId))?.version ?? Number.NaN;
});

/** The ledger, oldest instant first. */
const ledger = Effect.fnUntraced(function* (world: World) {
  const { items } = yield* (yield* Fires).list(world.projectId, everything);
  return items
    .map(({ triggerSlug, scheduledFor, status, reason }) => [triggerSlug, scheduledFor, status, reason])
    .toSorted((a, b) => Number(a[1]) - Number(b[1]));
});

const cursors = Effect.fnUntraced(function* (
  world: World,
  schedules: Readonly<Record<string, string>>,
  now: number,
) {
  const kept = yield* (yield* Projects).keepCursors({
    projectId: world.projectId,
    projectVersion: yield* versionOf(world.projectId),
    schedules: new Map(Object.entries(schedules)),
    now,
  });
  return Object.fromEntries((kept ?? []).map(({ slug, accountedUntil }) => [slug, accountedUntil - NOON]));
});

const skipping = Effect.fnUntraced(function* (
  world: World,
  instants: readonly number[],
  fields: Partial<Skip> = {},
) {
  return yield* (yield* Admissions).skip({
    accountId: world.accountId,
    projectId: world.projectId,
    projectVersion: yield* versionOf(world.projectId),
    triggerSlug: "nightly",
    reason: "missed",
    instants: instants.map((dueAt) => ({ id: randomUUID(), dueAt })),
    now: NOON,
    ...fields,
  });
});

const iso = (at: number): string => new Date(at).toISOString();

const checkVersions = (check: Check): void => {
  describe("a project's version", () => {
    check(
      "rises with the inputs of its triggers, and a caller that asks for changes finds it",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(1);
        const { changedSince, update } = yield* Projects;
        const { put, remove } = yield* Secrets;
        const envelope = Uint8Array.from([1]);
        const changes = [
          update(projectId, { triggersPaused: true }, NOON),
          put({ projectId, name: "KEY", version: 1, envelope }, { userId, now: NOON }),
          remove(projectId, "KEY", NOON),
        ];
        for (const change of changes) {
          const before = yield* versionOf(projectId);
          const { since } = yield* changedSince(null);
          yield* change;
          const version = yield* versionOf(projectId);
          expect(version).toBe(before + 1);
          const look = yield* changedSince(since);
          expect(look.changed).toContainEqual({ id: projectId, version });
          const later = yield* changedSince(look.since);
          expect(later.changed.filter((changed) => changed.version > version)).toEqual([]);
        }
      }),
    );

    check(
      "comes with all inputs of its triggers",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(1);
        const { states, get } = yield* Projects;
        const { put } = yield* Secrets;
        const envelope = Uint8Array.from([7, 0, 255]);
        yield* put({ projectId, name: "KEY", version: 1, envelope }, { userId, now: NOON });
        const [state] = yield* states([projectId, randomUUID()]);
        expect(state?.project).toEqual(yield* get(projectId));
        expect(state?.secrets.map((secret) => [secret.name, [...secret.envelope]])).toEqual([
          ["KEY", [7, 0, 255]],
        ]);
        expect(yield* states([])).toEqual([]);
      }),
    );

    check(
      "that differs from the decided one prevents the write [C18, M18]",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { update } = yield* Projects;
        const projectVersion = yield* versionOf(world.projectId);
        yield* update(world.projectId, { triggersPaused: true }, NOON);
        const former = { ...fired(world, { deliveryId: "d-1" }), projectVersion };
        expect(yield* admitOne(world, former)).toEqual({ outcome: "stale" });
        expect(yield* skipping(world, [NOON], { projectVersion })).toBe(false);
        expect(
          yield* (yield* Projects).keepCursors({
            projectId: world.projectId,
            projectVersion,
            schedules: new Map([["nightly", "x"]]),
            now: NOON,
          }),
        ).toBe(null);
        expect(yield* ledger(world)).toEqual([]);
        const current = { ...former, projectVersion: projectVersion + 1 };
        expect((yield* admitOne(world, current)).outcome).toBe("admitted");
      }),
    );
  });
};

const checkCursors = (check: Check): void => {
  describe("a cursor", () => {
    check(
      "stays with its schedule, and starts again with another one or after its removal",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        expect(yield* cursors(world, { a: "hourly", b: "daily" }, NOON)).toEqual({ a: 0, b: 0 });
        expect(yield* cursors(world, { a: "hourly", b: "weekly" }, NOON + 5)).toEqual({ a: 0, b: 5 });
        expect(yield* cursors(world, { b: "weekly" }, NOON + 6)).toEqual({ b: 5 });
        expect(yield* cursors(world, { a: "hourly", b: "weekly" }, NOON + 7)).toEqual({ a: 7, b: 5 });
      }),
    );

    check(
      "is read with others of any projects, as far as they exist",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const other = { ...world, projectId: yield* addProject(world) };
        yield* cursors(world, { a: "hourly", b: "daily" }, NOON);
        yield* cursors(other, { a: "weekly" }, NOON + 5);
        const read = (yield* Projects).cursors;
        const keys = [
          { projectId: world.projectId, slug: "a" },
          { projectId: world.projectId, slug: "none" },
          { projectId: other.projectId, slug: "a" },
          { projectId: randomUUID(), slug: "a" },
        ];
        const found = yield* read(keys);
        expect(found.toSorted((one, two) => one.accountedUntil - two.accountedUntil)).toEqual([
          { projectId: world.projectId, slug: "a", schedule: "hourly", accountedUntil: NOON },
          { projectId: other.projectId, slug: "a", schedule: "weekly", accountedUntil: NOON + 5 },
        ]);
        expect(yield* read([])).toEqual([]);
      }),
    );

    check(
      "moves with the instants that have their row, fired, queued, failed or skipped, and never back",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { setTier } = yield* Identity;
        const at = () => cursors(world, { nightly: "daily", other: "daily" }, NOON);
        expect(yield* at()).toEqual({ nightly: 0, other: 0 });
        yield* admitOne(world, due(world, NOON + 10));
        expect(yield* at()).toEqual({ nightly: 10, other: 0 });
        yield* setTier(world.accountId, "free", 0);
        yield* admitOne(world, due(world, NOON + 20));
        expect(yield* at()).toEqual({ nightly: 20, other: 0 });
        yield* admitOne(world, due(world, NOON + 30, { prompt: { is: "too_large" } }));
        expect(yield* at()).toEqual({ nightly: 30, other: 0 });
        yield* skipping(world, [NOON + 40, NOON + 50]);
        expect(yield* at()).toEqual({ nightly: 50, other: 0 });
        yield* skipping(world, [NOON + 45]);
        yield* admitOne(world, due(world, NOON + 60, { replayOf: randomUUID() }));
        expect(yield* at()).toEqual({ nightly: 50, other: 0 });
      }),
    );
  });

  describe("a skipped instant", () => {
    check(
      "has its row, and neither skips nor fires again [I2, C16]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        yield* admitOne(world, due(world, NOON + 1));
        expect(yield* skipping(world, [NOON, NOON + 1, NOON + 2])).toBe(true);
        expect(yield* skipping(world, [NOON + 2], { reason: "paused" })).toBe(true);
        expect((yield* admitOne(world, due(world, NOON + 2))).outcome).toBe("accounted");
        expect(yield* ledger(world)).toEqual([
          ["nightly", NOON, "skipped", "missed"],
          ["nightly", NOON + 1, "fired", null],
          ["nightly", NOON + 2, "skipped", "missed"],
        ]);
      }),
    );

    check(
      "of an archived project has no row",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        yield* (yield* Projects).update(world.projectId, { status: "archived" }, NOON);
        expect(yield* skipping(world, [NOON])).toBe(false);
        expect(yield* ledger(world)).toEqual([]);
      }),
    );
  });
};

const checkCronInstants = (check: Check): void => {
  describe("a cron instant", () => {
    check(
      "is fired once [I2, R10]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const instant = { kind: "cron", triggerSlug: "nightly", scheduledFor: NOON } as const;
        expect((yield* admitOne(world, fired(world, instant))).outcome).toBe("admitted");
        expect((yield* admitOne(world, fired(world, instant))).outcome).toBe("accounted");
        const next = yield* admitOne(world, fired(world, { ...instant, scheduledFor: NOON + 1 }));
        expect(next.outcome).toBe("admitted");
      }),
    );

    check(
      "takes the waiting one's place in the queue, also within one batch",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { admit } = yield* Admissions;
        const { get, queue } = yield* Fires;
        const instant = (scheduledFor: number) =>
          fired(world, { kind: "cron", triggerSlug: "nightly", scheduledFor, queueMax: 1 });
        const first = yield* admitOne(world, instant(NOON));
        const answers = yield* admit(world.accountId, [instant(NOON + 1), instant(NOON + 2)]);
        expect([first, ...answers].map(({ outcome }) => outcome)).toEqual(["queued", "queued", "queued"]);
        const ids = [first, ...answers].map((answer) => (answer.outcome === "queued" ? answer.fireId : ""));
        const rows = yield* Effect.forEach(ids, get);
        expect(rows.map((row) => [row?.status, row?.reason])).toEqual([
          ["skipped", "overlapped"],
          ["skipped", "overlapped"],
          ["queued", "account_session_cap"],
        ]);
        expect(
          (yield* queue({ accountId: world.accountId, userId: null })).map(({ fireId }) => fireId),
        ).toEqual([ids[2]]);
      }),
    );
  });
};

const checkCronPrompts = (check: Check): void => {
  describe("a cron fire's prompt", () => {
    check(
      "names the previous fire, even if another one fired while it waited",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { setTier } = yield* Identity;
        const { drain } = yield* Admissions;
        const { prompt, get } = yield* Fires;
        const manual = fired(world, { kind: "manual", triggerSlug: "nightly" }, NOON + 1);
        yield* admitOne(world, manual);
        const request = due(world, NOON + 2);
        yield* admitOne(world, request);
        const first = request.fire?.id ?? "";
        expect(yield* prompt(first)).toBe(`at ${iso(NOON + 2)} after ${iso(NOON + 1)}`);
        const waiting = due(world, NOON + 3);
        const id = waiting.fire?.id ?? "";
        expect((yield* admitOne(world, waiting)).outcome).toBe("queued");
        expect(yield* prompt(id)).toBe(null);
        yield* setTier(world.accountId, "free", 4);
        yield* admitOne(world, {
          ...fired(world, { kind: "manual", triggerSlug: "nightly" }, NOON + 8),
          kind: "hand",
        });
        const { admitted } = yield* drain(world.accountId, {
          sessionIds: [randomUUID()],
          now: NOON + 9,
          bootTimeoutMs: 1000,
        });
        expect(admitted.map(({ fireId }) => fireId)).toEqual([id]);
        expect(yield* prompt(id)).toBe(`at ${iso(NOON + 3)} after ${iso(NOON + 8)}`);
        expect(yield* get(id)).toMatchObject({ status: "fired", scheduledFor: NOON + 3 });
      }),
    );

    check(
      "that is too long when a slot is free fails the fire and leaves the slot free [P11]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { setTier } = yield* Identity;
        const { drain } = yield* Admissions;
        // Fits while there is no earlier fire.
        const filler = "x".repeat(96 * 1024 - 10);
        const template = {
          prompt: `${filler}{{ cron.last_fired_at }}`,
          slug: "nightly",
          schedule: "s",
          timezone: "UTC",
          dueAtMs: NOON,
        };
        const waiting = due(world, NOON, { prompt: { is: "cron", template } });
        expect((yield* admitOne(world, waiting)).outcome).toBe("queued");
        yield* setTier(world.accountId, "free", 2);
        yield* admitOne(world, {
          ...fired(world, { kind: "manual", triggerSlug: "nightly" }),
          kind: "hand",
        });
        const sessionIds = [randomUUID(), randomUUID()];
        const drained = yield* drain(world.accountId, { sessionIds, now: NOON, bootTimeoutMs: 1000 });
        expect(drained).toEqual({ admitted: [], more: false });
        expect(yield* (yield* Fires).get(waiting.fire?.id ?? "")).toMatchObject({
          status: "failed",
          reason: "prompt_too_large",
        });
        expect(yield* accountOf(world)).toMatchObject({ activeSessions: 1, queuedFires: 0 });
      }),
    );
  });

  check(
    "a cron instant that finds the queue full has its row with that reason",
    Effect.gen(function* () {
      const world = yield* makeWorld(0);
      yield* admitOne(world, fired(world, { queueMax: 1 }));
      const answer = yield* admitOne(world, due(world, NOON, { queueMax: 1 }));
      expect(answer).toMatchObject({ outcome: "dropped", reason: "queue_full" });
      expect(yield* accountOf(world)).toMatchObject({ queuedFires: 1 });
    }),
  );
};

export const checkTriggers = (check: Check): void => {
  checkVersions(check);
  checkCursors(check);
  checkCronInstants(check);
  checkCronPrompts(check);
};
