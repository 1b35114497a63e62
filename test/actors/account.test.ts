import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { accountActors } from "../../src/actors/account.ts";
import { Actors } from "../../src/services/actors.ts";
import { actorsLayer, singleRunner } from "../../src/actors/cluster.ts";
import { Doubt } from "../../src/services/doubt.ts";
import { Pause, PauseSwitch } from "../../src/ground/pause.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { Admissions } from "../../src/store/ports/triggers/admissions.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { admitOne, fired } from "../support/world/sessions.ts";
import { answered, openActorsWorld, opened, until } from "../support/world/actors.ts";

/** An account's actor whose drains a test lets go one by one. */
const scene = Effect.gen(function* () {
  let drains = 0;
  let doubts = 0;
  const gates: Deferred.Deferred<{ admitted: never[]; more: boolean }, StoreError>[] = [];
  const admissions = Layer.mock(Admissions, {
    drain: () =>
      Effect.suspend(() => {
        drains += 1;
        const gate = Deferred.makeUnsafe<{ admitted: never[]; more: boolean }, StoreError>();
        gates.push(gate);
        return Deferred.await(gate);
      }),
  });
  const layer = accountActors({ maxIdleMs: 60_000, bootTimeoutMs: 120_000 }).pipe(
    Layer.provideMerge(actorsLayer),
    Layer.provideMerge(
      Layer.mergeAll(
        admissions,
        singleRunner,
        Layer.succeed(Doubt, () => void (doubts += 1)),
      ),
    ),
  );
  const { context } = yield* opened(layer);
  const actors = Context.get(context, Actors);
  const isDraining = (count: number) => until(Effect.sync(() => drains === count));
  const finish = (index: number, more = false) =>
    Effect.suspend(() => {
      const gate = gates[index];
      return gate === undefined
        ? Effect.die("no such drain")
        : Deferred.succeed(gate, { admitted: [], more });
    });
  const fail = (index: number) =>
    Effect.suspend(() => {
      const gate = gates[index];
      const cause = new Error("connection refused");
      return gate === undefined
        ? Effect.die("no such drain")
        : Deferred.fail(gate, new StoreError({ operation: "drain", cause }));
    });
  const signal = answered(actors.account("account-1", { type: "slot.freed" }));
  return { signal, isDraining, finish, fail, drains: Effect.sync(() => drains), doubts: () => doubts };
});

const sessionIds = Effect.fnUntraced(function* (projectId: string) {
  const { list } = yield* Sessions;
  const { items } = yield* list(projectId, { limit: 50, cursor: null, status: null });
  return items.map(({ id }) => id);
});

describe("an account's actor", () => {
  it.effect("drains once more for any number of signals during a drain", () =>
    Effect.gen(function* () {
      const { signal, isDraining, finish, drains } = yield* scene;
      yield* signal;
      yield* isDraining(1);
      for (let count = 0; count < 20; count += 1) yield* signal;
      expect(yield* drains).toBe(1);
      yield* finish(0);
      yield* isDraining(2);
      yield* finish(1);
      yield* TestClock.adjust("10 seconds");
      expect(yield* drains).toBe(2);
    }),
  );

  it.effect("drains nothing while a restored copy is paused", () => {
    const pause = new PauseSwitch();
    pause.since = 0;
    return Effect.gen(function* () {
      const { signal, isDraining, drains } = yield* scene;
      yield* signal;
      yield* TestClock.adjust("10 seconds");
      expect(yield* drains).toBe(0);
      pause.since = null;
      yield* signal;
      yield* isDraining(1);
    }).pipe(Effect.provideService(Pause, pause));
  });

  it.effect("drains again as long as more fires wait", () =>
    Effect.gen(function* () {
      const { signal, isDraining, finish } = yield* scene;
      yield* signal;
      yield* isDraining(1);
      yield* finish(0, true);
      yield* isDraining(2);
      yield* finish(1, true);
      yield* isDraining(3);
    }),
  );

  it.effect("waits a second after a drain that the store refused, and drains again", () =>
    Effect.gen(function* () {
      const { signal, isDraining, fail, drains, doubts } = yield* scene;
      yield* signal;
      yield* isDraining(1);
      yield* fail(0);
      yield* TestClock.adjust("900 millis");
      expect([yield* drains, doubts()]).toEqual([1, 1]);
      yield* isDraining(2);
    }),
  );

  it.effect("starts a waiting fire in the slot that a stopped session frees [R08]", () =>
    Effect.gen(function* () {
      const { admit, begin, inPorts, world, untilSession, statusOf } = yield* openActorsWorld({ cap: 1 });
      const { actors } = yield* begin;
      const first = yield* admit;
      yield* actors.wake("session", first);
      yield* untilSession(first, "running");
      const queued = yield* inPorts(admitOne(world, fired(world)));
      expect(queued.outcome).toBe("queued");
      yield* answered(actors.session(first, { type: "stop.requested" }));
      const sessions = inPorts(sessionIds(world.projectId));
      yield* until(Effect.map(sessions, (ids) => ids.length === 2));
      const second = (yield* sessions).find((id) => id !== first) ?? "";
      yield* untilSession(second, "running");
      expect(yield* statusOf(first)).toBe("stopped");
    }),
  );
});
