/**
 * Actors as entities of Effect's cluster: their placement, passivation and restart are the library's
 * (docs/decisions/0004). On one node its single runner hosts them all; several nodes on one
 * Postgres share them (docs/decisions/0013).
 *
 *  K1 An actor with commands under way stays in memory: a pending `Settle` request holds its entity.
 *  K2 Messages are volatile: nothing of ours is written to the cluster's own storage.
 *  K3 Every message is answered. A step that crashes is its asker's to know; left to the cluster, the same message
 *     would be played again to a rebuilt entity, for ever.
 */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import {
  Entity,
  EntityId,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  ShardId,
  Sharding,
  ShardingConfig,
  SocketRunner,
  SqlRunnerStorage,
  type ClusterError,
} from "effect/cluster";
import { Rpc } from "effect/rpc";
import { SocketServer } from "effect/socket";
import { CapReached, StoreError } from "../store/ports/journal.ts";
import {
  Actors,
  ActorUnavailable,
  Placement,
  type ActorKind,
  type ActorKinds,
  type TellError,
} from "./actors.ts";
import { ActorNotFound, MailboxFull, type Actor, type Told } from "./host.ts";

const Failure = Schema.Union([StoreError, CapReached, MailboxFull, ActorNotFound, ActorUnavailable]);

/** Events and snapshots are plain JSON between the service's own runners: their types are the machines'. */
const TellRpc = Rpc.make("Tell", {
  payload: { event: Schema.Unknown },
  success: Schema.Unknown,
  error: Failure,
});
/**
 * Has the actor loaded and at work on its outbox; answers at once, so that any number of wakes leaves nothing behind: true where it
 * had to be loaded.
 */
const WakeRpc = Rpc.make("Wake", { success: Schema.Boolean, error: Failure });
/** Answers when no command is under way. One at a time, asked by the entity itself: it is what holds it in memory. */
const SettleRpc = Rpc.make("Settle", { error: Failure });

const entityOf = (kind: ActorKind) => Entity.make(kind, [TellRpc, WakeRpc, SettleRpc]);
const entities = {
  session: entityOf("session"),
  sandbox: entityOf("sandbox"),
  account: entityOf("account"),
  trigger: entityOf("trigger"),
  changeRequest: entityOf("changeRequest"),
} as const;

type KindActor<Kind extends ActorKind> = Actor<ActorKinds[Kind]["snapshot"], ActorKinds[Kind]["event"]>;

/** How one kind of actor is started: its memory loaded, its undone commands performed. */
export type StartActor<Kind extends ActorKind, R> = (
  id: string,
) => Effect.Effect<KindActor<Kind>, StoreError | ActorNotFound, R | Scope.Scope>;

export interface EntityOptions {
  /** How long an actor without work and messages stays in memory, ms (PLATFORM_ACTOR_IDLE_MS). */
  readonly maxIdleMs: number;
}

