/** Builds with the real buildah, for the tests that need it: one builder for each file, with directories of its own. */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as ManagedRuntime from "effect/ManagedRuntime";
import * as Stream from "effect/Stream";
import { buildahBuilder } from "../../src/builder/buildah/buildah.ts";
import type { BuildahOptions } from "../../src/builder/buildah/installation.ts";
import { firstBlockUid } from "../../src/builder/buildah/layer-stores.ts";
import { findBuildTools } from "../../src/builder/buildah/requirements.ts";
import type { BuildFailure } from "../../src/domain/environment/build-failure.ts";
import {
  type BuildEvent,
  type BuildLimits,
  type BuildRequest,
  EnvironmentBuilder,
  ImageFile,
} from "../../src/builder/port.ts";
import { processesSeeing } from "../../src/sandbox/machine/processes.ts";
import { busyboxTar } from "../support/machine/tars.ts";
import * as Schema from "effect/Schema";

const INSTALLATION = "4a0f5f0e-builder-test";
const path = process.env["PATH"] ?? "";

const lacks = (): string => {
  const found = findBuildTools(path, firstBlockUid(INSTALLATION));
  if ("problem" in found) return found.problem;
  return existsSync("/bin/busybox") ? "" : "install busybox-static";
};
/** What this machine lacks to build images. Empty if it lacks nothing. */
export const missing = lacks();

const MIB = 1024 * 1024;
export const LIMITS: BuildLimits = {
  seconds: 240,
  memoryBytes: 1024 * MIB,
  diskBytes: 256 * MIB,
  processes: 300,
  logBytes: MIB,
  imageBytes: 64 * MIB,
  imageFiles: 2000,
};

export interface Built {
  readonly request: BuildRequest;
  readonly events: readonly BuildEvent[];
  /** Null if the build succeeded. */
  readonly failure: BuildFailure | null;
  readonly log: string;
  /** The unpacked image. */
  readonly root: string;
  readonly image: ImageFile | null;
}

type Files = Readonly<Record<string, string | Uint8Array>>;
type Changes = Partial<Omit<BuildRequest, "limits">> & { readonly limits?: Partial<BuildLimits> };

const decodeImage = Schema.decodeUnknownSync(Schema.fromJsonString(ImageFile));

/** What image.json says. Null if the output is empty. */
export const readResult = async ({ output }: BuildRequest): Promise<ImageFile | null> => {
  const entries = (await readdir(output)).toSorted();
  if (entries.length === 0) return null;
  if (entries.join() !== "image.json,root") throw new Error(`the output has ${entries.join()}`);
  return decodeImage(await readFile(join(output, "image.json"), "utf8"));
};

/** The SHA-256 of a tree: names, modes, owners within the image and contents. */
const hashTree = (root: string): string =>
  execFileSync(
    "sh",
    ["-c", 'tar --sort=name --mtime=@0 --owner=0 --group=0 -C "$1" -cf - . | sha256sum', "hash", root],
    { encoding: "utf8" },
  );

export const openRealBuilder = async (changes: Partial<BuildahOptions> = {}) => {
  // On disk: an overlay in memory needs a newer kernel. Short: a socket is below it.
  const home = await mkdtemp("/var/tmp/pb-");
  await chmod(home, 0o711);
  const options: BuildahOptions = {
    directory: join(home, "data"),
    runDir: join(home, "run"),
    installationId: INSTALLATION,
    nodePath: process.execPath,
    path,
    storeBytes: 512 * MIB,
    storesBytes: 2048 * MIB,
    ...changes,
  };
  const runtime = ManagedRuntime.make(buildahBuilder(options));
  // One builder for all: it owns its directories.
  const layer = Layer.effect(
    EnvironmentBuilder,
    Effect.promise(() => runtime.runPromise(EnvironmentBuilder)),
  );
  const base = await busyboxTar();

  const prepare = async (files: Files, { limits, ...rest }: Changes = {}): Promise<BuildRequest> => {
    const id = randomUUID();
    const contextDirectory = join(home, "contexts", id);
    const output = join(home, "outputs", id);
    await mkdir(output, { recursive: true, mode: 0o700 });
    for (const [name, content] of Object.entries({ "base.tar": base, ...files })) {
      await mkdir(dirname(join(contextDirectory, name)), { recursive: true, mode: 0o700 });
      await writeFile(join(contextDirectory, name), content);
    }
    return {
      id,
      contextDirectory,
      dockerfile: "Dockerfile",
      target: null,
      args: {},
      secrets: {},
      layerStore: "project",
      egressAllow: [],
      pull: "missing",
      output,
      ...rest,
      limits: { ...LIMITS, ...limits },
    };
  };

  const run = async (request: BuildRequest): Promise<Built> => {
    const events: BuildEvent[] = [];
    const exit = await runtime.runPromiseExit(
      Effect.flatMap(EnvironmentBuilder, (builder) =>
        Stream.runForEach(builder.build(request), (event) => Effect.sync(() => void events.push(event))),
      ),
    );
    const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : null;
    if (error !== null && error._tag === "None") throw new Error(String(exit));
    return {
      request,
      events,
      failure: error === null ? null : error.value.failure,
      log: events.map((event) => (event.kind === "log" ? event.text : "")).join(""),
      root: join(request.output, "root"),
      image: await readResult(request),
    };
  };

  /** Everything of a build that is left on this machine, apart from its output and its layer store. */
  const leftovers = async ({ id }: BuildRequest): Promise<readonly string[]> => [
    ...processesSeeing(join(options.runDir, id)).map((pid) => `process ${pid}`),
    ...(existsSync(join(options.runDir, id)) ? ["run directory"] : []),
    ...(existsSync(join(options.directory, "builds", id)) ? ["work directory"] : []),
    ...(readFileSync("/proc/self/mountinfo", "utf8").includes(id) ? ["mount"] : []),
    ...execFileSync("find", ["/sys/fs/cgroup", "-maxdepth", "5", "-name", id], { encoding: "utf8" })
      .split("\n")
      .filter(Boolean),
  ];

  return {
    home,
    options,
    layer,
    prepare,
    run,
    leftovers,
    build: async (files: Files, asked: Changes = {}): Promise<Built> => run(await prepare(files, asked)),
    close: async (): Promise<void> => {
      await runtime.dispose();
      await rm(home, { recursive: true, force: true });
    },
  };
};
export type RealBuilder = Awaited<ReturnType<typeof openRealBuilder>>;

/** The beginning of most Dockerfiles here: two steps, two lines. */
export const BASE = "FROM scratch\nADD base.tar /\n";

/**
 * Another project. Each call is its next build, in its own layer store: one step runs anew each time, with the same result.
 * @returns a function that builds, and gives the hash of the image
 */
export const makeNeighbour = (real: RealBuilder): (() => Promise<string>) => {
  let turn = 0;
  return async () => {
    turn += 1;
    const Dockerfile = `${BASE}ARG TURN\nRUN : "$TURN"; echo innocent > /made && chmod 700 /made\n`;
    const asked = { layerStore: "neighbour", args: { TURN: String(turn) } };
    const { failure, root, log } = await real.build({ Dockerfile }, asked);
    if (failure !== null) throw new Error(`the neighbour's build failed: ${JSON.stringify(failure)}\n${log}`);
    return hashTree(root);
  };
};
