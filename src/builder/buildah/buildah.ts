/**
 * The builder `buildah`: images are built on this machine by buildah, in a sandbox of the service's own for each build
 * (launch.ts). No daemon and no container engine.
 *
 * A build takes its project's layer store (layer-stores.ts), runs its two phases (run.ts), and gives the store back. Builds
 * of different stores run side by side.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, writeFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Stream from "effect/Stream";
import { thrownText } from "../../ground/thrown.ts";
import { removeGroupNow } from "../../sandbox/machine/limits/cgroup.ts";
import { removeTree } from "../../sandbox/machine/disk/run-directory.ts";
import { type BuildFailure, describeBuildFailure } from "../../domain/environment/build-failure.ts";
import { BuildError, type BuildEvent, type BuildRequest, EnvironmentBuilder } from "../port.ts";
import {
  type BuildahVersion,
  noHereDocuments,
  parseBuildahVersion,
  readsHereDocuments,
} from "../buildah-version.ts";
import { findProgram } from "../../sandbox/machine/tools.ts";
import { readDockerfile } from "../context-file.ts";
import { buildError } from "./failure.ts";
import {
  type BuildahOptions,
  closeInstallation,
  type Installation,
  openInstallation,
} from "./installation.ts";
import { firstBlockUid, type LayerStore, LayerStores } from "./layer-stores.ts";
import { findBuildTools } from "./requirements.ts";
import { BuildRun } from "./run.ts";

/** A valid directory name that cannot lead elsewhere. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @throws Error for a mistake of the caller */
const checkRequest = async ({ id, layerStore, output }: BuildRequest): Promise<void> => {
  if (!ID.test(id)) throw new Error("a build's id is a lower-case UUID");
  if (layerStore === "") throw new Error("a build needs the key of its layer store");
  if ((await readdir(output)).length > 0) throw new Error("the output of a build must be empty");
};

/** A build under way. */
interface Running {
  /** Settles when the build has ended and left no trace. */
  readonly settled: Promise<void>;
  readonly stop: (failure: BuildFailure) => void;
}

/** All builds of one service. */
class Builds {
  readonly #options: BuildahOptions;
  readonly #installation: Installation;
  readonly #stores: LayerStores;
  readonly #running = new Set<Running>();
  #version: Promise<BuildahVersion | null> | null = null;

  private constructor(options: BuildahOptions, installation: Installation, stores: LayerStores) {
    this.#options = options;
    this.#installation = installation;
    this.#stores = stores;
  }

  static async open(options: BuildahOptions): Promise<Builds> {
    const installation = await openInstallation(options);
    const stores = await LayerStores.open(options.directory, options.installationId, options);
    return new Builds(options, installation, stores);
  }

  /** Null if the program is missing, or names its version in another form. */
  async version(): Promise<BuildahVersion | null> {
    const program = findProgram("buildah", this.#options.path);
    if (program === null) return null;
    this.#version ??= promisify(execFile)(program, ["--version"]).then(
      ({ stdout }) => parseBuildahVersion(stdout),
      () => null,
    );
    return this.#version;
  }

  get directory(): string {
    return this.#options.directory;
  }

  start(request: BuildRequest, emit: (event: BuildEvent) => void): Running {
    const stop = Promise.withResolvers<BuildFailure>();
    let run: BuildRun | null = null;
    const work = async (): Promise<void> => {
      await checkRequest(request);
      const { path, installationId } = this.#options;
      const search = findBuildTools(path, firstBlockUid(installationId));
      const version = "tools" in search ? await this.version() : null;
      const { stages } = await readDockerfile(request, { version });
      if ("problem" in search) throw buildError({ code: "builder_unavailable", problem: search.problem });
      const store = await this.#take(request.layerStore, stop.promise);
      const installation = this.#installation;
      run = new BuildRun({ installation, tools: search.tools, request, stages, store, emit });
      await run.run();
    };
    const running: Running = {
      settled: work().finally(() => this.#running.delete(running)),
      stop: (failure) => {
        stop.resolve(failure);
        run?.stop(failure);
      },
    };
    this.#running.add(running);
    return running;
  }

  /** Takes a layer store. A build that is stopped before does not wait until the store is free. */
  async #take(key: string, stop: Promise<BuildFailure>): Promise<LayerStore> {
    const taking = this.#stores.take(key);
    const first = await Promise.race([stop, taking]);
    if (!("code" in first)) return first;
    void taking.then(
      (store) => store.leave(),
      () => undefined,
    );
    throw buildError(first);
  }

