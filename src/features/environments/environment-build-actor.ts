/** Makes happen what the machine of a build decides: runs it on its node, or ends it. */
import * as Effect from "effect/Effect";
import {
  environmentBuild,
  type EnvironmentBuildCommand,
  type EnvironmentBuildEvent,
} from "../../machines/environment-build.ts";
import { Building } from "../../services/environments/building.ts";
import { EnvironmentBuilds } from "../../store/ports/projects/environment-builds.ts";
import { actorLayer, type EntityOptions } from "../../actors/cluster.ts";
import { startActor, type ActorLimits, type Handlers } from "../../actors/host.ts";

export const ENVIRONMENT_BUILD_LIMITS: ActorLimits = {
  mailbox: 64,
  restarts: { restarts: 2, withinMs: 60_000 },
};

/** How often a build is begun. A build during which the service ends that often is given up. */
export const TRIES_MAX = 3;

/** The entities of builds. Their rows are opened by services/environments/environments.ts. */
export const environmentBuildActors = (options: EntityOptions) =>
  actorLayer(
    "environmentBuild",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* EnvironmentBuilds;
      return yield* startActor({
        id,
        machine: environmentBuild,
        memory,
        handlers: yield* makeHandlers(id),
        ...ENVIRONMENT_BUILD_LIMITS,
      });
    }),
    { ...options, again: null },
  );

const buildFailed = (failure: Extract<EnvironmentBuildEvent, { type: "build.failed" }>["failure"]) =>
  ({ type: "build.failed", failure }) as const;

const makeHandlers = Effect.fnUntraced(function* (id: string) {
  const { get } = yield* EnvironmentBuilds;
  const building = yield* Building;
  return {
    buildImage: {
      perform: () =>
        Effect.gen(function* () {
          const build = yield* get(id);
          if (build === null) return yield* Effect.die(new Error(`build ${id} has no row`));
          if (build.tries >= TRIES_MAX) return buildFailed({ code: "interrupted", times: build.tries });
          return yield* building.run(build);
        }),
      gaveUp: (_, reason) =>
        buildFailed({
          code: "builder_unavailable",
          problem: `the service failed during the build: ${reason}`,
        }),
    },
    endBuild: {
      supersedes: ["buildImage"],
      perform: () =>
        Effect.gen(function* () {
          const build = yield* get(id);
          if (build !== null) yield* building.end(build);
          return undefined;
        }),
    },
  } satisfies Handlers<EnvironmentBuildEvent, EnvironmentBuildCommand>;
});
