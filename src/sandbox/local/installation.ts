/**
 * Parts that all sandboxes of one `local` provider share: programs in the run directory, control groups, the chosen
 * form.
 */
import { createHash } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { release } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentAdapter } from "../../domain/launch.ts";
import type { DefaultModels } from "../../domain/model.ts";
import { makeBundle } from "../bundle/bundle.ts";
import { ImageStore } from "../images/store.ts";
import { type GroupParent, findGroupParents } from "./cgroup.ts";
import { gateProgram } from "./gate.ts";
import { AGENT_GATE, type Form, INNER_CLOSE_FROM, INNER_GATE, launcherCloseFrom } from "./launch-plan.ts";
import { type Parts, sandboxSettings } from "./layout.ts";
import {
  bundlesDirectory,
  contentHash,
  installContent,
  installFile,
  openRunDirectory,
} from "./run-directory.ts";
import { architectureOf, type FilterKind, seccompProgram } from "./seccomp.ts";
import { type Tools, findProgram, findTools } from "./tools.ts";

export interface LocalLimits {
  /** Memory of all processes of a sandbox together, in bytes. */
  readonly memoryBytes: number;
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
export const DEFAULT_LIMITS: LocalLimits = {
  memoryBytes: 2048 * MIB,
  processes: 512,
  openFiles: 4096,
  diskBytes: 8192 * MIB,
  diskFiles: 1_000_000,
  logBytesPerSecond: MIB,
};

export interface LocalOptions {
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
  /** Node's compiled form of the daemon (daemon/code-cache.ts). Null: every start compiles it again. */
  readonly daemonCodeCache: string | null;
  /** The `platform` command as one executable JavaScript file. */
  readonly commandLine: string;
  readonly agentCommand: readonly string[];
  readonly agentAdapter: AgentAdapter;
  /** Default models by provider. Absent: those of domain/model.ts. */
  readonly models?: DefaultModels;
  /** Programs of the agent runtime, placed on the PATH under their own file names. */
  readonly agentBinaries: readonly string[];
  readonly limits: LocalLimits;
  /** Milliseconds without contact from the service after which a sandbox ends itself. */
  readonly orphanMs: number;
  /** How long a project's setup command may run, ms. */
  readonly setupTimeoutMs: number;
  /** The origin of this service's listener, which platform.internal leads to. */
  readonly serviceUrl: string;
  /** `auto`: the strongest form that works on this machine. */
  readonly form: "auto" | Form;
  /** The service's PATH, to find bubblewrap and other programs. */
  readonly path: string;
}

export interface Installation {
  readonly options: LocalOptions;
  readonly tools: Tools;
  readonly parts: Parts;
  readonly form: Form;
  /** The file with the seccomp program that bubblewrap installs for PID 1 and its children. Null in the other form. */
  readonly filter: string | null;
  /** The gate before the launcher (gate.ts). Null if it does not support this processor. */
  readonly gate: string | null;
  readonly images: ImageStore;
  /** The runtime bundle's directory. It is made for the first sandbox with an image. */
  readonly bundle: () => Promise<string>;
  readonly groupParents: readonly GroupParent[];
  /** Whether sandboxes get uids of their own (the service is root). */
  readonly ownUids: boolean;
  /** Whether RLIMIT_NPROC counts within the sandbox, as opposed to all processes of its uid on this machine. */
  readonly countsProcessesPerSandbox: boolean;
}

/** Hashed, because ids that were created at nearly the same time begin alike. */
const groupName = (installationId: string): string =>
  `platform-${createHash("sha256").update(installationId).digest("hex").slice(0, 12)}`;

const inDaemon = (name: string): string => fileURLToPath(new URL(`../../../daemon/${name}`, import.meta.url));

/** From Linux 5.14 on, the limit counts in each user namespace. */
const countsInUserNamespace = (kernel: string): boolean => {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 14);
};

const installParts = async (options: LocalOptions, library: Record<string, string>): Promise<Parts> => {
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
}: LocalOptions): Promise<Record<string, string>> => ({
  "forwarder.cjs": await installFile(runDir, inDaemon("forwarder.cjs")),
  ...(daemonCodeCache !== null && {
    "launcher.cjs": await installFile(runDir, inDaemon("launcher.cjs")),
    "platform-agent.cache": await installFile(runDir, daemonCodeCache, "platform-agent.cache"),
  }),
});

