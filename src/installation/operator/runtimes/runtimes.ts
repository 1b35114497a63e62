/** `platform runtimes`: the agent runtimes that this machine has for its sandboxes. */
import { statSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { thrownText, toError } from "../../../ground/thrown.ts";
import { installedAt, PACKAGE_PARTS } from "../../../domain/runtimes/installed.ts";
import {
  type ArchiveSource,
  type PackageSource,
  readEntry,
  type RegistryEntry,
} from "../../../domain/runtimes/registry.ts";
import type { AddedStart, RuntimePackage } from "../../../domain/runtimes/runtime.ts";
import { runtimesDirectory } from "../../../assembly/adapters.ts";
import { runShort } from "../../../starter/short.ts";
import { removeTree } from "../../../sandbox/machine/disk/run-directory.ts";
import {
  type InstalledRuntime,
  type NamedRuntime,
  type RuntimeFacts,
  RuntimeStore,
} from "../../../sandbox/runtimes/store.ts";
import { findProgram } from "../../../sandbox/machine/tools.ts";
import type { Environment } from "../../../cli/configuration.ts";
import { requireInstallation } from "../images/images.ts";
import { treeDigest, packageProgram, unpackPackage, type Unpacked } from "../../../sandbox/runtimes/npm.ts";
import { unpackProgram } from "../../../sandbox/runtimes/program-archive.ts";
import { AgentRegistry } from "../../../sandbox/runtimes/registry.ts";

const openStore = (environment: Environment) => {
  const { config, installation } = requireInstallation(environment);
  const place = { config, dataDir: config.dataDir, installation };
  return { config, store: new RuntimeStore(runtimesDirectory(place)) };
};

export interface RuntimeWish {
  readonly name: string;
  readonly version: string;
  /** The checksum that the package must have. Null for the registry's. */
  readonly integrity: string | null;
  readonly packaged: RuntimePackage;
}

/** The fault of a file that starts a runtime. Null if it is sound. */
const programFault = (file: string, isRun: boolean): "lack" | "misfit" | null => {
  try {
    const stats = statSync(file);
    return stats.isFile() && (!isRun || (stats.mode & 0o111) !== 0) ? null : "misfit";
  } catch {
    return "lack";
  }
};

/** The files that start the runtime exist: a package may lack a part for this processor. @throws Error */
const checkPrograms = (name: string, start: AddedStart, root: string): void => {
  const holes = { place: root, node: "node", arch: process.arch, files: "" };
  const { command, variables } = installedAt(start, holes);
  for (const word of [...command, ...Object.values(variables)]) {
    if (!word.startsWith(`${root}/`)) continue;
    const [fault, file] = [programFault(word, word === command[0]), path.relative(root, word)];
    if (fault === "lack")
      throw new Error(
        `The packages of ${name} for this machine (${process.arch}) lack ${file}. Another version may have it.`,
      );
    if (fault !== null)
      throw new Error(`${name} is started by ${file}, which is no program that can be run.`);
  }
};

const measureBytes = async (directory: string): Promise<number> => {
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

/** @throws Error */
const npmOn = (machinePath: string): string => {
  const npm = findProgram("npm", machinePath);
  if (npm === null) throw new Error("npm is not installed. It comes with Node.");
  return npm;
};

/** The package of this name among those that npm brought. @param integrity the checksum that it must have, or null for the registry's. @throws Error */
const broughtPackage = (
  packages: readonly Unpacked[],
  { name, integrity }: { readonly name: string; readonly integrity: string | null },
): Unpacked => {
  const own = packages.find(({ place }) => place === `node_modules/${name}`);
  if (own === undefined) throw new Error(`npm did not bring ${name}.`);
  if (integrity !== null && integrity !== own.integrity)
    throw new Error(`${name}@${own.version} has the checksum ${own.integrity}, not ${integrity}.`);
  return own;
};

/** Where a runtime's files are made. */
interface Draft {
  /** Becomes the runtime's directory inside. */
  readonly root: string;
  /** For other files. */
  readonly scratch: string;
  /** The machine's PATH. */
  readonly path: string;
}

/** Facts of files whose size is not measured yet. */
type Brought = Omit<RuntimeFacts, "bytes">;

/**
 * Adds a version of a runtime. New sandboxes get it. Those that run keep theirs.
 * @param start null: the files say it
 */
const fillRuntime = (
  environment: Environment,
  { name, start: known }: { readonly name: string; readonly start: AddedStart | null },
  fill: (draft: Draft) => Promise<Brought>,
): Effect.Effect<InstalledRuntime, Error> =>
  Effect.tryPromise({
    try: async () => {
      const { config, store } = openStore(environment);
      // The users of sandboxes read the files.
      process.umask(0o022);
      const draft = await store.openDraft();
      try {
        const [root, scratch] = [path.join(draft, "root"), path.join(draft, "scratch")];
        await mkdir(root);
        await mkdir(scratch);
        const facts = await fill({ root, scratch, path: config.path });
        await removeTree(scratch);
        const start = facts.start ?? known;
        if (start !== null) checkPrograms(name, start, root);
        return await store.keep(draft, name, { ...facts, bytes: await measureBytes(root) });
      } finally {
        await removeTree(draft);
      }
    },
    catch: (error) => toError(error),
  });

/** Adds a version of a runtime that has a record. */
export const addRuntime = (
  environment: Environment,
  wish: RuntimeWish,
): Effect.Effect<InstalledRuntime, Error> =>
  fillRuntime(environment, { name: wish.name, start: wish.packaged }, async (draft) => {
    const parts = await unpack(npmOn(draft.path), wish, draft.root);
    const { version, integrity } = broughtPackage(parts.own, {
      name: wish.packaged.name,
      integrity: wish.integrity,
    });
    const packages = parts.own.length + parts.beside.length;
    return { digest: treeDigest(parts), version, integrity, packages };
  });

export interface EntryWish {
  readonly id: string;
  /** Null for the one that the registry has. */
  readonly version: string | null;
  /** The checksum that the package or the archive must have. Null for the one that npm or the entry names. */
  readonly integrity: string | null;
  /** A file or an address. */
  readonly registry: string;
}

/** An entry's package, with what starts it. */
const bringPackage = async (
  { version, source }: RegistryEntry & { readonly source: PackageSource },
  integrity: string | null,
  { root, path: machinePath }: Draft,
) => {
  const { name, args, variables } = source;
  const own = await unpackPackage(npmOn(machinePath), { ...source, isBare: false }, path.join(root, "own"));
  const { integrity: checksum } = broughtPackage(own, { name, integrity });
  const start = { command: [...(await packageProgram(path.join(root, "own"), source)), ...args], variables };
  const digest = treeDigest({ own }, [JSON.stringify(start)]);
  return { digest, version, integrity: checksum, packages: own.length, start };
};

/** An entry's archive, with what starts it. */
const bringArchive = async (
  { id, version, source }: RegistryEntry & { readonly source: ArchiveSource },
  integrity: string | null,
  { draft, registry }: { readonly draft: Draft; readonly registry: AgentRegistry },
) => {
  const { url, checksum, program, args, variables } = source;
  if (checksum === null && integrity === null)
    throw new Error(
      `The registry names no checksum of ${url.href}, so it is not taken. Give the one that the makers of ${id} publish: --integrity sha256:…`,
    );
  const file = path.join(draft.scratch, "archive");
  const sums = await registry.download(url, file);
  // In Base64, capital letters have a meaning.
  const wish = integrity?.startsWith("sha256:") === true ? integrity.toLowerCase() : integrity;
  const wrong = [checksum, wish].find((one) => one !== null && !Object.values(sums).includes(one));
  if (wrong !== undefined)
    throw new Error(`${url.href} has the checksum ${sums.hex} (${sums.sha512}), not ${String(wrong)}.`);
  const own = path.join(draft.root, "own");
  await mkdir(own);
  await unpackProgram(file, { directory: own, program, path: draft.path }).catch((error: unknown) => {
    throw new Error(`${url.href} cannot be unpacked: ${thrownText(error)}`);
  });
  await chmod(path.join(own, program), 0o755).catch(() => undefined);
  const start = { command: [`{place}/own/${program}`, ...args], variables };
  const parts = { own: [{ place: "archive", version, integrity: sums.sha512 }] };
  const digest = treeDigest(parts, [JSON.stringify(start)]);
  return { digest, version, integrity: sums.sha512, packages: 1, start };
};

/** Adds an entry of a registry. */
export const addEntry = (
  environment: Environment,
  { registry: place, integrity, ...wish }: EntryWish,
): Effect.Effect<InstalledRuntime, Error> =>
  fillRuntime(environment, { name: wish.id, start: null }, async (draft) => {
    const registry = new AgentRegistry(place);
    try {
      const entry = readEntry(await registry.read(), { ...wish, arch: process.arch });
      if (Result.isFailure(entry)) throw new Error(`${place}: ${entry.failure}`);
      const { source, ...named } = entry.success;
      return source.kind === "package"
        ? await bringPackage({ ...named, source }, integrity, draft)
        : await bringArchive({ ...named, source }, integrity, { draft, registry });
    } finally {
      await registry.close();
    }
  });

export const listRuntimes = (environment: Environment): Effect.Effect<readonly NamedRuntime[]> =>
  Effect.promise(() => openStore(environment).store.list());

/** @returns false if this machine has no runtime of the name */
export const removeRuntime = (environment: Environment, name: string): Effect.Effect<boolean> =>
  Effect.promise(() => openStore(environment).store.remove(name));
