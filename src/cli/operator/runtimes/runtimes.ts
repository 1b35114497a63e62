/** `platform runtimes`: the agent runtimes that this machine has for its sandboxes. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import { toError } from "../../../ground/thrown.ts";
import { installedAt, PACKAGE_PARTS } from "../../../domain/runtimes/installed.ts";
import type { RuntimePackage } from "../../../domain/runtimes/runtime.ts";
import { runtimesDirectory } from "../../../adapters.ts";
import { runShort } from "../../../starter/short.ts";
import { removeTree } from "../../../sandbox/machine/disk/run-directory.ts";
import { type InstalledRuntime, type NamedRuntime, RuntimeStore } from "../../../sandbox/runtimes/store.ts";
import { findProgram } from "../../../sandbox/machine/tools.ts";
import type { Environment } from "../../configuration.ts";
import { opened } from "../images/images.ts";
import { digestOf, unpackPackage, type Unpacked } from "../../../sandbox/runtimes/npm.ts";

const openStore = (environment: Environment) => {
  const { config, installation } = opened(environment);
  const place = { config, dataDir: config.dataDir, installation };
  return { config, store: new RuntimeStore(runtimesDirectory(place)) };
};

export interface RuntimeWish {
  readonly name: string;
  readonly version: string;
  /** The checksum that the package must have. Null: the registry's. */
  readonly integrity: string | null;
  readonly packaged: RuntimePackage;
}

/** The files that start the runtime exist: a package may lack a part for this processor. @throws Error */
const checkPrograms = ({ name, packaged }: RuntimeWish, root: string): void => {
  const { command, variables } = installedAt(packaged, {
    place: root,
    node: "node",
    arch: process.arch,
    files: "",
  });
  const missing = [...command, ...Object.values(variables)].find(
    (word) => word.startsWith(root) && !existsSync(word),
  );
  if (missing !== undefined)
    throw new Error(
      `The packages of ${name} for this machine (${process.arch}) lack ${path.relative(root, missing)}. Another version may have it.`,
    );
};

const bytesOf = async (directory: string): Promise<number> => {
  const { text } = await runShort(["du", "-sb", "--", directory], { stream: 1, bytesMax: 4096 });
  return Number.parseInt(text, 10) || 0;
};

/** Unpacks the runtime's packages below `root`. */
const unpack = async (
  npm: string,
  { version, packaged: { name, beside } }: RuntimeWish,
  root: string,
): Promise<Readonly<Record<(typeof PACKAGE_PARTS)[number], readonly Unpacked[]>>> => ({
  own: await unpackPackage(npm, { name, version, isBare: false }, path.join(root, "own")),
  beside:
    beside === null ? [] : await unpackPackage(npm, { ...beside, isBare: true }, path.join(root, "beside")),
});

/** Adds a version. New sandboxes get it. Those that run keep theirs. */
export const addRuntime = (
  environment: Environment,
  wish: RuntimeWish,
): Effect.Effect<InstalledRuntime, Error> =>
  Effect.tryPromise({
    try: async () => {
      const { config, store } = openStore(environment);
      const npm = findProgram("npm", config.path);
      if (npm === null) throw new Error("npm is not installed. It comes with Node.");
      // The users of sandboxes read the files.
      process.umask(0o022);
      const draft = await store.openDraft();
      try {
        const root = path.join(draft, "root");
        await mkdir(root);
        const parts = await unpack(npm, wish, root);
        const own = parts.own.find(({ place }) => place === `node_modules/${wish.packaged.name}`);
        if (own === undefined) throw new Error(`npm did not bring ${wish.packaged.name}.`);
        if (wish.integrity !== null && wish.integrity !== own.integrity)
          throw new Error(
            `${wish.packaged.name}@${wish.version} has the checksum ${own.integrity}, not ${wish.integrity}.`,
          );
        checkPrograms(wish, root);
        return await store.keep(draft, wish.name, {
          digest: digestOf(parts),
          version: own.version,
          integrity: own.integrity,
          packages: parts.own.length + parts.beside.length,
          bytes: await bytesOf(root),
        });
      } finally {
        await removeTree(draft);
      }
    },
    catch: (error) => toError(error),
  });

export const listRuntimes = (environment: Environment): Effect.Effect<readonly NamedRuntime[]> =>
  Effect.promise(() => openStore(environment).store.list());

/** @returns false if this machine has no runtime of the name */
export const removeRuntime = (environment: Environment, name: string): Effect.Effect<boolean> =>
  Effect.promise(() => openStore(environment).store.remove(name));
