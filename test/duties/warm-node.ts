/** A node with room for two waiting sandboxes, and a project whose manifest the test chooses. */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { Schedules, triggerActorId } from "../../src/actors/schedules.ts";
import { Timers } from "../../src/actors/timers.ts";
import { DUTIES } from "../../src/services/duties.ts";
import { warmPoolDuty } from "../../src/duties/warm-pool.ts";
import { simulatedBackend } from "../twins/git/repositories.ts";
import { DaemonClient, type DaemonHealth } from "../../src/sandbox/daemon.ts";
import { simulatedDaemon } from "../../src/sandbox/daemon-simulated.ts";
import { SimulatedSandboxes, simulatedProvider } from "../../src/sandbox/simulated.ts";
import {
  type BootEnvironment,
  EnvironmentFailed,
  Environments,
} from "../../src/services/environments/environments.ts";
import { directoryLayer } from "../../src/services/directory.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { WARM_MB, WarmPool, warmPoolLayer } from "../../src/services/sessions/warm-pool.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { WarmSandboxes } from "../../src/store/ports/sessions/warm-sandboxes.ts";
import { makeRepository, makeWorld, NOON } from "../support/world/world.ts";

export const NODE = "node-1";
export const BOOT_MS = 120_000;
export const PERIOD = DUTIES.warm_pool.periodMs;

const manifest = (text: string) => {
  const commit = createHash("sha1").update(text).digest("hex");
  return {
    commit,
    good: { bringsModel: null, commit, text, agents: [], environment: null },
    failure: null,
  };
};

const keeps = (warm: number) => `[environment]\nwarm = ${warm}\n`;

const SLUG = "tick";
export const cron = (expression: string) =>
  `[[triggers]]\nslug = "${SLUG}"\ntype = "cron"\ncron = "${expression}"\ntimezone = "UTC"\nprompt = "Go on."\n`;

/** All daemons: their answers, and the commits that they got. */
class Daemons {
  runtime: DaemonHealth["runtime"]["state"] = "ready";
  readonly prepared: string[] = [];
  readonly layer = Layer.effect(
    DaemonClient,
    Effect.map(DaemonClient, (twin) => ({
      ...twin,
      health: (link) =>
        Effect.map(twin.health(link), (health) => ({ ...health, runtime: { state: this.runtime } })),
      prepare: (_link, _context, { commit }) => Effect.sync(() => void this.prepared.push(commit)),
    })),
  ).pipe(Layer.provide(simulatedDaemon));
}

/** A node with room for two, and a project. */
export const openNode = Effect.gen(function* () {
  yield* TestClock.setTime(NOON);
  const daemons = new Daemons();
  /** On what a sandbox boots. Null: that cannot be had. `isBuilding`: it comes later. */
  const boots: { environment: BootEnvironment | null; isBuilding: boolean } = {
    environment: { image: null, variables: {} },
    isBuilding: false,
  };
  const environments = Layer.succeed(Environments, {
    builder: null,
    begin: () => Effect.succeed(null),
    prepare: () => Effect.void,
    renew: () => Effect.succeed(null),
    forBoot: () =>
      Effect.suspend(() => {
        if (boots.isBuilding) return Effect.never;
        return boots.environment === null
          ? Effect.fail(new EnvironmentFailed({ message: "no image" }))
          : Effect.succeed(boots.environment);
      }),
  });
  const store = yield* Layer.build(
    Layer.mergeAll(
      memoryStore,
      simulatedBackend,
      simulatedProvider({ bootMs: 1000 }),
      daemons.layer,
      environments,
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
    ),
  );
  const inStore = Effect.provideContext(store);
  const world = yield* inStore(makeWorld(20));
  yield* inStore(makeRepository(world.projectId));
  /** The timers of the node's triggers. */
  const schedules = new Schedules();
  const timers = Layer.succeed(Timers, {
    since: NOON,
    schedules,
    changed: Effect.void,
    arm: () => Effect.void,
    tellAgain: () => Effect.void,
  });
  const warm = Context.get(store, WarmSandboxes);
  /** The recipes that were recorded. `lost`: the answer to the next record is lost, and this happens then. */
  const records: { readonly recipes: string[]; lost: (() => void) | null } = { recipes: [], lost: null };
  const recording = Layer.succeed(WarmSandboxes, {
    ...warm,
    ready: (id, made) =>
      Effect.suspend(() => {
        const { lost } = records;
        records.recipes.push(made.recipe);
        records.lost = null;
        if (lost === null) return warm.ready(id, made);
        lost();
        return Effect.fail(new StoreError({ operation: "ready", cause: new Error("the answer was lost") }));
      }),
  });
  const duty = warmPoolDuty({
    nodeId: NODE,
    internalUrl: "http://platform.internal",
    egressAllow: [],
    gateway: null,
    bootTimeoutMs: BOOT_MS,
    cloneCredentialTtlMs: 3_600_000,
  }).pipe(
    Layer.provideMerge(warmPoolLayer({ nodeId: NODE, warmMemoryMb: 2 * WARM_MB })),
    Layer.provide(Layer.mergeAll(directoryLayer, timers, recording)),
    Layer.provide(Layer.succeedContext(store)),
  );
  /** Begins a life of the service. */
  const begin = Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void));
    const context = yield* Layer.buildWithScope(Layer.fresh(duty), scope);
    return { pool: Context.get(context, WarmPool), end: Scope.close(scope, Exit.void) };
  });
  const projects = Context.get(store, Projects);
  const reads = (text: string, projectId = world.projectId) =>
    projects.recordManifest(projectId, { ...manifest(text), now: NOON });
  const asks = (count: number) => reads(keeps(count));
  /** A trigger of the project is due at this instant. */
  const rings = (due: number, projectId = world.projectId) => {
    const [id, next] = [triggerActorId(projectId, SLUG), { due, schedule: "of the test" }];
    schedules.keep(projectId, new Map([[id, { ...next, from: NOON }]]));
    schedules.arm(id, next);
  };
  const sandboxes = Context.get(store, SimulatedSandboxes);
  return {
    world,
    daemons,
    boots,
    begin,
    projects,
    reads,
    asks,
    rings,
    warm,
    records,
    sandboxes,
    inStore,
    rows: warm.unclaimed(NODE),
    ready: Effect.map(warm.unclaimed(NODE), (rows) =>
      rows.filter(({ recipe }) => recipe !== null).map(({ id }) => id),
    ),
    running: Effect.map(sandboxes.all, (all) => [...all.keys()]),
  };
});

export const rounds = (count: number) => TestClock.adjust(count * PERIOD);
