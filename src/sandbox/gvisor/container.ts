/**
 * One sandbox as an OCI container: the content of config.json, which `runsc` reads.
 *
 * The root directory is a tree that bubblewrap builds from the same layout as every other sandbox's. Most mounts are
 * part of the tree, so the kernel of this machine holds them read-only, too. Only these are gVisor's own:
 *  - /proc, /dev and /dev/shm show gVisor's kernel. It adds /sys by itself.
 *  - /run/platform and /tmp are mounts, because gVisor asks the machine about each file in a mount anew. In the root it
 *    assumes that nothing else changes a file. A restarted service makes new sockets in /run/platform. gVisor puts a
 *    file system in memory over /tmp unless it is a mount.
 */
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import type { SandboxLimits } from "../machine/options.ts";
import type { LaunchRequest } from "../machine/isolation/isolation.ts";
import { INNER_GATE } from "../machine/boot/launcher.ts";
import {
  LIBRARY,
  type MountStep,
  SANDBOX_HOSTNAME,
  SHARED_MEMORY_BYTES,
  WORKSPACE,
  bubblewrapArguments,
  topLevel,
} from "../machine/boot/layout.ts";

/**
 * What the daemon keeps, all inside gVisor: it starts the agent as another user (SETUID, SETGID, SETPCAP) in a pid
 * namespace with a /proc of its own (SYS_ADMIN), and ends it (KILL).
 */
const DAEMON_CAPABILITIES = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_ADMIN", "CAP_KILL"];

/** gVisor makes these itself. The others are in the tree. */
const isVirtual = ({ target }: MountStep): boolean => ["/proc", "/dev", "/dev/shm"].includes(target);

/** The size of file systems that have directories and links alone, in bytes. */
const SMALL_BYTES = 1024 * 1024;

/** The layout without what gVisor makes itself, with places for that, and with a root if it has none. */
const treeSteps = (layout: readonly MountStep[]): readonly MountStep[] => {
  const steps = layout.flatMap((step): MountStep[] => {
    if (!isVirtual(step)) return [step];
    return step.kind === "seal" || step.kind === "memory" ? [] : [{ kind: "directory", target: step.target }];
  });
  if (steps[0]?.kind === "root") return steps;
  return [{ kind: "memory", target: "/", bytes: SMALL_BYTES, mode: "755" }, ...steps];
};

/**
 * Arguments for bubblewrap: what gVisor's own processes see. They have this machine's programs, the sandbox's directory,
 * and in it the tree that becomes the container's root, but no other file of the machine.
 */
export const surroundings = ({ paths, layout }: LaunchRequest, runsc: string): string[] => [
  ...bubblewrapArguments([
    { kind: "read-only-bind", source: "/usr", target: "/usr" },
    ...topLevel(),
    { kind: "proc", target: "/proc" },
    { kind: "devices", target: "/dev" },
    // gVisor's kernel is started with an empty root, which it mounts over /tmp.
    { kind: "memory", target: "/tmp", bytes: SMALL_BYTES, mode: "755" },
    { kind: "read-only-bind", source: runsc, target: runsc },
    { kind: "bind", source: paths.root, target: paths.root },
  ]),
  ...bubblewrapArguments(treeSteps(layout), paths.newRoot),
];

const bindMount = (source: string, destination: string, access: "rw" | "ro") => ({
  destination,
  type: "bind",
  source,
  options: ["rbind", access, "nosuid", "nodev"],
});

const makeMounts = ({ paths }: LaunchRequest) => [
  { destination: "/proc", type: "proc", source: "proc" },
  { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["mode=755"] },
  {
    destination: "/dev/shm",
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", "nodev", "mode=1777", `size=${SHARED_MEMORY_BYTES}`],
  },
  bindMount(paths.tmp, "/tmp", "rw"),
  bindMount(paths.run, "/run/platform", "rw"),
  bindMount(paths.proxy, "/run/platform/proxy", "ro"),
];

const limit = (name: string, value: number) => ({ type: `RLIMIT_${name}`, hard: value, soft: value });

/** The first program is the gate (machine/isolation/gate.ts), as in every sandbox: gVisor has seccomp filters, too. */
const containerProgram = ({ image }: LaunchRequest): string[] => [
  `${LIBRARY}/${INNER_GATE}`,
  ...(image === null ? [] : [`${BUNDLE_TOOLS}/sh`]),
  "/usr/local/bin/platform-entrypoint",
];

/** The content of config.json. It contains the environment, and so PLATFORM_TOKEN. */
export const containerConfig = (request: LaunchRequest, limits: SandboxLimits) => ({
  ociVersion: "1.0.2",
  hostname: SANDBOX_HOSTNAME,
  root: { path: request.paths.newRoot, readonly: false },
  process: {
    terminal: false,
    user: { uid: 0, gid: 0 },
    cwd: WORKSPACE,
    args: containerProgram(request),
    env: Object.entries(request.environment).map(([name, value]) => `${name}=${value}`),
    noNewPrivileges: true,
    capabilities: Object.fromEntries(
      ["bounding", "effective", "permitted", "inheritable", "ambient"].map((set) => [
        set,
        DAEMON_CAPABILITIES,
      ]),
    ),
    rlimits: [
      limit("NPROC", limits.processes),
      limit("NOFILE", limits.openFiles),
      limit("FSIZE", limits.diskBytes),
      limit("CORE", 0),
    ],
  },
  mounts: makeMounts(request),
  linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
});
