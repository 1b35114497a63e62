/**
 * Parts that all sandboxes of one provider on this machine share: programs in the run directory, control groups, what
 * isolates them.
 */
import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OperatorTurnLimits } from "../../domain/sandbox/launch.ts";
import type { DefaultModels } from "../../domain/sandbox/model.ts";
import type { PackageSources } from "../../domain/environment/packages.ts";
import { makeBundle } from "../bundle/bundle.ts";
import { ImageStore } from "../images/store.ts";
import { type Control, type GroupParent, findGroupParents, groupControls } from "./limits/cgroup.ts";
import { gateProgram } from "./isolation/gate.ts";
import { nativeProgram } from "../native/programs.ts";
import type { Isolation, Kind } from "./isolation/isolation.ts";
import { type Parts, sandboxSettings } from "./boot/layout.ts";
import type { PackageProxy } from "../packages/proxy.ts";
import {
  bundlesDirectory,
  contentHash,
  installContent,
  installFile,
  openRunDirectory,
} from "./disk/run-directory.ts";
import { architectureOf, type FilterKind, machineArchitecture, seccompProgram } from "./isolation/seccomp.ts";
import { type Tools, findProgram, findTools } from "./tools.ts";

export interface SandboxLimits {
  /** Memory of all processes of a sandbox together, in bytes. */
  readonly memoryBytes: number;
  /** How many processors it may use at a time. */
  readonly cpus: number;
  /** How many processes and threads a sandbox may have. */
  readonly processes: number;
  /** How many files one process may have open. */
  readonly openFiles: number;
  /** /workspace, the agent's home and /tmp together, in bytes. */
  readonly diskBytes: number;
  /** How many files and directories they may contain. */
  readonly diskFiles: number;
  /** How many bytes of one second's output of PID 1 and the daemon are kept. */
  readonly logBytesPerSecond: number;
}

const MIB = 1024 * 1024;

/** api.md 8. The limit on files prevents one sandbox from using up the file system's inodes. */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 2048 * MIB,
  cpus: 4,
  processes: 512,
  openFiles: 4096,
  diskBytes: 8192 * MIB,
  diskFiles: 1_000_000,
  logBytesPerSecond: MIB,
};

export interface MachineOptions {
  /** Images of sandboxes (images/store.ts). */
  readonly imagesDir: string;
  /** Created if missing. Its path is short, and other users can traverse it (so it is not below a 0700 home). */
  readonly runDir: string;
  readonly installationId: string;
  readonly nodeId: string;
  /** The Node that runs the daemon. */
  readonly nodePath: string;
  /** The daemon's program as one JavaScript file. */
  readonly daemonBundle: string;
  /** Node's compiled form of the daemon (daemon/bundle/code-cache.ts). Null: every start compiles it again. */
  readonly daemonCodeCache: string | null;
  /** The `platform` command as one executable JavaScript file. */
  readonly commandLine: string;
  /** Absent: the daemon's own. */
  readonly turnLimits?: OperatorTurnLimits;
  /** Default models by provider. Absent: those of domain/sandbox/model.ts. */
  readonly models?: DefaultModels;
  /** Programs of the agent runtime, placed on the PATH under their own file names. */
  readonly agentBinaries: readonly string[];
  readonly limits: SandboxLimits;
  /** Milliseconds without contact from the service after which a sandbox ends itself. */
  readonly orphanMs: number;
  /** How long a project's setup command may run, ms. */
  readonly setupTimeoutMs: number;
  /** The origin of this service's listener, which platform.internal leads to. */
  readonly serviceUrl: string;
  /** The hosts of the public URL and of the node. Sandboxes reach neither. */
  readonly serviceHosts?: readonly string[];
  /** The registries for new sandboxes. Absent: their package managers ask registries themselves. */
  readonly packageSources?: PackageSources;
  /** The service's PATH, to find bubblewrap and other programs. */
  readonly path: string;
}

export interface Installation {
  readonly options: MachineOptions;
  readonly tools: Tools;
  readonly parts: Parts;
  readonly isolation: Isolation;
  readonly images: ImageStore;
  /** The runtime bundle's directory. It is made for the first sandbox with an image. */
  readonly bundle: () => Promise<string>;
  /** Answers for package registries. Absent: nothing does. */
  readonly packages?: PackageProxy;
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
export const hasGates = (): boolean => architectureOf(process.arch) !== null;

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
  let done: Promise<A> | null = null;
  return () => {
    done ??= work().catch((error: unknown) => {
      done = null;
      throw error;
    });
    return done;
  };
};

/**
 * The bundle in the run directory. It has bubblewrap, too: in an ordinary user's sandbox a second one starts the agent,
 * and an import of an image uses it.
 */
export const bundleOf = async ({
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
  const used = new Set(files.map(dirname));
  const root = join(options.runDir, "parts");
  const old = (await readdir(root)).filter((name) => !name.startsWith(".") && !used.has(join(root, name)));
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
    bundle: once(() => bundleOf(options)),
    groupParents,
    controls,
    ownUids,
  };
};