  /** Ends all builds, and removes what they shared. */
  async close(): Promise<void> {
    const running = [...this.#running];
    for (const { stop } of running) stop({ code: "cancelled" });
    await Promise.allSettled(running.map(({ settled }) => settled));
    for (const { directory } of this.#installation.groupParents) removeGroupNow(directory);
    await closeInstallation(this.#installation);
  }
}

const asBuildError = (error: unknown): BuildError =>
  error instanceof BuildError
    ? error
    : buildError({
        code: "builder_unavailable",
        problem: thrownText(error),
      });

/** The stream of one build. Its scope ends when the build has left no trace (port.ts B2). */
const buildStream = (builds: Builds, request: BuildRequest): Stream.Stream<BuildEvent, BuildError> =>
  Stream.callback<BuildEvent, BuildError>((queue) =>
    Effect.gen(function* () {
      const running = yield* Effect.acquireRelease(
        Effect.sync(() => builds.start(request, (event) => Queue.offerUnsafe(queue, event))),
        ({ settled, stop }) =>
          Effect.promise(async () => {
            stop({ code: "cancelled" });
            await settled.catch(() => undefined);
          }),
      );
      yield* Effect.tryPromise({ try: () => running.settled, catch: asBuildError });
      yield* Queue.end(queue);
    }),
  );

const DOCTOR_LIMITS = {
  seconds: 60,
  memoryBytes: 512 * 1024 * 1024,
  diskBytes: 64 * 1024 * 1024,
  processes: 256,
  logBytes: 65_536,
  imageBytes: 1024 * 1024,
  imageFiles: 100,
};

const examine = Effect.fnUntraced(function* (builds: Builds) {
  const place = yield* Effect.promise(async () => {
    const directory = await mkdtemp(join(builds.directory, "doctor-"));
    await mkdir(join(directory, "context"));
    await mkdir(join(directory, "output"));
    await writeFile(join(directory, "context", "Dockerfile"), "FROM scratch\nCOPY Dockerfile /\n");
    return directory;
  });
  const request: BuildRequest = {
    id: randomUUID(),
    contextDirectory: join(place, "context"),
    dockerfile: "Dockerfile",
    target: null,
    args: {},
    secrets: {},
    layerStore: "doctor",
    egressAllow: [],
    pull: "missing",
    limits: DOCTOR_LIMITS,
    output: join(place, "output"),
  };
  const problem = yield* Stream.runDrain(buildStream(builds, request)).pipe(
    Effect.as(null),
    Effect.catch(({ failure }) =>
      Effect.succeed(
        failure.code === "builder_unavailable" ? failure.problem : describeBuildFailure(failure),
      ),
    ),
    Effect.ensuring(Effect.promise(() => removeTree(place))),
  );
  const version = yield* Effect.promise(() => builds.version());
  const isOld = version !== null && !readsHereDocuments(version);
  return {
    builder: "buildah",
    usable: problem === null,
    problem,
    ...(isOld && { note: noHereDocuments(version) }),
  };
});

/**
 * The builder as a layer. If this machine lacks something, the layer is made all the same, and each build fails with
 * `builder_unavailable`. Its scope ends all builds.
 */
export const buildahBuilder = (options: BuildahOptions): Layer.Layer<EnvironmentBuilder, BuildError> =>
  Layer.effect(
    EnvironmentBuilder,
    Effect.gen(function* () {
      const builds = yield* Effect.acquireRelease(
        Effect.tryPromise({ try: () => Builds.open(options), catch: asBuildError }),
        (opened) => Effect.promise(() => opened.close()),
      );
      return EnvironmentBuilder.of({
        name: "buildah",
        build: (request) => buildStream(builds, request),
        doctor: examine(builds),
      });
    }),
  );
