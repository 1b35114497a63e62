/**
 * Actors as entities of Effect's cluster. The library handles placement, passivation and restart (docs/decisions/0003).
 * A single node hosts all actors in one runner; several nodes share them through one
 * Postgres (docs/decisions/0013).
 *
 *  K1 An actor with commands under way stays in memory: a pending `Settle` request holds its entity.
 *     The cluster may passivate an actor that has just received a message. If the actor leaves memory during a command,
 *     the end of this life starts the next one, and the next one performs the command again.
 *  K2 Messages are volatile: the service writes nothing to the cluster's own storage.
 *  K3 Every message is answered. If a step crashes, its caller gets the error. The cluster would otherwise replay the
 *     same message to a rebuilt entity for ever.
 *  K4 A message is carried out only while this node certainly owns its actor (lease.ts).
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
  type EntityAddress,
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
} from "../services/actors.ts";
import { Doubt } from "../services/doubt.ts";
import type { Actor } from "./host.ts";
import { ActorNotFound, MailboxFull, type EventResult } from "../ground/mailbox.ts";
import { Lease, leaseLayer, soleLease } from "./lease.ts";

const Failure = Schema.Union([StoreError, CapReached, MailboxFull, ActorNotFound, ActorUnavailable]);

/** The service's own runners exchange events and snapshots as plain JSON. The machines declare their types. */
const TellRpc = Rpc.make("Tell", {
  payload: { event: Schema.Unknown },
  success: Schema.Unknown,
  error: Failure,
});
/**
 * Loads the actor so that it works off its outbox. A loaded actor reads its outbox again if a save's answer was lost.
 * Answers at once, so any number of wakes leaves nothing behind. True if the actor was not loaded before.
 */
const WakeRpc = Rpc.make("Wake", {
  /** The actor's newest pending command, if the caller knows it. */
  payload: { newest: Schema.NullOr(Schema.String) },
  success: Schema.Boolean,
  error: Failure,
});
/** Answers when no command is under way. The entity itself sends one at a time, which holds the entity in memory. */
const SettleRpc = Rpc.make("Settle", { error: Failure });

const makeEntity = (kind: ActorKind) => Entity.make(kind, [TellRpc, WakeRpc, SettleRpc]);
const entities = {
  session: makeEntity("session"),
  sandbox: makeEntity("sandbox"),
  account: makeEntity("account"),
  trigger: makeEntity("trigger"),
  changeRequest: makeEntity("changeRequest"),
  conversation: makeEntity("conversation"),
  environmentBuild: makeEntity("environmentBuild"),
} as const;

type KindActor<Kind extends ActorKind> = Actor<ActorKinds[Kind]["snapshot"], ActorKinds[Kind]["event"]>;

/** Starts one kind of actor: loads its memory and performs its pending commands. */
export type StartActor<Kind extends ActorKind, R> = (
  id: string,
) => Effect.Effect<KindActor<Kind>, StoreError | ActorNotFound, R | Scope.Scope>;

/**
 * The message to the next life of an actor that left memory during a command. Null if its outbox is in the store, so a
 * wake is enough.
 */
type Again<Kind extends ActorKind> = ActorKinds[Kind]["event"] | null;

export interface EntityOptions {
  /** How long an actor without work and messages stays in memory, ms (PLATFORM_ACTOR_IDLE_MS). */
  readonly maxIdleMs: number;
}

