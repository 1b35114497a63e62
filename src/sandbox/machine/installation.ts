/**
 * Parts that all sandboxes of one provider on this machine share: programs in the run directory, control groups, what
 * isolates them.
 */
import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeBundle } from "../bundle/bundle.ts";
import { ImageStore } from "../images/store.ts";
import { RuntimeStore } from "../runtimes/store.ts";
import { type Control, type GroupParent, findGroupParents, groupControls } from "./limits/cgroup.ts";
import { gateProgram } from "./isolation/gate.ts";
import { nativeProgram } from "../native/programs.ts";
import type { Isolation, Kind } from "./isolation/isolation.ts";
import type { MachineOptions } from "./options.ts";
import { type Parts, sandboxSettings } from "./boot/layout.ts";
import type { PackageProxy } from "../packages/proxy.ts";
import {
  bundlesDirectory,
  contentHash,
  installContent,
  installFile,
  openRunDirectory,
} from "./disk/run-directory.ts";
import {
  knownArchitecture,
  type FilterKind,
  machineArchitecture,
  seccompProgram,
} from "./isolation/seccomp.ts";
import type { TellRefused } from "../refused-hosts.ts";
import { type Tools, findProgram, findTools } from "./tools.ts";

export interface Installation {
  readonly options: MachineOptions;
  readonly tools: Tools;
  readonly parts: Parts;
  readonly isolation: Isolation;
  readonly images: ImageStore;
  readonly runtimes: RuntimeStore;
  /** The runtime bundle's directory. It is made for the first sandbox with an image. */
  readonly bundle: () => Promise<string>;
  /** Answers for package registries. Absent: nothing does. */
  readonly packages?: PackageProxy;
  /** Hears of hosts that a sandbox may not reach. Absent: they are not told. */
  readonly tellRefused?: TellRefused;
  /** Empty if an engine bounds the sandboxes. */
  readonly groupParents: readonly GroupParent[];
  /** The limits that the kernel enforces, through our groups or an engine's. */
  readonly controls: ReadonlySet<Control>;
  /** Whether sandboxes get uids of their own (the service is root). */
  readonly ownUids: boolean;
}

/** Hashed, because ids that were created at nearly the same time begin alike. */
const groupName = (installationId: string): string =>
  `platform-${createHash("sha256").update(installationId).digest("hex").slice(0, 12)}`;

const inDaemon = (name: string): string =>
  fileURLToPath(new URL(`../../../daemon/programs/${name}`, import.meta.url));

const installParts = async (options: MachineOptions, library: Isolation["library"]): Promise<Parts> => {
  const { runDir } = options;
  const settings = await Promise.all(
    Object.entries(sandboxSettings).map(async ([name, content]) => [
      name,
      await installContent(runDir, name, content),
    ]),
  );
  return {
    node: await installFile(runDir, options.nodePath, "node"),
    daemon: await installFile(runDir, options.daemonBundle, "platform-agent"),
    entrypoint: await installFile(runDir, inDaemon("entrypoint.sh"), "platform-entrypoint"),
    commandLine: await installFile(runDir, options.commandLine, "platform"),
    agentBinaries: await Promise.all(options.agentBinaries.map((path) => installFile(runDir, path))),
    settings: Object.fromEntries(settings) as Record<string, string>,
    library: { ...library, ...(await installLibrary(options)) },
  };
};

/** Files that the entrypoint finds beside the daemon. */
const installLibrary = async ({
  runDir,
  daemonCodeCache,
}: MachineOptions): Promise<Record<string, string>> => ({
  "forwarder.cjs": await installFile(runDir, inDaemon("forwarder.cjs")),
  ...(hasGates() && {
    terminal: await installContent(runDir, "terminal", nativeProgram("terminal", machineArchitecture())),
  }),
  ...(daemonCodeCache !== null && {
    "launcher.cjs": await installFile(runDir, inDaemon("launcher.cjs")),
    "platform-agent.cache": await installFile(runDir, daemonCodeCache, "platform-agent.cache"),
  }),
});

/** Whether our own programs and filters exist for this processor (../native, isolation/seccomp.ts). */
export const hasGates = (): boolean => knownArchitecture(process.arch) !== null;

/** Installs a gate under its name. @param kind of its filter; null for none */
export const installGate = (
  runDir: string,
  gate: { readonly name: string; readonly closeFrom: number; readonly kind: FilterKind | null },
): Promise<string> => {
  const architecture = machineArchitecture();
  const filter = gate.kind === null ? null : seccompProgram(gate.kind, architecture);
  return installContent(runDir, gate.name, gateProgram({ closeFrom: gate.closeFrom, filter }, architecture));
};

/** Does the work for the first caller. The others get its result; after a failure, the next caller tries again. */
const once = <A>(work: () => Promise<A>): (() => Promise<A>) => {
  let result: Promise<A> | null = null;
  return () => {
    result ??= work().catch((error: unknown) => {
      result = null;
      throw error;
    });
    return result;
  };
};

/**
 * The bundle in the run directory. It has bubblewrap, too: in an ordinary user's sandbox a second one starts the agent,
 * and an import of an image uses it.
 */
export const makeRuntimeBundle = async ({
  runDir,
  nodePath,
  agentBinaries,
  path,
}: Pick<MachineOptions, "runDir" | "nodePath" | "agentBinaries" | "path">): Promise<string> =>
  makeBundle({
    directory: await bundlesDirectory(runDir),
    nodePath,
    agentBinaries,
    find: (name) => findProgram(name, path),
    hash: (file) => contentHash(runDir, file),
  });

/** Removes parts of earlier versions. Sandboxes that still use one keep it through their own mount. */
export const removeOldParts = async ({ options, parts, isolation }: Installation): Promise<void> => {
  const files = [parts.node, parts.daemon, parts.entrypoint, parts.commandLine].concat(
    isolation.files,
    parts.agentBinaries,
    Object.values(parts.settings),
    Object.values(parts.library),
  );
  const usedDirectories = new Set(files.map(dirname));
  const root = join(options.runDir, "parts");
  const old = (await readdir(root)).filter(
    (name) => !name.startsWith(".") && !usedDirectories.has(join(root, name)),
  );
  await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })));
};

/**
 * Prepares the run directory for one kind of isolation, without starting anything.
 * @throws Error that says what is missing on this machine
 */
export const install = async (options: MachineOptions, kind: Kind): Promise<Installation> => {
  const tools = findTools(options.path);
  if (tools.missing.length > 0) throw new Error(`not installed: ${tools.missing.join(", ")}`);
  await openRunDirectory(options.runDir);
  const ownUids = process.geteuid?.() === 0;
  const isolation = await kind.prepare({ options, tools, ownUids });
  const { start } = isolation;
  const groupParents = start.by === "engine" ? [] : await findGroupParents(groupName(options.installationId));
  const controls = start.by === "engine" ? start.controls : groupControls(groupParents);
  if (isolation.needsGroups && !(controls.has("memory") && controls.has("processes"))) {
    throw new Error("it needs control groups for memory and processes, which this service cannot create");
  }
  return {
    options,
    tools,
    parts: await installParts(options, isolation.library),
    isolation,
    images: new ImageStore(options.imagesDir),
    runtimes: new RuntimeStore(options.runtimesDir),
    bundle: once(() => makeRuntimeBundle(options)),
    groupParents,
    controls,
    ownUids,
  };
};