/** Registers one kind of actor with the cluster. A start that failed is tried anew by the next message. */
export const actorLayer = <Kind extends ActorKind, R>(
  kind: Kind,
  start: StartActor<Kind, R>,
  options: EntityOptions,
): Layer.Layer<never, never, Exclude<R, Scope.Scope> | Sharding.Sharding> => {
  const entity = entities[kind];
  const build = Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress;
    const scope = yield* Effect.scope;
    const clientOf = yield* entity.client;
    const actor = yield* startedOnce(Scope.provide(start(entityId), scope));
    let [held, awake] = [false, false];
    const hold: Effect.Effect<void> = Effect.suspend(() => {
      if (held) return Effect.void;
      held = true;
      const release = Effect.sync(() => (held = false));
      // A command that began while the answer was on its way is held anew (K1).
      const again = Effect.flatMap(actor, ({ busy }) =>
        Effect.flatMap(busy, (isBusy) => (isBusy ? hold : Effect.void)),
      );
      const settling = Effect.ensuring(clientOf(entityId).Settle(), release);
      return Effect.asVoid(Effect.forkIn(Effect.ignore(Effect.andThen(settling, again)), scope));
    });
    /** The cluster would play a message that crashes its actor again and again (K3). */
    const crashed = Effect.catchDefect((defect: unknown) =>
      Effect.andThen(
        Effect.logError("an actor crashed", defect),
        Effect.fail(new ActorUnavailable({ actorId: entityId, reason: "it crashed" })),
      ),
    );
    return entity.of({
      Tell: ({ payload }) =>
        Effect.gen(function* () {
          const { tell, busy } = yield* actor;
          const told = yield* tell(payload.event as ActorKinds[Kind]["event"]);
          if (yield* busy) yield* hold;
          return told;
        }).pipe(crashed),
      Wake: () =>
        Effect.gen(function* () {
          const { busy } = yield* actor;
          if (yield* busy) yield* hold;
          const wasAsleep = !awake;
          awake = true;
          return wasAsleep;
        }).pipe(crashed),
      Settle: () => Rpc.fork(Effect.flatMap(actor, ({ settled }) => settled)),
    });
  });
  return entity.toLayer(build, {
    maxIdleTime: options.maxIdleMs,
    // The host takes one event at a time itself (host.ts H1) and bounds its mailbox; Settle must pass beside them.
    concurrency: "unbounded",
  }) as Layer.Layer<never, never, Exclude<R, Scope.Scope> | Sharding.Sharding>;
};

/** Runs `start` at most once at a time and keeps its success; a failure is the asker's, and the next asker tries again. */
const startedOnce = Effect.fnUntraced(function* <A, E, R>(start: Effect.Effect<A, E, R>) {
  const context = yield* Effect.context<R>();
  const turn = yield* Semaphore.make(1);
  let started: { readonly actor: A } | null = null;
  return Effect.suspend(() =>
    started !== null
      ? Effect.succeed(started.actor)
      : turn.withPermit(
          Effect.suspend(() =>
            started !== null
              ? Effect.succeed(started.actor)
              : Effect.tap(Effect.provideContext(start, context), (actor) =>
                  Effect.sync(() => {
                    started = { actor };
                  }),
                ),
          ),
        ),
  );
});

/** The address book over the cluster's clients. */
export const actorsLayer: Layer.Layer<Actors, never, Sharding.Sharding> = Layer.effect(
  Actors,
  Effect.gen(function* () {
    const scope = yield* Effect.scope;
    const clients = {
      session: yield* entities.session.client,
      sandbox: yield* entities.sandbox.client,
      account: yield* entities.account.client,
      trigger: yield* entities.trigger.client,
      changeRequest: yield* entities.changeRequest.client,
    };
    const teller =
      <Kind extends ActorKind>(kind: Kind) =>
      (
        id: string,
        event: ActorKinds[Kind]["event"],
      ): Effect.Effect<Told<ActorKinds[Kind]["snapshot"]>, TellError> =>
        clients[kind](id)
          .Tell({ event })
          .pipe(
            Effect.map((told) => told as Told<ActorKinds[Kind]["snapshot"]>),
            Effect.mapError((error) => asTellError(id, error)),
          );
    /** Asked on although nobody waits for it any more. */
    const asking = (kind: ActorKind, id: string) =>
      Effect.forkIn(
        clients[kind](id)
          .Wake()
          .pipe(
            Effect.tapError((error) => Effect.logWarning("an actor could not be woken", { kind, id, error })),
            Effect.orElseSucceed(() => false),
          ),
        scope,
      );
    return Actors.of({
      session: teller("session"),
      sandbox: teller("sandbox"),
      account: teller("account"),
      trigger: teller("trigger"),
      changeRequest: teller("changeRequest"),
      wake: (kind, id) => Effect.asVoid(asking(kind, id)),
      load: (kind, id) => Effect.flatMap(asking(kind, id), Fiber.join),
    });
  }),
);

/** How often a node looks at which shards it has. It costs some microseconds. */
const MOVES_POLL = "250 millis";

