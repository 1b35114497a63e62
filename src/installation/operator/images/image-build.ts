/** `platform images build`: builds an image for sandboxes from a directory on this machine. */
import { randomUUID } from "node:crypto";
import path from "node:path";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as ManagedRuntime from "effect/ManagedRuntime";
import * as Stream from "effect/Stream";
import { thrownText } from "../../../ground/thrown.ts";
import { operatorBuilder } from "../../../assembly/adapters.ts";
import { buildahBuilder } from "../../../builder/buildah/buildah.ts";
import {
  type BuildEvent,
  BuildError,
  type BuildLimits,
  type BuildRequest,
  EnvironmentBuilder,
} from "../../../builder/port.ts";
import type { Image, ImageFacts } from "../../../sandbox/images/image.ts";
import { prepareRoot } from "../../../sandbox/images/unpack/mount-points.ts";
import { claimDataDirectory, DataDirectoryOwned } from "../../../store/data-directory.ts";
import type { Environment } from "../../../cli/configuration.ts";
import { EXIT, Failure } from "../../../cli/failure.ts";
import { requireInstallation } from "./images.ts";

const GIB = 1024 ** 3;
/** How much one build of an operator may use. */
const LIMITS: BuildLimits = {
  seconds: 60 * 60,
  memoryBytes: 4 * GIB,
  diskBytes: 32 * GIB,
  processes: 2048,
  logBytes: 64 * 1024 * 1024,
  imageBytes: 32 * GIB,
  imageFiles: 2_000_000,
};
/** Builds of operators share their layers. */
const LAYERS = "operator";

export interface BuildWish {
  readonly name: string;
  /** The context. */
  readonly directory: string;
  /** The Dockerfile's path within it. */
  readonly file: string;
  readonly target: string | null;
  readonly args: Readonly<Record<string, string>>;
}

const buildFailed = (message: string): Failure => new Failure(EXIT.refused, "build_failed", { message });

/** The failed step's output was shown when it came. */
const toFailure = (error: unknown): Failure => {
  if (error instanceof BuildError) {
    return buildFailed(`The build failed: ${error.message}.`);
  }
  if (error instanceof DataDirectoryOwned)
    return buildFailed(
      `Another \`platform images build\` is running (process id ${error.pid}). Wait until it ends.`,
    );
  return buildFailed(thrownText(error));
};

/** A line for each step, and the output as it comes. */
const eventLines = (event: BuildEvent): readonly string[] => {
  switch (event.kind) {
    case "step":
      return [`step ${event.step}, line ${event.line}: ${event.instruction}`];
    case "log":
      return event.text.trimEnd().split("\n");
    case "exporting":
    case "built":
      return [];
  }
};

/** Runs one build into an empty directory. @throws Failure */
const build = async (
  environment: Environment,
  request: BuildRequest,
  note: (line: string) => void,
): Promise<ImageFacts> => {
  const { config, installation } = requireInstallation(environment);
  const options = operatorBuilder({ config, dataDir: config.dataDir, installation });
  const runtime = ManagedRuntime.make(buildahBuilder(options));
  const building = Effect.gen(function* () {
    yield* claimDataDirectory(options.directory);
    const builder = yield* Effect.promise(() => runtime.runPromise(EnvironmentBuilder));
    return yield* Stream.runFold(
      builder.build(request),
      (): ImageFacts | null => null,
      (former, event) => {
        eventLines(event).forEach(note);
        return event.kind === "built" ? { digest: event.digest, ...event.config } : former;
      },
    );
  });
  const exit = await Effect.runPromiseExit(Effect.scoped(building)).finally(() => runtime.dispose());
  if (Exit.isFailure(exit)) throw toFailure(Cause.squash(exit.cause));
  if (exit.value === null) throw buildFailed("The build ended without an image.");
  return exit.value;
};

/**
 * Builds an image and gives it a name.
 * @param note gets the build's output, line by line
 */
export const buildImage = (
  environment: Environment,
  { name, directory, file, target, args }: BuildWish,
  note: (line: string) => void,
): Effect.Effect<Image, Failure> =>
  Effect.tryPromise({
    try: () =>
      requireInstallation(environment).store.add(name, async (draft) => {
        const facts = await build(
          environment,
          {
            id: randomUUID(),
            contextDirectory: path.resolve(directory),
            dockerfile: file,
            target,
            args,
            secrets: {},
            layerStore: LAYERS,
            pull: "newer",
            egressAllow: requireInstallation(environment).config.egressAllow,
            limits: LIMITS,
            output: draft,
          },
          note,
        );
        await prepareRoot(path.join(draft, "root"));
        return facts;
      }),
    catch: (error) => (error instanceof Failure ? error : toFailure(error)),
  });
