/** A project with a Dockerfile, its builds' actors and its sandboxes' boots, over the twins of store, repositories and site. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { Actors } from "../../../src/services/actors.ts";
import { actorsLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { environmentBuildActors } from "../../../src/features/environments/environment-build-actor.ts";
import { BuildSite } from "../../../src/builder/site/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import type { BuildFailure } from "../../../src/domain/environment/build-failure.ts";
import type { BuildSource } from "../../../src/domain/environment/environment-source.ts";
import { simulatedBackend, SimulatedRepositories } from "../../twins/git/repositories.ts";
import { buildingLayer } from "../../../src/services/environments/building.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { Environments, environmentsLayer } from "../../../src/services/environments/environments.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { EnvironmentBuilds } from "../../../src/store/ports/projects/environment-builds.ts";
import type { GoodManifest } from "../../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { answered, opened, until } from "./actors.ts";
import { sourceOf } from "./environment-builds.ts";
import { admitSession, openSandbox } from "./sessions.ts";
import { makeWorldWithRepository, NOON } from "./world.ts";

export const NODE = "node-1";
/** How old an image's base images may be here. */
export const REFRESH_MS = 600_000;

const entities = environmentBuildActors({ maxIdleMs: 60_000 }).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      environmentsLayer({ nodeId: NODE, refreshMs: REFRESH_MS }),
      buildingLayer({ nodeId: NODE, atOnce: 1, basesMs: 3_600_000 }),
    ),
  ),
  Layer.provide(keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] })),
  Layer.provideMerge(actorsLayer),
  Layer.provideMerge(singleRunner),
);

/** A commit with this Dockerfile on the default branch, as a build reads it. The text is its key. */
export const commitDockerfile = Effect.fnUntraced(function* (projectId: string, text: string) {
  const { commit } = yield* SimulatedRepositories;
  const at = { branch: "main", onto: null, files: { ".platform/Dockerfile": text }, subject: "environment" };
  return { ...sourceOf(text), commit: yield* commit({ projectId }, at) };
});

/** A manifest with a Dockerfile, or none. */
export const manifestOf = (source: BuildSource | null, text = ""): GoodManifest => ({
  bringsModel: null,
  commit: source?.commit ?? "c".repeat(40),
  text,
  agents: [],
  environment: source,
});

export interface EnvironmentsWish {
  /** False: nothing is built on the node. */
  readonly builds?: boolean;
}

/**
 * One node with one project, at noon. `begin` opens a life of its actors; the next one begins after the end of the one
 * before. Effects that a test runs inside see all services of the first life.
 */
export const openEnvironments = Effect.fnUntraced(function* ({
  builds: isBuilding = true,
}: EnvironmentsWish = {}) {
  yield* TestClock.setTime(NOON);
  const site = new SimulatedSite();
  /** Builds whose images sandboxes were noted to boot on. */
  const uses: string[] = [];
  const twins = yield* Layer.build(
    Layer.mergeAll(
      memoryStore,
      simulatedBackend,
      Layer.succeed(BuildSite, {
        ...site.service,
        builder: isBuilding ? site.service.builder : null,
        noteUse: (id) => Effect.sync(() => void uses.push(id)),
      }),
    ),
  );
  const inPorts = Effect.provideContext(twins);
  const world = yield* inPorts(makeWorldWithRepository(20));
  const { projectId } = world;
  const ledger = Context.get(twins, EnvironmentBuilds);
  const all = Effect.map(ledger.list(projectId, { limit: 100, cursor: null }), ({ items }) => items);

  const begin = Effect.gen(function* () {
    const { context, end } = yield* opened(entities.pipe(Layer.provide(Layer.succeedContext(twins))));
    const environments = Context.get(context, Environments);
    const actors = Context.get(context, Actors);
    /** A new session's sandbox, which asks what it boots on. */
    const booting = Effect.fnUntraced(function* (manifest: GoodManifest | null, nodeId = NODE) {
      const { id } = yield* inPorts(Effect.flatMap(admitSession(world), (session) => openSandbox(session)));
      const boot = environments.forBoot({ id, nodeId }, { projectId, manifest });
      const fiber = yield* Effect.forkChild(Effect.result(boot), { startImmediately: true });
      const record = Effect.map(Context.get(twins, Sandboxes).get(id), (row) => row ?? null);
      return { fiber, noted: Effect.map(record, (row) => row?.environment ?? null), record };
    });
    /** Boots, while the clock goes on. @returns the image, or the failure's message, with the noted environment */
    const boot = Effect.fnUntraced(function* (source: BuildSource | null) {
      const { fiber, noted } = yield* booting(manifestOf(source));
      const result = yield* answered(Fiber.join(fiber));
      const environment = yield* noted;
      return result._tag === "Success"
        ? { image: result.success.image, message: null, environment }
        : { image: null, message: result.failure.message, environment };
    });
    /** Builds a Dockerfile for a boot. @returns the build's id */
    const built = Effect.fnUntraced(function* (source: BuildSource) {
      const { environment } = yield* boot(source);
      return environment?.buildId ?? (yield* Effect.die("nothing was built"));
    });
    return { environments, actors, booting, boot, built, end };
  });

  return {
    site,
    uses,
    world,
    ledger,
    begin,
    inPorts,
    all,
    /** How many builds were begun so far. */
    count: Effect.map(all, (rows) => rows.length),
    newest: Effect.map(all, ([row]) => row ?? null),
    commit: (text: string) => inPorts(commitDockerfile(projectId, text)),
    /** What becomes of builds from now on. Without an order, they succeed at once. */
    plan: (to: { readonly failure?: BuildFailure; readonly stepsMs?: number }) => {
      site.plan = () => ({ stepsMs: to.stepsMs ?? 0, exportMs: 0, failure: to.failure ?? null });
    },
    untilStatus: (id: string, status: string) =>
      until(Effect.map(ledger.get(id), (row) => row?.status === status)),
  };
});