const installFilter = async (runDir: string, kind: FilterKind): Promise<string> => {
  const architecture = architectureOf(process.arch);
  if (architecture === null) throw new Error(`no seccomp filter exists for ${process.arch}`);
  return installContent(runDir, `${kind}.bpf`, seccompProgram(kind, architecture));
};

/** If the service is an ordinary user, a second bubblewrap inside starts the agent. It has its own filter. */
const nestedLibrary = async (options: LocalOptions, bwrap: string): Promise<Record<string, string>> => ({
  bwrap: await installFile(options.runDir, bwrap, "bwrap"),
  "agent.bpf": await installFilter(options.runDir, "agent"),
});

/**
 * In an ordinary user's sandbox, starting the agent creates further namespaces, so the filter of PID 1 must allow that.
 */
const filterOfPid1 = (ownUids: boolean): FilterKind => (ownUids ? "agent" : "supervisor");

/** Gates support one processor (gate.ts). */
const hasGates = (): boolean => process.arch === "x64";

/** Installs a gate under its name. @param kind of its filter; null for none */
const installGate = (
  runDir: string,
  gate: { readonly name: string; readonly closeFrom: number; readonly kind: FilterKind | null },
): Promise<string> => {
  const filter = gate.kind === null ? null : seccompProgram(gate.kind, "x64");
  return installContent(runDir, gate.name, gateProgram({ closeFrom: gate.closeFrom, filter }));
};

/** The gates inside. They install the filters in the form without bubblewrap. */
const gateLibrary = async (runDir: string, ownUids: boolean): Promise<Record<string, string>> => ({
  [INNER_GATE]: await installGate(runDir, {
    name: INNER_GATE,
    closeFrom: INNER_CLOSE_FROM,
    kind: filterOfPid1(ownUids),
  }),
  ...(!ownUids && {
    [AGENT_GATE]: await installGate(runDir, { name: AGENT_GATE, closeFrom: 3, kind: "agent" }),
  }),
});

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
}: Pick<LocalOptions, "runDir" | "nodePath" | "agentBinaries" | "path">): Promise<string> =>
  makeBundle({
    directory: await bundlesDirectory(runDir),
    nodePath,
    agentBinaries,
    find: (name) => findProgram(name, path),
    hash: (file) => contentHash(runDir, file),
  });

/** Removes parts of earlier versions. Sandboxes that still use one keep it through their own mount. */
export const removeOldParts = async ({ options, parts, filter, gate }: Installation): Promise<void> => {
  const files = [
    parts.node,
    parts.daemon,
    parts.entrypoint,
    parts.commandLine,
    filter ?? "",
    gate ?? "",
  ].concat(parts.agentBinaries, Object.values(parts.settings), Object.values(parts.library));
  const used = new Set(files.map(dirname));
  const root = join(options.runDir, "parts");
  const old = (await readdir(root)).filter((name) => !name.startsWith(".") && !used.has(join(root, name)));
  await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })));
};

/**
 * Prepares the run directory for one form, without starting anything.
 * @throws Error that says what is missing on this machine
 */
export const install = async (options: LocalOptions, form: Form): Promise<Installation> => {
  const tools = findTools(options.path);
  if (tools.missing.length > 0) throw new Error(`not installed: ${tools.missing.join(", ")}`);
  const { bwrap } = tools;
  if (form === "bubblewrap" && bwrap === null) throw new Error("not installed: bwrap (bubblewrap)");
  await openRunDirectory(options.runDir);
  const ownUids = process.geteuid?.() === 0;
  const nested = form === "bubblewrap" && !ownUids && bwrap !== null;
  const parts = await installParts(options, {
    ...(nested && (await nestedLibrary(options, bwrap))),
    ...(form === "namespaces" && hasGates() && (await gateLibrary(options.runDir, ownUids))),
  });
  const filter = form === "bubblewrap" ? await installFilter(options.runDir, filterOfPid1(ownUids)) : null;
  const outer = { name: "launcher-gate", closeFrom: launcherCloseFrom(form), kind: null };
  return {
    options,
    tools,
    parts,
    form,
    filter,
    gate: hasGates() ? await installGate(options.runDir, outer) : null,
    images: new ImageStore(options.imagesDir),
    bundle: once(() => bundleOf(options)),
    groupParents: await findGroupParents(groupName(options.installationId)),
    ownUids,
    countsProcessesPerSandbox: ownUids || countsInUserNamespace(release()),
  };
};