/** Registers one kind of actor with the cluster. If a start fails, the next message starts the actor again. */
export const actorLayer = <Kind extends ActorKind, R>(
  kind: Kind,
  start: StartActor<Kind, R>,
  options: EntityOptions & { readonly again: Again<Kind> },
): Layer.Layer<never, never, Exclude<R, Scope.Scope> | Sharding.Sharding | Lease> => {
  const entity = entities[kind];
  const build = Effect.fnUntraced(function* (outliving: Scope.Scope) {
    const address = yield* Entity.CurrentAddress;
    const { entityId, shardId } = address;
    const scope = yield* Effect.scope;
    const lease = yield* Lease;
    const sharding = yield* Sharding.Sharding;
    const makeClient = yield* entity.client;
    /** Starts the actor's next life, unless the actor lives on another node by now. */
    const beginAgain = Effect.suspend(() => {
      if (!sharding.hasShardId(shardId)) return Effect.void;
      const client = makeClient(entityId);
      return Effect.asVoid(
        options.again === null ? client.Wake({ newest: null }) : client.Tell({ event: options.again }),
      );
    });
    const startAnew = finishingWork(start(entityId), Effect.forkIn(Effect.ignore(beginAgain), outliving));
    const actor = yield* startedOnce(Scope.provide(startAnew, scope));
    let [held, awake] = [false, false];
    const hold: Effect.Effect<void> = Effect.suspend(() => {
      if (held) return Effect.void;
      held = true;
      const release = Effect.sync(() => (held = false));
      // A command may have begun while the answer was on its way: hold the entity again (K1).
      const again = Effect.flatMap(actor, ({ busy }) =>
        Effect.flatMap(busy, (isBusy) => (isBusy ? hold : Effect.void)),
      );
      const settling = Effect.ensuring(makeClient(entityId).Settle(), release);
      return Effect.asVoid(Effect.forkIn(Effect.ignore(Effect.andThen(settling, again)), scope));
    });
    const [owned, crashed] = [whileOwned(lease, address), answeringCrash(entityId)];
    return entity.of({
      Tell: ({ payload }) =>
        Effect.gen(function* () {
          const { tell, busy } = yield* actor;
          const reply = yield* tell(payload.event as ActorKinds[Kind]["event"], owned);
          if (yield* busy) yield* hold;
          return reply;
        }).pipe(crashed),
      Wake: ({ payload }) =>
        Effect.gen(function* () {
          const { busy, refresh } = yield* actor;
          yield* refresh(payload.newest);
          if (yield* busy) yield* hold;
          const wasAsleep = !awake;
          awake = true;
          return wasAsleep;
        }).pipe(crashed),
      Settle: () => Rpc.fork(Effect.flatMap(actor, ({ settled }) => settled)),
    });
  });
  const entityLayer = (outliving: Scope.Scope) =>
    entity.toLayer(build(outliving), {
      maxIdleTime: options.maxIdleMs,
      // The host itself takes one event at a time (host.ts H1) and bounds its mailbox. `Settle` must not queue behind
      // events.
      concurrency: "unbounded",
    });
  return Layer.unwrap(Effect.map(Effect.scope, entityLayer)) as Layer.Layer<
    never,
    never,
    Exclude<R, Scope.Scope> | Sharding.Sharding | Lease
  >;
};

/** Refuses a message while another node may own the actor (K4). */
const whileOwned = (lease: Lease["Service"], address: EntityAddress.EntityAddress) =>
  Effect.suspend(() =>
    lease.covers(address)
      ? Effect.void
      : Effect.fail(
          new ActorUnavailable({ actorId: address.entityId, reason: "another node may own it by now" }),
        ),
  );

/** The cluster would replay a message that crashes its actor again and again (K3). */
const answeringCrash = (actorId: string) =>
  Effect.catchDefect((defect: unknown) =>
    Effect.andThen(
      Effect.logError("an actor crashed", defect),
      Effect.fail(new ActorUnavailable({ actorId, reason: "it crashed" })),
    ),
  );

/** Starts an actor. If its life ends during a command, `beginAgain` runs after the end. */
const finishingWork = Effect.fnUntraced(function* <A extends Pick<Actor<never, never>, "busy">, E, R>(
  start: Effect.Effect<A, E, R>,
  beginAgain: Effect.Effect<unknown>,
) {
  let isUnfinished = false;
  yield* Effect.addFinalizer(() => (isUnfinished ? beginAgain : Effect.void));
  const actor = yield* start;
  yield* Effect.addFinalizer(() =>
    Effect.map(actor.busy, (isBusy) => {
      isUnfinished = isBusy;
    }),
  );
  return actor;
});

/**
 * Runs `start` at most once at a time and keeps its success. A failure goes to its caller, and the next caller starts
 * again.
 */
const startedOnce = Effect.fnUntraced(function* <A, E, R>(start: Effect.Effect<A, E, R>) {
  const context = yield* Effect.context<R>();
  const turn = yield* Semaphore.make(1);
  let child: { readonly actor: A } | null = null;
  return Effect.suspend(() =>
    child !== null
      ? Effect.succeed(child.actor)
      : turn.withPermit(
          Effect.suspend(() =>
            child !== null
              ? Effect.succeed(child.actor)
              : Effect.tap(Effect.provideContext(start, context), (actor) =>
                  Effect.sync(() => {
                    child = { actor };
                  }),
                ),
          ),
        ),
  );
});

/**
 * The pauses before a wake that the database refused is tried again: 8 s in all. Without them, the actor's commands would
 * wait for recovery's next look.
 */
const WAKE_AGAIN = { schedule: Schedule.exponential("250 millis"), times: 5 };

