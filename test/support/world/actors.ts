/** The service's actors over twins of all their ports: store, sandboxes, git, daemon. */
import { buffer } from "node:stream/consumers";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import * as TestClock from "effect/testing/TestClock";
import { accountActors } from "../../../src/actors/account.ts";
import { Actors } from "../../../src/services/actors.ts";
import { actorsLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { BuildSite } from "../../../src/builder/site/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { conversationHubLayer } from "../../../src/services/sessions/conversation-hub.ts";
import { bootPlacesLayer } from "../../../src/services/sessions/boot-places.ts";
import { buildingLayer } from "../../../src/services/environments/building.ts";
import type { SpecOptions } from "../../../src/actors/sandboxes/spec.ts";
import type { Claim } from "../../../src/domain/sandbox/launch.ts";
import { environmentsLayer } from "../../../src/services/environments/environments.ts";
import { WARM_MB, warmPoolLayer } from "../../../src/services/sessions/warm-pool.ts";
import { proposedWorkLayer } from "../../../src/features/change-requests/proposed-work.ts";
import { recover } from "../../../src/duties/recovery.ts";
import { conversationActors } from "../../../src/actors/conversation.ts";
import { environmentBuildActors } from "../../../src/features/environments/environment-build-actor.ts";
import { sandboxActors } from "../../../src/actors/sandbox.ts";
import { sessionActors } from "../../../src/actors/session.ts";
import type { ConversationReport } from "../../../src/domain/conversation/conversation.ts";
import type { NumberedTurn } from "../../../src/domain/session/last-turn.ts";
import { SimulatedSaves } from "../../twins/saves.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { simulatedBackend } from "../../twins/git/repositories.ts";
import {
  DaemonClient,
  DaemonOutdated,
  DaemonUnreachable,
  type DaemonHealth,
  type EnvironmentChange,
} from "../../../src/sandbox/daemon.ts";
import type { DaemonLink } from "../../../src/sandbox/port.ts";
import { emptySaving, emptyWorkspace } from "../../../src/sandbox/daemon-simulated.ts";
import { simulatedProvider, SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { SessionLogs } from "../../../src/store/ports/sessions/session-logs.ts";
import type { SandboxStatus, SessionStatus } from "../../../src/domain/session/session.ts";
import { notRestored } from "../../../src/domain/save/saved.ts";
import { unsteered, type ScriptedSteering } from "../service/sessions/scripted-steering.ts";
import { admitSession } from "./sessions.ts";
import { makeWorldWithRepository, NOON } from "./world.ts";

export const READY: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: "main", commit: "c0ffee" },
  protocol: 3,
  bootstrap: { state: "done" },
  turn: { active: false, active_since: null, last_activity_at: null },
  boot: [],
  error: null,
};
export const STARTING: DaemonHealth = {
  ...READY,
  status: "starting",
  runtime: { state: "starting" },
  repo: { ready: false, branch: null, commit: null },
  bootstrap: { state: "pending" },
};

/** Every daemon's health answer. Null: no daemon answers. */
export interface DaemonScript {
  health: DaemonHealth | null;
  /** Whether the daemon of a sandbox is too old. Absent: none is. */
  isOutdated?: (sandboxId: string) => boolean;
  /** The answer about its last turn. Absent: no turn ends. */
  turn?: Effect.Effect<NumberedTurn | null, DaemonUnreachable>;
  /** A tool's whole output. Absent: the daemon has none. */
  output?: (item: string) => Effect.Effect<string | null, DaemonUnreachable>;
  /** Its report of the conversation after a number. Absent: it says nothing. */
  conversation?: (after: number) => Stream.Stream<ConversationReport, DaemonUnreachable>;
  /** Ends the agent's turn. Absent: it has none. */
  abort?: Effect.Effect<boolean>;
  /** The sandboxes whose processes were ended, for good. */
  readonly retired: string[];
  /** The bodies that it got beside its saved work. */
  readonly given: string[];
  /** The sandboxes that take messages again. */
  readonly released: string[];
  /** How it takes messages. Absent: it takes none. */
  steering?: ScriptedSteering["layer"];
  /** Accepts a session. Absent: at once. */
  claim?: (claim: Claim) => Effect.Effect<void, DaemonUnreachable>;
  /** Accepts a change of the environment. */
  env: (change: EnvironmentChange) => Effect.Effect<void>;
}

/** The service's own defaults. */
export const SAVE_TIMEOUT_MS = 60_000;
export const SAVE_EVERY_MS = 300_000;

