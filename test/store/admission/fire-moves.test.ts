/** Every change of a fire's status that a store makes is in the table (src/domain/trigger/fire.ts), and both stores refuse any other. */
import { it } from "@effect/vitest";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { FIRE_MOVES, type FireStatus } from "../../../src/domain/trigger/fire.ts";
import { PROMPT_LIMIT_BYTES } from "../../../src/domain/trigger/prompt.ts";
import { overTables } from "../../twins/store/layer.ts";
import { Tables } from "../../twins/store/tables.ts";
import { makeWrite } from "../../../src/store/postgres/triggers/admission-writes.ts";
import * as EventLog from "../../../src/store/postgres/events/event-log.ts";
import { Admissions } from "../../../src/store/ports/triggers/admissions.ts";
import { Fires, type NewFire } from "../../../src/store/ports/triggers/fires.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import type { Store } from "../../conformance/store/fixture.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { admitOne, due, fired, newFire } from "../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";
import { checkOver } from "../../support/postgres/live.ts";

const HOUR_MS = 3_600_000;
const LATER = NOON + HOUR_MS;
const FILTERED = { prompt: { is: "skipped", reason: "filtered" } } as const;
const TOO_LARGE = { prompt: { is: "too_large" } } as const;

const ledger = Effect.fnUntraced(function* (world: World) {
  const { list } = yield* Fires;
  const { items } = yield* list(world.projectId, { limit: 1000, cursor: null, slug: null, status: null });
  return new Map(items.map((fire) => [fire.id, fire]));
});

/** Notes which moves operations make, as the ledger shows them. */
const watcher = (world: World) => {
  const seen = new Set<string>();
  const watch = Effect.fnUntraced(function* <A, E, R>(operation: Effect.Effect<A, E, R>) {
    const before = yield* ledger(world);
    const answer = yield* operation;
    for (const [id, { status, attempts }] of yield* ledger(world)) {
      const former = before.get(id);
      if (former?.status === status && former.attempts === attempts) continue;
      seen.add(`${former?.status ?? "new"} -> ${status}`);
    }
    return answer;
  });
  return { seen, watch };
};

const capAt = (world: World, cap: number) =>
  Effect.flatMap(Identity, ({ setTier }) => setTier(world.accountId, "free", cap));

const drainAt = (world: World, now: number, slots: number) =>
  Effect.flatMap(Admissions, ({ drain }) => {
    const sessionIds = Array.from({ length: slots }, () => crypto.randomUUID());
    return drain(world.accountId, { sessionIds, now, bootTimeoutMs: 1000 });
  });

type Step = Effect.Effect<unknown, unknown, Store>;

/** Steps by which one delivery comes to a row of a status, and tries it again. */
const stepsOf = (world: World, deliveryId: string) => {
  const request = fired(world, { deliveryId });
  const send = (fields: Partial<NewFire> = {}): Step =>
    admitOne(world, fired(world, { deliveryId, ...fields }));
  const wait: Step = admitOne(world, request);
  const cancel: Step = Effect.flatMap(Admissions, (admissions) => admissions.cancel(request.fire.id, NOON));
  const reach: Readonly<Record<"failed" | "expired" | "cancelled", readonly Step[]>> = {
    failed: [send(TOO_LARGE)],
    expired: [wait, drainAt(world, LATER, 0)],
    cancelled: [wait, cancel],
  };
  const retry: Readonly<Record<"queued" | "failed" | "skipped" | "fired", readonly Step[]>> = {
    queued: [send()],
    failed: [send(TOO_LARGE)],
    skipped: [send(FILTERED)],
    fired: [capAt(world, 1000), send()],
  };
  return { reach, retry, again: send() };
};

const skipOne = (world: World): Step =>
  Effect.gen(function* () {
    const projectVersion = (yield* (yield* Projects).get(world.projectId))?.version ?? -1;
    const instants = [{ id: newFire(world).id, dueAt: NOON }];
    const trigger = { ...world, triggerSlug: "nightly", projectVersion };
    return yield* (yield* Admissions).skip({ ...trigger, reason: "missed", instants, now: NOON });
  });