/** The address book over the cluster's clients. */
export const actorsLayer: Layer.Layer<Actors, never, Sharding.Sharding> = Layer.effect(
  Actors,
  Effect.gen(function* () {
    const scope = yield* Effect.scope;
    const doubt = yield* Doubt;
    const clients = {
      session: yield* entities.session.client,
      sandbox: yield* entities.sandbox.client,
      account: yield* entities.account.client,
      trigger: yield* entities.trigger.client,
      changeRequest: yield* entities.changeRequest.client,
      conversation: yield* entities.conversation.client,
      environmentBuild: yield* entities.environmentBuild.client,
    };
    const teller =
      <Kind extends ActorKind>(kind: Kind) =>
      (
        id: string,
        event: ActorKinds[Kind]["event"],
      ): Effect.Effect<EventResult<ActorKinds[Kind]["snapshot"]>, TellError> =>
        clients[kind](id)
          .Tell({ event })
          .pipe(
            Effect.map((reply) => reply as EventResult<ActorKinds[Kind]["snapshot"]>),
            // The event may have been saved, and its commands wait.
            Effect.tapErrorTag("StoreError", () => Effect.sync(doubt)),
            Effect.mapError((error) => asTellError(id, error)),
          );
    /** The request goes on even if its caller stops waiting. */
    const asking = (kind: ActorKind, id: string, newest: string | null) =>
      Effect.forkIn(
        clients[kind](id)
          .Wake({ newest })
          .pipe(
            Effect.retry({ ...WAKE_AGAIN, while: (error) => error._tag === "StoreError" }),
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
      conversation: teller("conversation"),
      environmentBuild: teller("environmentBuild"),
      wake: (kind, id) => Effect.asVoid(asking(kind, id, null)),
      load: (kind, { id, newest }) => Effect.flatMap(asking(kind, id, newest), Fiber.join),
    });
  }),
);

/** How often a node checks which shards it holds. A check costs some microseconds. */
export const MOVES_POLL_MS = 250;

/** The library's default. All nodes must agree on it. */
export const SHARDS = 300;

const triggerGroup = (triggerId: string) => entities.trigger.getShardGroup(EntityId.make(triggerId));

/** The placement that the cluster decided: this node's shards are those whose locks it holds. */
export const placementLayer: Layer.Layer<Placement, never, Sharding.Sharding> = Layer.effect(
  Placement,
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding;
    const shards = Array.from({ length: SHARDS }, (_, index) => ShardId.make(triggerGroup(""), index + 1));
    let had: readonly boolean[] = shards.map(() => false);
    const look = Effect.sync(() => {
      const has = shards.map((shard) => sharding.hasShardId(shard));
      const hasMoved = has.some((isOurs, index) => isOurs !== had[index]);
      had = has;
      return hasMoved;
    });
    return Placement.of({
      isHere: (id) => sharding.hasShardId(sharding.getShardId(EntityId.make(id), triggerGroup(id))),
      moves: Effect.asVoid(
        Effect.repeat(look, { until: (hasMoved) => hasMoved, schedule: Schedule.spaced(MOVES_POLL_MS) }),
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

/** Settings that both kinds of runner share. */
const SHARED = {
  shardsPerGroup: SHARDS,
  // No limit by the library: the caps on live sessions and passivation bound the residents.
  maxResidentEntities: "unbounded",
  // How long an entity that ends or moves waits for its open requests. A step takes milliseconds, and completes once
  // begun. A `Settle` does not end while a sandbox is watched, so a longer wait would delay the other nodes.
  entityTerminationTimeout: "200 millis",
} as const;

/** One node: every actor lives in this process. */
export const singleRunner: Layer.Layer<Sharding.Sharding | Lease> = Sharding.layer.pipe(
  Layer.provide(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer(SHARED)),
  Layer.merge(soleLease),
);

/**
 * How quickly the other nodes take over from a dead node. A node's registration and locks expire after 3 s and are
 * renewed each second. Nodes check the registrations four times a second, so a node that shuts down cleanly waits no
 * longer than that. With shorter times, a database that is slow for a moment would move actors around.
 */
export const TAKEOVER = {
  shardLockExpiration: 3_000,
  shardLockRefreshInterval: 1_000,
  refreshAssignmentsInterval: 250,
} as const;

/** The address at which other nodes reach this runner: `host` and the port that the system assigned. */
const runnerAddress = (host: string) =>
  Effect.map(SocketServer.SocketServer, ({ address }) => {
    if (address._tag === "UnixPathAddress") throw new Error("a runner listens on an address of the network");
    return RunnerAddress.make(host, address.port);
  });

/**
 * One of several nodes: Postgres holds the agreement on placement, and messages go from runner to runner over sockets.
 * Our migrations create the cluster's tables. The runner's port does not authenticate its peers, so it is bound to
 * loopback or to a private address (config.ts).
 *
 * @param host the address to which the runner's socket server is bound.
 */
export const clusterRunner = (host: string) =>
  SocketRunner.layer.pipe(
    Layer.provide(Layer.provide(RunnerHealth.layerPing, Runners.layerRpc)),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provideMerge(leaseLayer(TAKEOVER.shardLockExpiration)),
    Layer.provide(SqlRunnerStorage.layerStorage({})),
    Layer.provide(
      Layer.unwrap(
        Effect.map(runnerAddress(host), (address) =>
          ShardingConfig.layer({ ...SHARED, ...TAKEOVER, runnerAddress: Option.some(address) }),
        ),
      ),
    ),
  );
