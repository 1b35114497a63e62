/** `platform images`: the images of sandboxes on this machine. */
import { existsSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { toError } from "../../../ground/thrown.ts";
import type { Environment } from "../../../cli/configuration.ts";
import { agentBinaries } from "../../../sandbox/bundle/agent-binaries.ts";
import { imagesDirectory } from "../../../assembly/adapters.ts";
import { readConfig } from "../../../settings/config.ts";
import { openInstallation } from "../../../store/installation.ts";
import type { Image, NamedImage } from "../../../sandbox/images/image.ts";
import { unpackingProgram } from "../../../assembly/sandbox-programs.ts";
import { importImage } from "../../../sandbox/images/import.ts";
import { ImageStore } from "../../../sandbox/images/store.ts";
import { makeRuntimeBundle } from "../../../sandbox/machine/installation.ts";
import { openRunDirectory, runDirectoryPath } from "../../../sandbox/machine/disk/run-directory.ts";
import { findTools } from "../../../sandbox/machine/tools.ts";
import { EXIT, Failure } from "../../../cli/failure.ts";
import { unreadable } from "../named-file.ts";

const imageFailure = (message: string): Failure => new Failure(EXIT.refused, "failed", { message });

/** The installation of this environment's data directory, with its images. @throws Failure if it does not exist */
export const requireInstallation = (environment: Environment) => {
  const config = readConfig(environment, process.cwd());
  const { dataDir } = config;
  if (!existsSync(path.join(dataDir, "installation-id"))) {
    throw imageFailure(
      `${dataDir} has no installation. Start the service once, or set PLATFORM_DATA_DIR to its data directory.`,
    );
  }
  // The ids exist, so the time is not used.
  const installation = openInstallation(dataDir, 0);
  return { config, installation, store: new ImageStore(imagesDirectory({ config, dataDir, installation })) };
};

/** Imports an archive under a name. */
export const importArchive = (
  environment: Environment,
  { name, file }: { readonly name: string; readonly file: string },
): Effect.Effect<Image, Error> =>
  Effect.tryPromise({
    try: async () => {
      const { config, installation, store } = requireInstallation(environment);
      const archive = path.resolve(file);
      const fault = await unreadable(archive);
      if (fault !== null)
        throw imageFailure(`${archive} cannot be imported: ${fault}. Give the path of an image's archive.`);
      const { bwrap } = findTools(config.path);
      if (bwrap === null)
        throw imageFailure("An image is unpacked in a sandbox, which needs bubblewrap. Install it.");
      const runDir = runDirectoryPath(installation.installationId);
      await openRunDirectory(runDir);
      const bundle = await makeRuntimeBundle({
        runDir,
        nodePath: process.execPath,
        agentBinaries: agentBinaries(config.runtimes, config.path),
        path: config.path,
      });
      return importImage(
        { store, bundle, bwrap, unpacker: await unpackingProgram() },
        { name, file: archive },
      );
    },
    catch: (error) => toError(error),
  });

export const listImages = (environment: Environment): Effect.Effect<readonly NamedImage[]> =>
  Effect.promise(() => requireInstallation(environment).store.list());

/** @returns false if no image has the name */
export const removeImage = (environment: Environment, name: string): Effect.Effect<boolean> =>
  Effect.promise(() => requireInstallation(environment).store.remove(name));