/** Everything that changes a status, done once. */
const everything = Effect.gen(function* () {
  const world = yield* makeWorld(0);
  const { seen, watch } = watcher(world);
  for (const former of ["failed", "expired", "cancelled"] as const) {
    for (const next of ["queued", "failed", "skipped", "fired"] as const) {
      yield* capAt(world, 0);
      const { reach, retry, again } = stepsOf(world, `${former}-${next}`);
      for (const step of [...reach[former], ...retry[next], again]) yield* watch(step);
      // A fire that waits would be before the next one.
      yield* watch(drainAt(world, LATER, 0));
    }
  }
  yield* capAt(world, 0);
  const large = "x".repeat(PROMPT_LIMIT_BYTES - 5);
  const template = { prompt: `${large}{{ cron.last_fired_at }}`, slug: "big", schedule: "", timezone: "UTC" };
  const big = (at: number) =>
    due(world, at, {
      triggerSlug: "big",
      prompt: { is: "cron", template: { ...template, dueAtMs: at } },
      queueTtlMs: 10 * HOUR_MS,
    });
  yield* watch(admitOne(world, big(NOON)));
  // The later instant replaces the one that waits.
  yield* watch(admitOne(world, big(NOON + 1)));
  // A fire by hand meanwhile: the waiting one's prompt is over its limit when its turn comes.
  yield* capAt(world, 1000);
  const byHand = fired(world, { kind: "manual", triggerSlug: "big" });
  yield* watch(admitOne(world, { ...byHand, kind: "hand" }));
  yield* watch(drainAt(world, LATER, 1));
  yield* capAt(world, 0);
  yield* watch(admitOne(world, fired(world)));
  yield* capAt(world, 1000);
  yield* watch(drainAt(world, NOON, 10));
  // A due instant of a time when the service stood still.
  yield* watch(skipOne(world));
  return seen;
});

const allowed = Object.entries(FIRE_MOVES).flatMap(([former, moves]) =>
  Object.keys(moves).map((next) => `${former} -> ${next}`),
);

type Force<R> = (id: string, status: FireStatus) => Effect.Effect<void, never, R>;

/** Registers what both stores keep; `force` writes a status behind the store's back. */
const checkMoves = <Side>(
  check: <E>(name: string, test: Effect.Effect<void, E, Store | Side>) => void,
  force: Force<Side>,
): void => {
  check(
    "makes every move of the table, and no other",
    Effect.gen(function* () {
      expect([...(yield* everything)].toSorted()).toEqual(allowed.toSorted());
    }),
  );

  const waiting = Effect.fnUntraced(function* (status: FireStatus) {
    const world = yield* makeWorld(0);
    const request = fired(world, { deliveryId: "d-1" });
    yield* admitOne(world, request);
    const id = request.fire.id;
    yield* force(id, status);
    return { world, id };
  });
  const ends: Readonly<Record<string, (of: { readonly world: World; readonly id: string }) => Step>> = {
    "a cancellation": ({ id }) => Effect.flatMap(Admissions, ({ cancel }) => cancel(id, NOON)),
    "an expiry": ({ world }) => drainAt(world, LATER, 0),
    "a start": ({ world }) => Effect.andThen(capAt(world, 1), drainAt(world, NOON, 1)),
    "the archive of its project": ({ world }) =>
      Effect.flatMap(Projects, ({ update }) => update(world.projectId, { status: "archived" }, NOON)),
  };
  for (const [name, end] of Object.entries(ends)) {
    check(
      `refuses ${name} of a fire whose row is final, and writes nothing`,
      Effect.gen(function* () {
        const { world, id } = yield* waiting("skipped");
        const exit = yield* Effect.exit(end({ world, id }));
        expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true);
        const { get, queue } = yield* Fires;
        expect(yield* get(id)).toMatchObject({ status: "skipped", sessionId: null });
        expect(yield* queue({ accountId: world.accountId, userId: null })).toHaveLength(1);
      }),
    );
  }

  check(
    "refuses to replace a fire whose row is final with a later instant",
    Effect.gen(function* () {
      const world = yield* makeWorld(0);
      const first = due(world, NOON);
      yield* admitOne(world, first);
      yield* force(first.fire.id, "cancelled");
      const later = newFire(world).id;
      const exit = yield* Effect.exit(admitOne(world, due(world, NOON + 1, { id: later })));
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true);
      expect(yield* (yield* Fires).get(later)).toBeNull();
    }),
  );
};

describe("the store in memory", () => {
  checkMoves(checkOver(Layer.provideMerge(overTables, Tables.layer)), (id, status) =>
    Effect.map(Tables, ({ fires }) => {
      const row = fires.get(id);
      if (row !== undefined) fires.set(id, { ...row, status });
    }),
  );
});

describe("the store in Postgres", () => {
  const store = storeOfFile();
  checkMoves(checkOver(store), (id, status) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`UPDATE fires SET status = ${status} WHERE id = ${id}`,
    ).pipe(Effect.orDie, Effect.asVoid),
  );

  it.live("refuses a batch that moves a row whose status is final", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { fire } = fired(world);
      yield* admitOne(world, { ...fired(world), fire });
      const { get } = yield* Fires;
      const row = yield* get(fire.id);
      if (row?.status !== "fired") return yield* Effect.die("the fire has not fired");
      const { accountId } = world;
      const former = { ...row, accountId, answersDelivery: true };
      const again = { ...former, status: "queued", firedAt: null, decidedAt: NOON } as const;
      const move = { sessions: 0, queued: 0, requestBytes: 0 };
      const batch = { sessions: [], fires: [], moved: [again], queue: [], requests: new Map(), move };
      const exit = yield* Effect.exit((yield* makeWrite)(accountId, batch));
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true);
      expect(yield* get(fire.id)).toMatchObject({ status: "fired" });
    }).pipe(Effect.provide(Layer.fresh(Layer.provideMerge(EventLog.layer, store)))),
  );
});
