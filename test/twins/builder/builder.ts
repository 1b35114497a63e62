/**
 * The twin of every builder: it builds at once, or does what a test told it. `SimulatedBuilds` is the test's side. Time is
 * Effect's Clock.
 */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import type { BuildFailure } from "../../../src/domain/environment/build-failure.ts";
import {
  BuildError,
  type BuildEvent,
  type BuildRequest,
  EnvironmentBuilder,
  type ImageConfig,
  type ImageFile,
} from "../../../src/builder/port.ts";

/** What becomes of a build. */
export type SimulatedOutcome =
  | { readonly kind: "built"; readonly config?: Partial<ImageConfig> }
  | { readonly kind: "failed"; readonly failure: BuildFailure }
  /** Runs until it is interrupted, or its time is over. */
  | { readonly kind: "hang" };

export interface SimulatedPlan {
  readonly outcome: SimulatedOutcome;
  /** Events before the end. The default is one step. */
  readonly events?: readonly Exclude<BuildEvent, { readonly kind: "built" }>[];
  /** Milliseconds until the end. The default is 0. */
  readonly delayMs?: number;
}

export class SimulatedBuilds extends Context.Service<
  SimulatedBuilds,
  {
    /** What becomes of the build with this id. Without a plan, a build succeeds at once. */
    readonly plan: (id: string, plan: SimulatedPlan) => Effect.Effect<void>;
    /** The requests of all builds, in the order of their starts. */
    readonly requests: Effect.Effect<readonly BuildRequest[]>;
    /** Ids of the builds under way. */
    readonly running: Effect.Effect<ReadonlySet<string>>;
  }
>()("platform/builder/SimulatedBuilds") {}

export interface SimulatedBuilderOptions {
  /** Puts the result into a request's output. The default puts it nowhere. */
  readonly write?: (output: string, image: ImageFile) => Effect.Effect<void>;
}

const STEP: BuildEvent = { kind: "step", step: 1, line: 1, instruction: "FROM scratch" };
const DEFAULT_PLAN: SimulatedPlan = { outcome: { kind: "built" } };

/** The same inputs give the same digest. */
const digestOf = ({ contextDirectory, dockerfile, target, args }: BuildRequest): string => {
  const inputs = JSON.stringify([contextDirectory, dockerfile, target, Object.entries(args).toSorted()]);
  return `sha256:${createHash("sha256").update(inputs).digest("hex")}`;
};

const fail = (failure: BuildFailure) => Effect.fail(new BuildError({ failure }));

const make = (options: SimulatedBuilderOptions): Context.Context<EnvironmentBuilder | SimulatedBuilds> => {
  const plans = new Map<string, SimulatedPlan>();
  const requests: BuildRequest[] = [];
  const running = new Set<string>();
  const write = options.write ?? (() => Effect.void);

  const end = (request: BuildRequest, outcome: SimulatedOutcome): Effect.Effect<BuildEvent, BuildError> => {
    switch (outcome.kind) {
      case "failed":
        return fail(outcome.failure);
      case "hang": {
        const { seconds } = request.limits;
        return Effect.delay(fail({ code: "timeout", seconds }), seconds * 1000);
      }
      case "built": {
        const digest = digestOf(request);
        const config = { env: {}, user: "", workdir: "", bytes: 0, files: 1, ...outcome.config };
        return Effect.as(write(request.output, { version: 1, digest, ...config }), {
          kind: "built",
          digest,
          config,
        });
      }
    }
  };

  const build = (request: BuildRequest): Stream.Stream<BuildEvent, BuildError> =>
    Stream.suspend(() => {
      const { outcome, events, delayMs } = plans.get(request.id) ?? DEFAULT_PLAN;
      requests.push(request);
      running.add(request.id);
      const last = Effect.gen(function* () {
        if (delayMs !== undefined) yield* Effect.sleep(delayMs);
        return yield* end(request, outcome);
      });
      return Stream.concat(Stream.fromIterable(events ?? [STEP]), Stream.fromEffect(last)).pipe(
        Stream.ensuring(Effect.sync(() => running.delete(request.id))),
      );
    });

  const builder = EnvironmentBuilder.of({
    name: "simulated",
    build,
    doctor: Effect.succeed({ builder: "simulated", usable: true, problem: null }),
  });
  const control = SimulatedBuilds.of({
    plan: (id, plan) => Effect.sync(() => void plans.set(id, plan)),
    requests: Effect.sync(() => [...requests]),
    running: Effect.sync(() => new Set(running)),
  });
  return Context.make(EnvironmentBuilder, builder).pipe(Context.add(SimulatedBuilds, control));
};

/** The twin, with the test's side. */
export const simulatedBuilder = (
  options: SimulatedBuilderOptions = {},
): Layer.Layer<EnvironmentBuilder | SimulatedBuilds> => Layer.effectContext(Effect.sync(() => make(options)));