export const REQUEST_TTL_MS = 1_800_000;

/** Milliseconds that a provider's create takes. */
export const CREATE_MS = 1_000;
const IDLE_MS = 60_000;
export const REFRESH_MS = 604_800_000;

const sandboxOf = (link: DaemonLink): string =>
  link.kind === "url" ? (new URL(link.url).hostname.split(".")[0] ?? "") : "";

const scriptedDaemon = (script: DaemonScript) =>
  Layer.succeed(DaemonClient, {
    prepare: () => Effect.void,
    claim: (_link, _context, claim) => Effect.suspend(() => script.claim?.(claim) ?? Effect.void),
    health: (link) =>
      Effect.suspend((): Effect.Effect<DaemonHealth, DaemonUnreachable | DaemonOutdated> =>
        script.isOutdated?.(sandboxOf(link)) === true
          ? Effect.fail(new DaemonOutdated({ protocol: 0 }))
          : script.health === null
            ? Effect.fail(new DaemonUnreachable({ message: "no daemon answers" }))
            : Effect.succeed(script.health),
      ),
    turn: () => Effect.suspend(() => script.turn ?? Effect.never),
    logs: () => Stream.never,
    conversation: (_link, { after }) => Stream.suspend(() => script.conversation?.(after) ?? Stream.never),
    hand: (...asked) => Effect.suspend(() => (script.steering ?? unsteered).hand(...asked)),
    attach: (...asked) => Effect.suspend(() => (script.steering ?? unsteered).attach(...asked)),
    interrupt: (...asked) => Effect.suspend(() => (script.steering ?? unsteered).interrupt(...asked)),
    answer: (...asked) => Effect.suspend(() => (script.steering ?? unsteered).answer(...asked)),
    models: (...asked) => Effect.suspend(() => (script.steering ?? unsteered).models(...asked)),
    output: (_link, _context, item) => Effect.suspend(() => script.output?.(item) ?? Effect.succeed(null)),
    ports: () => Effect.succeed([]),
    withdraw: () => Effect.void,
    workspace: emptyWorkspace,
    abort: () => Effect.suspend(() => script.abort ?? Effect.succeed(false)),
    goOn: (link) => Effect.sync(() => void script.released.push(sandboxOf(link))),
    saveByPush: () => Effect.succeed({ wip: null, skipped: [], error: null }),
    saving: {
      ...emptySaving,
      retire: (link) => Effect.sync(() => void script.retired.push(sandboxOf(link))),
      restore: (_link, _context, { body }) =>
        Effect.promise(async () => {
          script.given.push((await buffer(body)).toString("utf8"));
          return notRestored("given by a test");
        }),
    },
    env: (_link, _context, change) =>
      Effect.as(
        Effect.suspend(() => script.env(change)),
        {
          changed: Object.keys(change.env),
          revision: change.revision,
          restarted: true,
          turn_interrupted: false,
        },
      ),
  });

export const SPEC_OPTIONS: SpecOptions = {
  cloneCredentialTtlMs: 3_600_000,
  internalUrl: "http://platform.internal",
  egressAllow: [],
  gateway: null,
  bootTimeoutMs: 120_000,
};

const entity = { maxIdleMs: IDLE_MS };
const entities = Layer.mergeAll(
  sessionActors({ ...entity, nodeId: "node-1" }),
  sandboxActors({
    ...entity,
    ...SPEC_OPTIONS,
    saveTimeoutMs: SAVE_TIMEOUT_MS,
    saveEveryMs: SAVE_EVERY_MS,
    requestTtlMs: REQUEST_TTL_MS,
  }),
  accountActors({ ...entity, bootTimeoutMs: 120_000 }),
  conversationActors(entity),
  environmentBuildActors(entity),
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      environmentsLayer({ nodeId: "node-1", refreshMs: REFRESH_MS }),
      buildingLayer({ nodeId: "node-1", atOnce: 1, basesMs: 3_600_000 }),
    ),
  ),
  Layer.provideMerge(actorsLayer),
  Layer.provideMerge(singleRunner),
);

/** Waits in steps of the test clock until the condition holds. */
export const until = Effect.fnUntraced(function* <E, R>(holds: Effect.Effect<boolean, E, R>) {
  for (let step = 0; step < 6_000; step += 1) {
    if (yield* holds) return;
    yield* TestClock.adjust("50 millis");
  }
  return yield* Effect.die(new Error("the expected state was not reached"));
});

