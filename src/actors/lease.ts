/**
 * Whether this node certainly owns an actor. The database ends the session that holds a node's shard locks after 3 s of silence,
 * and then other nodes own its actors. A node that stood still does not know this when it goes on, and would step the messages
 * that waited in it, although their senders were told long ago that no answer came.
 *
 *  L1 A shard is covered until its lock's expiry, which counts from when the request that confirmed the lock was sent.
 *  L2 Two clocks measure the time, and the longer time counts: the monotonic clock does not see that the machine was
 *     suspended, and the wall clock may be set back.
 *  L3 A shard that is covered now has had no other owner since its node was last covered. So what was read from the
 *     store before is the newest state, or the fence (store/ports/journal.ts) refuses the save.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { RunnerStorage, type EntityAddress, type ShardId } from "effect/cluster";

export class Lease extends Context.Service<
  Lease,
  {
    /** Whether no other node can own the actor now. */
    readonly covers: (address: EntityAddress.EntityAddress) => boolean;
  }
>()("platform/actors/Lease") {}

/** Of a service with one node. */
export const soleLease: Layer.Layer<Lease> = Layer.succeed(Lease, { covers: () => true });

interface Reading {
  readonly wallMs: number;
  readonly monotonicNs: bigint;
}

/** Forgets before the release and after it: an earlier request may have been answered meanwhile. */
const forgetting = <E>(forget: () => void, release: Effect.Effect<void, E>): Effect.Effect<void, E> =>
  Effect.andThen(Effect.sync(forget), Effect.ensuring(release, Effect.sync(forget)));

/**
 * The cluster's storage as it is, and a lease that follows what the storage confirms.
 *
 * @param expiresMs after how much silence of a node others may take its locks.
 */
export const leaseLayer = (
  expiresMs: number,
): Layer.Layer<Lease | RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const storage = yield* RunnerStorage.RunnerStorage;
      const clock = yield* Clock.Clock;
      const readings = new Map<string, Reading>();
      const read = (): Reading => ({
        wallMs: clock.currentTimeMillisUnsafe(),
        monotonicNs: clock.monotonicTimeNanosUnsafe(),
      });
      /** Asks for locks. Those that the answer does not name are somebody else's. */
      const asking = <E>(
        shards: readonly ShardId.ShardId[],
        ask: Effect.Effect<ShardId.ShardId[], E>,
      ): Effect.Effect<ShardId.ShardId[], E> =>
        Effect.suspend(() => {
          const sentAt = read();
          return Effect.tap(ask, (heldShards) =>
            Effect.sync(() => {
              for (const shard of shards) readings.delete(shard.toString());
              for (const shard of heldShards) readings.set(shard.toString(), sentAt);
            }),
          );
        });
      const leasedStorage = RunnerStorage.RunnerStorage.of({
        ...storage,
        acquire: (address, ids) => {
          const shards = [...ids];
          return asking(shards, storage.acquire(address, shards));
        },
        refresh: (address, ids) => {
          const shards = [...ids];
          return asking(shards, storage.refresh(address, shards));
        },
        release: (address, shard) =>
          forgetting(() => readings.delete(shard.toString()), storage.release(address, shard)),
        releaseAll: (address) => forgetting(() => readings.clear(), storage.releaseAll(address)),
      });
      const covers = ({ shardId }: EntityAddress.EntityAddress) => {
        const then = readings.get(shardId.toString());
        if (then === undefined) return false;
        const now = read();
        const passedMs = Math.max(
          now.wallMs - then.wallMs,
          Number((now.monotonicNs - then.monotonicNs) / 1_000_000n),
        );
        return passedMs < expiresMs;
      };
      return Context.make(RunnerStorage.RunnerStorage, leasedStorage).pipe(Context.add(Lease, { covers }));
    }),
  );