/** Of the library's default; all nodes must agree on it. */
const SHARDS = 300;

const groupOf = (triggerId: string) => entities.trigger.getShardGroup(EntityId.make(triggerId));

/** What the cluster placed on this node: the shards whose locks it holds. */
export const placementLayer: Layer.Layer<Placement, never, Sharding.Sharding> = Layer.effect(
  Placement,
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding;
    const shards = Array.from({ length: SHARDS }, (_, index) => ShardId.make(groupOf(""), index + 1));
    let had: readonly boolean[] = shards.map(() => false);
    const look = Effect.sync(() => {
      const has = shards.map((shard) => sharding.hasShardId(shard));
      const hasMoved = has.some((isOurs, index) => isOurs !== had[index]);
      had = has;
      return hasMoved;
    });
    return Placement.of({
      isHere: (id) => sharding.hasShardId(sharding.getShardId(EntityId.make(id), groupOf(id))),
      moves: Effect.asVoid(
        Effect.repeat(look, { until: (hasMoved) => hasMoved, schedule: Schedule.spaced(MOVES_POLL) }),
      ),
    });
  }),
);

type ClientError =
  | typeof Failure.Type
  | ClusterError.MailboxFull
  | ClusterError.AlreadyProcessingMessage
  | ClusterError.PersistenceError
  | ClusterError.EntityNotAssignedToRunner;

const asTellError = (actorId: string, error: ClientError): TellError =>
  error instanceof StoreError ||
  error instanceof CapReached ||
  error instanceof MailboxFull ||
  error instanceof ActorNotFound ||
  error instanceof ActorUnavailable
    ? error
    : new ActorUnavailable({ actorId, reason: error._tag });

/** What both kinds of runner have in common. */
const SHARED = {
  shardsPerGroup: SHARDS,
  // No ceiling of the library's own: residents are bounded by live sessions (the caps) and by passivation.
  maxResidentEntities: "unbounded",
  // An entity that ends or moves waits so long for what it was asked: a step is milliseconds, and goes through once begun.
  // A Settle never ends while a sandbox is watched, and would keep the other nodes waiting.
  entityTerminationTimeout: "200 millis",
} as const;

/** One node: every actor lives in this process. */
export const singleRunner: Layer.Layer<Sharding.Sharding> = Sharding.layer.pipe(
  Layer.provide(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer(SHARED)),
);

/**
 * How quickly the others take over from a node that is gone: its registration and its locks are good for 3 s, renewed
 * each second, and who is registered is looked at four times a second, which is what a node that ends in order is waited
 * for. Shorter, and a database that is slow for a moment would move actors about.
 */
const TAKEOVER = {
  shardLockExpiration: "3 seconds",
  shardLockRefreshInterval: "1 second",
  refreshAssignmentsInterval: "250 millis",
} as const;

/** The address at which the other nodes reach this runner: `host`, and the port that it was given. */
const addressOf = (host: string) =>
  Effect.map(SocketServer.SocketServer, ({ address }) => {
    if (address._tag === "UnixPathAddress") throw new Error("a runner listens on an address of the network");
    return RunnerAddress.make(host, address.port);
  });

/**
 * One of several nodes: who lives where is agreed on in Postgres, and messages go from runner to runner over sockets. The
 * cluster's tables are of our migrations. The runner's port asks nobody who they are: it is bound to loopback or to a
 * private address (config.ts).
 *
 * @param host what the runner's socket server is bound to.
 */
export const clusterRunner = (host: string) =>
  SocketRunner.layer.pipe(
    Layer.provide(Layer.provide(RunnerHealth.layerPing, Runners.layerRpc)),
    Layer.provide([MessageStorage.layerNoop, SqlRunnerStorage.layerStorage({})]),
    Layer.provide(
      Layer.unwrap(
        Effect.map(addressOf(host), (address) =>
          ShardingConfig.layer({ ...SHARED, ...TAKEOVER, runnerAddress: Option.some(address) }),
        ),
      ),
    ),
  );
