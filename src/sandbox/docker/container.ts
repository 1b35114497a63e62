/**
 * One sandbox as a container: what the engine is asked for. `docker inspect` shows all of it to everybody who may use
 * the engine, so it contains no variable of the sandbox and no secret. Those are files in /run/platform.
 *
 * The container's root is an image without files. Everything that the sandbox sees is mounted, from the same layout as
 * every other sandbox's. So an image of the platform is not copied into the engine: its directories are mounted one by
 * one, read-only.
 */
import { lstatSync, readdirSync, readlinkSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { EngineFacts, RootShape } from "../containers/engine.ts";
import type { ContainerOptions, Mount, Ulimit } from "../containers/options.ts";
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import type { SandboxLimits } from "../machine/options.ts";
import type { LaunchRequest } from "../machine/isolation/isolation.ts";
import { DROP_ALL, INNER_GATE, become } from "../machine/boot/launcher.ts";
import {
  LIBRARY,
  type MountStep,
  SANDBOX_HOSTNAME,
  SHARED_MEMORY_BYTES,
  WORKSPACE,
} from "../machine/boot/layout.ts";

/**
 * What the daemon keeps: it starts the agent as another user, and ends it. Under gVisor it starts the agent in namespaces
 * of its own, inside gVisor.
 */
const daemonCapabilities = ({ isGvisor }: Pick<ContainerWish, "isGvisor">): string[] =>
  isGvisor ? [...KEPT, "SYS_ADMIN"] : KEPT;
const KEPT = ["SETUID", "SETGID", "SETPCAP", "KILL"];

/** PID 1's output goes to this file, which is the sandbox's log. The engine keeps no log. */
const LOG = `${LIBRARY}/log`;

/**
 * The first program of the daemon's user. It reads the environment and removes its file, and then becomes the program
 * in its arguments.
 */
const START = [
  `exec >>${LOG} 2>&1`,
  "set -e",
  ". /run/platform/environment",
  "rm /run/platform/environment",
  // The engine's own.
  "unset HOSTNAME container TERM",
  'exec "$@" 3>/run/platform/up',
].join("\n");

/** The kernel's interfaces that a sandbox does not need, with those that engines hide by themselves. */
const HIDDEN = [
  "/sys",
  "/dev/mqueue",
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
];

/** The engine makes these itself. */
const ENGINES_OWN = new Set(["/proc", "/dev", "/dev/shm"]);

/** Entries of an image's root that the container has of its own. */
const NOT_FROM_IMAGE = new Set([".dockerenv", "dev", "proc", "run", "sys", "tmp", "workspace"]);
/** An image's root has some twenty entries. Each is a mount. */
const ENTRIES_MAX = 100;
/** Microseconds in which a container may use its share of the processors: the kernel's default. */
const CPU_PERIOD = 100_000;

/** The log and `paths.up` are files, too. Without a disk, they still take so many bytes each. */
const OWN_FILE_BYTES = 1024 * 1024;

const bindMount = (source: string, target: string, access: "rw" | "ro"): Mount => ({
  Type: "bind",
  Source: source,
  Target: target,
  ReadOnly: access === "ro",
  BindOptions: { Propagation: "rprivate" },
});

/** A container's root: the shape of its image, and what is mounted there. */
export interface ContainerRoot {
  readonly shape: RootShape;
  readonly mounts: readonly Mount[];
  /** File systems in memory: options by target. */
  readonly memory: Readonly<Record<string, string>>;
}

/** The first entries of an image's root. @throws Error if the image cannot be used */
const imageEntries = (root: string): Pick<ContainerRoot, "shape" | "mounts"> => {
  const names = readdirSync(root)
    .filter((name) => !NOT_FROM_IMAGE.has(name))
    .toSorted();
  if (names.length > ENTRIES_MAX) {
    throw new Error(`the image has more than ${ENTRIES_MAX} files and directories in its root directory`);
  }
  if (!existsSync(join(root, "etc/hostname"))) {
    throw new Error(
      "the image was imported by an earlier version, without a place for /etc/hostname. Import or build it again",
    );
  }
  const links: Record<string, string> = {};
  const mounts: Mount[] = [];
  for (const name of names) {
    const source = join(root, name);
    const stats = lstatSync(source);
    if (stats.isSymbolicLink()) links[name] = readlinkSync(source);
    else if (stats.isDirectory() || stats.isFile()) mounts.push(bindMount(source, `/${name}`, "ro"));
  }
  return { shape: { directories: ["run", "tmp", "workspace"], links }, mounts };
};

/** The directories and links of this machine's own layout. */
const hostShape = (layout: readonly MountStep[]): RootShape => ({
  directories: layout.flatMap(({ kind, target }) => (kind === "directory" ? [target.slice(1)] : [])),
  links: Object.fromEntries(
    layout.flatMap((step) => (step.kind === "symlink" ? [[step.target.slice(1), step.source]] : [])),
  ),
});

/** @throws Error if the image cannot be used */
export const containerRoot = (
  layout: readonly MountStep[],
  product: EngineFacts["product"],
): ContainerRoot => {
  const [first] = layout;
  const base = first?.kind === "root" ? imageEntries(first.source) : { shape: hostShape(layout), mounts: [] };
  const sealedTargets = new Set(layout.flatMap(({ kind, target }) => (kind === "seal" ? [target] : [])));
  const mounts = [...base.mounts];
  const memory: Record<string, string> = {};
  for (const step of layout) {
    if (ENGINES_OWN.has(step.target)) continue;
    if (step.kind === "memory") {
      // Podman copies the directory below into the memory unless it is told not to.
      const copies = product === "Podman" ? ",notmpcopyup" : "";
      memory[step.target] =
        `${sealedTargets.has(step.target) ? "ro" : "rw"},mode=${step.mode},size=${step.bytes}${copies}`;
    } else if (step.kind === "bind" || step.kind === "read-only-bind") {
      if (!existsSync(step.source)) {
        if (step.optional) continue;
        // Podman would make a directory there.
        throw new Error(`a sandbox needs ${step.source}, which does not exist`);
      }
      mounts.push(bindMount(step.source, step.target, step.kind === "bind" ? "rw" : "ro"));
    }
  }
  return { shape: base.shape, mounts, memory };
};

const limit = (name: string, value: number): Ulimit => ({ Name: name, Soft: value, Hard: value });

/** Arguments of setpriv: the daemon's user, with its capabilities and no way to more. */
const asDaemon = (wish: ContainerWish): string[] => {
  const capabilities = daemonCapabilities(wish).map((name) => `+${name.toLowerCase()}`);
  return [
    ...become(wish.daemon),
    ...DROP_ALL.map((argument) =>
      argument.endsWith("=-all") ? [argument, ...capabilities].join(",") : argument,
    ),
  ];
};

/** The parts of one container. */
export interface ContainerWish {
  readonly request: LaunchRequest;
  readonly root: ContainerRoot;
  /** The image of the root's shape, in the engine. */
  readonly image: string;
  readonly limits: SandboxLimits & {
    /** How many processes and threads of this machine run a sandbox. */
    readonly hostProcesses: number;
  };
  /** Null means the engine's own. */
  readonly runtime: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The daemon's user on this machine. */
  readonly daemon: number;
  /** The path of `setpriv` in a sandbox without an image. */
  readonly setpriv: string;
  /** Whether the gate with our filter supports this machine's processor. */
  readonly isGated: boolean;
  /** Whether the runtime is gVisor. */
  readonly isGvisor: boolean;
  readonly product: EngineFacts["product"];
}

/** The only program that runs as uid 0 is setpriv. It becomes the daemon's user at once. */
const containerProgram = (wish: ContainerWish): string[] => {
  const { setpriv, isGated } = wish;
  const { image } = wish.request;
  const shell = image === null ? "/bin/sh" : `${BUNDLE_TOOLS}/sh`;
  const toDaemon = [image === null ? setpriv : `${BUNDLE_TOOLS}/setpriv`, ...asDaemon(wish)];
  // Under gVisor it is uid 0 of another kernel, and stays that.
  const first = wish.isGvisor ? [] : toDaemon;
  const gate = isGated ? [`${LIBRARY}/${INNER_GATE}`] : [];
  return [...first, shell, "-c", START, "sandbox", ...gate, shell, "/usr/local/bin/platform-entrypoint"];
};

/** The engine's request for a sandbox's container. */
export const containerOptions = (wish: ContainerWish): ContainerOptions => {
  const { request, root, limits } = wish;
  const [program = "", ...args] = containerProgram(wish);
  return {
    Image: wish.image,
    Entrypoint: [program],
    Cmd: args,
    User: "0:0",
    Hostname: SANDBOX_HOSTNAME,
    WorkingDir: WORKSPACE,
    Labels: wish.labels,
    HostConfig: {
      ...(wish.runtime !== null && { Runtime: wish.runtime }),
      Mounts: [...root.mounts, bindMount(request.paths.log, LOG, "rw")],
      Tmpfs: root.memory,
      ShmSize: SHARED_MEMORY_BYTES,
      ReadonlyRootfs: true,
      MaskedPaths: HIDDEN,
      NetworkMode: "none",
      IpcMode: "private",
      // Each sandbox has users of its own on this machine, which an engine's map of users does not have.
      UsernsMode: "host",
      CapDrop: ["ALL"],
      CapAdd: daemonCapabilities(wish),
      // Podman does not read MaskedPaths.
      SecurityOpt: ["no-new-privileges", ...(wish.product === "Podman" ? [`mask=${HIDDEN.join(":")}`] : [])],
      Memory: limits.memoryBytes,
      // Together with memory: no swap.
      MemorySwap: limits.memoryBytes,
      PidsLimit: limits.hostProcesses,
      CpuPeriod: CPU_PERIOD,
      CpuQuota: limits.cpus * CPU_PERIOD,
      Ulimits: [
        limit("nproc", limits.processes),
        limit("nofile", limits.openFiles),
        limit("fsize", Math.max(limits.diskBytes, OWN_FILE_BYTES)),
        limit("core", 0),
      ],
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
    },
  };
};
