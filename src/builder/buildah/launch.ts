/**
 * How a build's own sandbox is started. A build has two phases, each in a sandbox of its own, so that no process of the
 * first exists in the second:
 *
 *   build    unpacks the context, runs buildah. Its steps are the Dockerfile's: nothing in this sandbox is trusted.
 *   export   copies the image's files to the output. Only our program and buildah run, without a network.
 *
 * Each is uid 0 of an unprivileged user namespace of 65,536 host uids, under bubblewrap, in namespaces of its own, with the
 * capabilities below, a seccomp filter, and no right to create user namespaces. buildah runs steps with its chroot
 * isolation. That is no boundary: a step may become everything that this sandbox is.
 */
import { NO_USER_NAMESPACES } from "../../sandbox/machine/boot/launcher.ts";
import {
  type MountStep,
  bubblewrapArguments,
  readOnly,
  topLevel,
} from "../../sandbox/machine/boot/layout.ts";
import type { BuildLimits } from "../port.ts";
import { ETC, type BuildPlaces, type MountName } from "./places.ts";
import { SECRETS } from "./inside/reports.ts";
import { BLOCK_UIDS } from "./layer-stores.ts";
import type { BuildTools } from "./requirements.ts";

export type Phase = "build" | "export";

/** Descriptors of the launcher: for what it and the program inside report, and for the filter's program. */
export const SIGNAL_FD = 3;
export const FILTER_FD = 4;

export const LIBRARY = "/opt/platform/lib";
const PROGRAMS = "/opt/platform/builder";
const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PROXY = "http://127.0.0.1:3128";

/**
 * What buildah and its steps need. Not among them are NET_ADMIN and NET_RAW, which open much of the kernel's network
 * code, and SYS_PTRACE.
 */
const CAPABILITIES = [
  "CHOWN",
  "DAC_OVERRIDE",
  "DAC_READ_SEARCH",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_ADMIN",
  "SYS_CHROOT",
];

/** Sizes of directories in memory, in bytes: they count against no disk limit. */
const SMALL_BYTES = 8 * 1024 * 1024;

/** The content of uid_map and gid_map. */
export const identityMap = (uid: number): string => `0 ${uid} ${BLOCK_UIDS}\n`;

/** A directory or file of this machine, and its mount point. */
export interface Mounted {
  readonly name: MountName;
  readonly source: string;
}

export interface LaunchRequest {
  readonly phase: Phase;
  readonly tools: BuildTools;
  readonly places: BuildPlaces;
  readonly mounts: readonly Mounted[];
  readonly limits: BuildLimits;
  /** The first host uid of the block. */
  readonly uid: number;
  /** The gate before the launcher (sandbox/machine/isolation/gate.ts). */
  readonly gate: string;
}

const optional = (path: string): MountStep => ({
  kind: "read-only-bind",
  source: path,
  target: path,
  optional: true,
});
const memory = (target: string): MountStep => ({ kind: "memory", target, bytes: SMALL_BYTES, mode: "755" });
const directory = (target: string): MountStep => ({ kind: "directory", target });

/** Some files belong to buildah's own directory. */
const targetPath = (name: string): string =>
  ["policy.json", "registries.conf", "storage.conf"].includes(name)
    ? `/etc/containers/${name}`
    : `/etc/${name}`;

