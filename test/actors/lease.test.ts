import { it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  ClusterError,
  EntityAddress,
  EntityId,
  EntityType,
  RunnerAddress,
  RunnerStorage,
  ShardId,
} from "effect/cluster";
import { describe, expect } from "vitest";
import { Lease, leaseLayer } from "../../src/actors/lease.ts";

const EXPIRES_MS = 3_000;
const NODE = RunnerAddress.make("127.0.0.1", 1);
const [one, other] = [ShardId.make("default", 1), ShardId.make("default", 2)];
const addressOn = (shardId: ShardId.ShardId) =>
  EntityAddress.make({
    shardId,
    entityType: EntityType.make("session"),
    entityId: EntityId.make("a"),
  });

/** A node whose locks and clocks the test moves. */
const node = Effect.gen(function* () {
  const held = new Set([one, other]);
  const clocks = { wallMs: 1_000_000, monotonicMs: 50 };
  const asked = { failure: null as ClusterError.PersistenceError | null, takesMs: 0, releasing: Effect.void };
  const answer = (_: RunnerAddress.RunnerAddress, shards: Iterable<ShardId.ShardId>) =>
    Effect.suspend(() => {
      clocks.wallMs += asked.takesMs;
      clocks.monotonicMs += asked.takesMs;
      if (asked.failure !== null) return Effect.fail(asked.failure);
      return Effect.succeed([...shards].filter((shard) => held.has(shard)));
    });
  const database = RunnerStorage.RunnerStorage.of({
    register: () => Effect.die("not asked"),
    unregister: () => Effect.void,
    getRunners: Effect.succeed([]),
    setRunnerHealth: () => Effect.void,
    acquire: answer,
    refresh: answer,
    release: () => asked.releasing,
    releaseAll: () => Effect.void,
  });
  const real = yield* Clock.Clock;
  const clock: Clock.Clock = {
    ...real,
    sleep: (duration) => real.sleep(duration),
    currentTimeMillisUnsafe: () => clocks.wallMs,
    monotonicTimeNanosUnsafe: () => BigInt(clocks.monotonicMs) * 1_000_000n,
  };
  const context = yield* Layer.build(
    leaseLayer(EXPIRES_MS).pipe(Layer.provide(Layer.succeed(RunnerStorage.RunnerStorage, database))),
  ).pipe(Effect.provideService(Clock.Clock, clock));
  const { covers } = Context.get(context, Lease);
  return {
    held,
    clocks,
    asked,
    storage: Context.get(context, RunnerStorage.RunnerStorage),
    covered: () => [one, other].map((shard) => covers(addressOn(shard))),
    pass: (ms: number) => {
      clocks.wallMs += ms;
      clocks.monotonicMs += ms;
    },
  };
});

describe("a node's lease of its actors", () => {
  it.effect("covers a shard from when its lock is confirmed until the lock's expiry", () =>
    Effect.gen(function* () {
      const { storage, covered, pass } = yield* node;
      expect(covered()).toEqual([false, false]);
      yield* storage.acquire(NODE, [one]);
      expect(covered()).toEqual([true, false]);
      pass(EXPIRES_MS - 1);
      expect(covered()).toEqual([true, false]);
      yield* storage.refresh(NODE, [one]);
      pass(EXPIRES_MS - 1);
      expect(covered()).toEqual([true, false]);
      pass(1);
      expect(covered()).toEqual([false, false]);
    }),
  );

  it.effect("counts the time from when the request was sent", () =>
    Effect.gen(function* () {
      const { storage, covered, asked } = yield* node;
      asked.takesMs = EXPIRES_MS;
      yield* storage.acquire(NODE, [one, other]);
      expect(covered()).toEqual([false, false]);
    }),
  );

  it.effect("ends for a lock that the database does not confirm, and not because a request failed", () =>
    Effect.gen(function* () {
      const { storage, covered, held, asked } = yield* node;
      yield* storage.acquire(NODE, [one, other]);
      asked.failure = new ClusterError.PersistenceError({ cause: new Error("the connection broke") });
      yield* Effect.flip(storage.refresh(NODE, [one, other]));
      expect(covered()).toEqual([true, true]);
      asked.failure = null;
      held.delete(other);
      yield* storage.refresh(NODE, [one, other]);
      expect(covered()).toEqual([true, false]);
    }),
  );

  it.effect("ends with the release of a lock, or of all", () =>
    Effect.gen(function* () {
      const { storage, covered } = yield* node;
      yield* storage.acquire(NODE, [one, other]);
      yield* storage.release(NODE, one);
      expect(covered()).toEqual([false, true]);
      yield* storage.releaseAll(NODE);
      expect(covered()).toEqual([false, false]);
    }),
  );

  it.effect("ends with the release, also if an earlier request is answered during it", () =>
    Effect.gen(function* () {
      const { storage, covered, asked } = yield* node;
      asked.releasing = Effect.ignore(storage.refresh(NODE, [one]));
      yield* storage.acquire(NODE, [one]);
      yield* storage.release(NODE, one);
      expect(covered()).toEqual([false, false]);
    }),
  );

  it.effect(
    "ends by either clock: one stops while a machine is suspended, and the other may be set back",
    () =>
      Effect.gen(function* () {
        const { storage, covered, clocks } = yield* node;
        yield* storage.acquire(NODE, [one]);
        clocks.wallMs += EXPIRES_MS;
        expect(covered()).toEqual([false, false]);
        yield* storage.refresh(NODE, [one]);
        clocks.wallMs -= 3_600_000;
        expect(covered()).toEqual([true, false]);
        clocks.monotonicMs += EXPIRES_MS;
        expect(covered()).toEqual([false, false]);
      }),
  );
});