/** The answer of an effect that needs the test clock to advance. */
export const answered = Effect.fnUntraced(function* <A, E, R>(asked: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(asked);
  yield* until(Effect.sync(() => fiber.pollUnsafe() !== undefined));
  return yield* Fiber.join(fiber);
});

const close = (scope: Scope.Closeable) => answered(Scope.close(scope, Exit.void));

/** Builds a layer with actors in it. It closes with `end` or with the test, while the clock advances. */
export const opened = Effect.fnUntraced(function* <A, E, R>(layer: Layer.Layer<A, E, R>) {
  const scope = yield* Effect.acquireRelease(Scope.make(), close);
  const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope);
  return { context, scope, end: close(scope) };
});

export interface WorldOptions {
  /** The account's slots. */
  readonly cap?: number;
  /** Wraps the repositories that the actors use. */
  readonly git?: (backend: GitBackend["Service"]) => GitBackend["Service"];
  /** Wraps the store of conversations that the actors use. */
  readonly talks?: (store: Conversations["Service"]) => Conversations["Service"];
  /** How many sandboxes may boot at once. Absent: unbounded. */
  readonly bootsAtOnce?: number;
  /** Sessions take sandboxes that wait. */
  readonly isWarm?: boolean;
}

/** One life of the service's actors. `end` closes it, and the next life takes over its leftovers. */
export const openActorsWorld = Effect.fnUntraced(function* ({
  cap = 10,
  git = (backend) => backend,
  talks = (store) => store,
  bootsAtOnce,
  isWarm = false,
}: WorldOptions = {}) {
  yield* TestClock.setTime(NOON);
  const script: DaemonScript = {
    health: READY,
    retired: [],
    released: [],
    given: [],
    env: () => Effect.die(new Error("no secret changes here")),
  };
  const site = new SimulatedSite();
  const saves = new SimulatedSaves();
  const twins = yield* Layer.build(
    Layer.mergeAll(
      saves.layer,
      simulatedBackend,
      simulatedProvider({ bootMs: CREATE_MS }),
      scriptedDaemon(script),
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      conversationHubLayer,
      Layer.succeed(BuildSite, site.service),
    ).pipe(Layer.provideMerge(Layer.provideMerge(proposedWorkLayer, memoryStore))),
  );
  const ports = Context.add(twins, GitBackend, git(Context.get(twins, GitBackend))).pipe(
    Context.add(Conversations, talks(Context.get(twins, Conversations))),
  );
  const inPorts = Effect.provideContext(ports);
  const world = yield* inPorts(makeWorldWithRepository(cap));
  const begin = Effect.gen(function* () {
    const pool = isWarm ? warmPoolLayer({ nodeId: "node-1", warmMemoryMb: WARM_MB }) : Layer.empty;
    const places = bootsAtOnce === undefined ? Layer.empty : bootPlacesLayer(bootsAtOnce);
    const { context, scope, end } = yield* opened(
      entities.pipe(Layer.provide([places, pool]), Layer.provide(Layer.succeedContext(ports))),
    );
    const actors = Context.get(context, Actors);
    yield* Effect.forkIn(Effect.provideService(inPorts(recover), Actors, actors), scope);
    return { actors, end };
  });
  const statusOf = (id: string) => Effect.map(Context.get(ports, Sessions).get(id), (row) => row?.status);
  const newestSandbox = (sessionId: string) => Context.get(ports, Sandboxes).newest(sessionId);
  return {
    world,
    script,
    saves,
    begin,
    site,
    sandboxes: Context.get(ports, SimulatedSandboxes),
    inPorts,
    statusOf,
    newestSandbox,
    admit: inPorts(admitSession(world)),
    session: (id: string) => Effect.map(Context.get(ports, Sessions).get(id), (row) => row ?? null),
    untilSession: (id: string, status: SessionStatus) =>
      until(Effect.map(statusOf(id), (now) => now === status)),
    untilSandbox: (sessionId: string, status: SandboxStatus) =>
      until(Effect.map(newestSandbox(sessionId), (row) => row?.status === status)),
    /** The kept logs of the session, boot after boot. */
    keptLogs: Effect.fnUntraced(function* (sessionId: string) {
      const logs = Context.get(ports, SessionLogs);
      const kept = (yield* logs.boots(sessionId)).filter(({ isKept }) => isKept);
      return yield* Effect.forEach(kept, ({ sandboxId }) => logs.read(sandboxId));
    }),
    /** The provider's sandboxes, by id. */
    running: Effect.map(Context.get(ports, SimulatedSandboxes).all, (all) => [...all.keys()]),
  };
});
