/** `platform images runtime`: what the runtime image of sandboxes in a cluster is built from. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import * as Effect from "effect/Effect";
import { thrownText } from "../../../ground/thrown.ts";
import { agentBinaries } from "../../../sandbox/bundle/agent-binaries.ts";
import { readConfig } from "../../../settings/config.ts";
import { NotBuilt } from "../../../ground/build-cache.ts";
import { sandboxPrograms } from "../../../assembly/sandbox-programs.ts";
import { makeBundle } from "../../../sandbox/bundle/bundle.ts";
import { writeRuntime } from "../../../sandbox/kubernetes/runtime.ts";
import { findProgram } from "../../../sandbox/machine/tools.ts";
import type { Environment } from "../../../cli/configuration.ts";
import { EXIT, Failure } from "../../../cli/failure.ts";

/** The image has our programs and nothing else: they bring the libraries that they need. */
const DOCKERFILE = "FROM scratch\nCOPY opt /opt\n";

const toFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure(EXIT.refused, "failed", {
        message: thrownText(error),
      });

const hashFile = async (file: string): Promise<string> => {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
};

/** An image must not have what happens to lie there. @throws Failure */
const emptyDirectory = async (directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0)
    throw new Failure(EXIT.refused, "not_empty", {
      message: `${directory} is not empty. Name a new directory.`,
    });
};

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(path.join(tmpdir(), "platform-runtime-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
);

/**
 * Writes the build context, with the programs of this machine and this version of the service.
 * @returns the programs of the agent runtime that are in it
 */
export const writeRuntimeContext = Effect.fnUntraced(function* (environment: Environment, target: string) {
  const config = readConfig(environment, process.cwd());
  const directory = path.resolve(target);
  // The users of a sandbox read the files.
  process.umask(0o022);
  yield* Effect.tryPromise({ try: () => emptyDirectory(directory), catch: toFailure });
  const temporary = yield* temporaryDirectory;
  const programs = yield* sandboxPrograms(temporary).pipe(
    Effect.catchDefect((defect) =>
      defect instanceof NotBuilt ? Effect.fail(toFailure(defect)) : Effect.die(defect),
    ),
  );
  const binaries = agentBinaries(config.runtimes, config.path);
  return yield* Effect.tryPromise({
    try: async () => {
      const bundle = await makeBundle({
        directory: temporary,
        nodePath: process.execPath,
        agentBinaries: binaries,
        find: (name) => findProgram(name, config.path),
        hash: hashFile,
      });
      const { daemonBundle: daemon, commandLine } = programs;
      await writeRuntime({ bundle, daemon, commandLine }, directory);
      await writeFile(path.join(directory, "Dockerfile"), DOCKERFILE);
      return { directory, agents: binaries.map((file) => path.basename(file)) };
    },
    catch: toFailure,
  });
}, Effect.scoped);