const layout = ({ places, phase }: LaunchRequest): MountStep[] => [
  ...["/etc", "/etc/containers", "/opt", "/opt/platform", LIBRARY, PROGRAMS, "/sys", "/build"].map(directory),
  readOnly("/usr", "/usr"),
  ...topLevel(),
  ...["/etc/ld.so.cache", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"].map(optional),
  ...Object.keys(ETC).map((name) => readOnly(`${places.etc}/${name}`, targetPath(name))),
  readOnly(places.mountPoint("node"), `${LIBRARY}/node`),
  readOnly(places.mountPoint("forwarder.cjs"), `${LIBRARY}/forwarder.cjs`),
  readOnly(places.mountPoint("programs"), PROGRAMS),
  readOnly(places.request, "/opt/platform/request.json"),
  { kind: "proc", target: "/proc" },
  { kind: "devices", target: "/dev" },
  ...["/run", "/tmp", "/var"].map(memory),
  { kind: "symlink", source: "/build/scratch/tmp", target: "/var/tmp" },
  { kind: "bind", source: places.mountPoint("layers"), target: "/build/layers" },
  { kind: "bind", source: places.mountPoint("scratch"), target: "/build/scratch" },
  ...(phase === "export"
    ? [{ kind: "bind", source: places.mountPoint("output"), target: "/output" } as const]
    : [
        directory("/run/platform"),
        { kind: "bind", source: places.proxy, target: "/run/platform/proxy" } as const,
        readOnly(places.secrets, SECRETS),
      ]),
  { kind: "seal", target: "/" },
];

const environment = (phase: Phase): Readonly<Record<string, string>> => ({
  PATH: SEARCH_PATH,
  HOME: "/build/scratch/home",
  TMPDIR: "/build/scratch/tmp",
  LANG: "C.UTF-8",
  BUILDAH_ISOLATION: "chroot",
  CONTAINERS_STORAGE_CONF: "/etc/containers/storage.conf",
  // buildah runs in a user namespace already, and makes none.
  _CONTAINERS_USERNS_CONFIGURED: "done",
  ...(phase === "build" && {
    HTTP_PROXY: PROXY,
    HTTPS_PROXY: PROXY,
    NO_PROXY: "127.0.0.1,localhost",
    http_proxy: PROXY,
    https_proxy: PROXY,
    no_proxy: "127.0.0.1,localhost",
  }),
});

/** As root, in a mount namespace of its own: mounts pairs of source and mount point, up to `--`. */
const MOUNT = 'set -eu; while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done; shift; exec "$@"';
/** Reports that the user namespace exists, waits until the service has mapped uids and set limits, and leaves the rest of its input. */
const WAIT = `echo waiting >&${SIGNAL_FD}; read -r _ || exit 1; exec "$@"`;

const inside = ({ phase, limits }: LaunchRequest): string[] => [
  // bubblewrap leaves the bounding set as it is, and with each program root gets everything in it.
  "setpriv",
  `--bounding-set=-all,${CAPABILITIES.map((name) => `+${name.toLowerCase()}`).join(",")}`,
  "--inh-caps=-all",
  "--",
  "prlimit",
  `--fsize=${limits.diskBytes}`,
  "--core=0",
  `${LIBRARY}/node`,
  ...(phase === "build" ? ["--require", `${LIBRARY}/forwarder.cjs`] : []),
  `${PROGRAMS}/${phase}.ts`,
];

const bubblewrap = (request: LaunchRequest): string[] => [
  request.tools.bwrap,
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-net",
  "--unshare-uts",
  "--unshare-cgroup-try",
  "--hostname",
  "build",
  "--new-session",
  "--die-with-parent",
  "--cap-add",
  "ALL",
  ...bubblewrapArguments(layout(request)),
  "--clearenv",
  ...Object.entries(environment(request.phase)).flatMap(([name, value]) => ["--setenv", name, value]),
  "--chdir",
  "/build/scratch",
  "--seccomp",
  String(FILTER_FD),
  "--",
  ...inside(request),
];

/** The command that becomes the sandbox of one phase. It runs as root until its mounts are done. */
export const launchCommand = (request: LaunchRequest): string[] => {
  const { tools, uid, places } = request;
  return [
    request.gate,
    tools.unshare,
    "--mount",
    "--propagation",
    "private",
    "--",
    tools.sh,
    "-c",
    MOUNT,
    "build",
    ...request.mounts.flatMap(({ name, source }) => [source, places.mountPoint(name)]),
    "--",
    tools.setpriv,
    "--reuid",
    String(uid),
    "--regid",
    String(uid),
    "--clear-groups",
    "--",
    tools.unshare,
    "--user",
    "--",
    tools.sh,
    "-c",
    WAIT,
    "build",
    tools.sh,
    "-c",
    NO_USER_NAMESPACES,
    "build",
    ...bubblewrap(request),
  ];
};
