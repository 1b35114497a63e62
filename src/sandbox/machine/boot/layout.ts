/**
 * A sandbox's file system (spec.md, sandbox layout) as an ordered list of steps, and as arguments for bubblewrap.
 * ../local/layout-script.ts has it as commands for a shell. The root is read-only. It is this machine's, or that of an image
 * (src/sandbox/images). The agent may write only /workspace, its home, /tmp and /dev/shm.
 */
import { existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { BUNDLE_TOOLS } from "../../bundle/bundle.ts";
import type { SandboxPaths } from "../disk/run-directory.ts";

export type MountStep =
  /** The first step: a directory becomes the root, without set-uid programs and devices. */
  | { readonly kind: "root"; readonly source: string; readonly target: "/" }
  | {
      readonly kind: "bind" | "read-only-bind";
      readonly source: string;
      readonly target: string;
      /** Skipped if the source is missing. */
      readonly optional?: true;
    }
  | { readonly kind: "symlink"; readonly source: string; readonly target: string }
  | { readonly kind: "directory" | "proc" | "devices" | "seal"; readonly target: string }
  | {
      readonly kind: "memory";
      readonly target: string;
      readonly bytes: number;
      /** Permissions of its root, in octal. */
      readonly mode: string;
    };

/** The file system that a sandbox sees. Null means this machine's own. */
export interface ImageRoot {
  /** The image's unpacked root (../images/image.ts), with a place for each of our mounts. */
  readonly root: string;
  /** The runtime bundle (bundle.ts). It replaces this machine's programs. */
  readonly bundle: string;
}

/** An image as a sandbox uses it. */
export interface OpenedImage extends ImageRoot {
  readonly digest: string;
  /** The image's variables for the agent, without those that the platform sets. */
  readonly env: Readonly<Record<string, string>>;
  /** The image's PATH. Null if it sets none. */
  readonly path: string | null;
}

/** Programs and settings that all sandboxes share, already in the run directory. */
export interface Parts {
  readonly node: string;
  readonly daemon: string;
  readonly entrypoint: string;
  readonly commandLine: string;
  /** The agent finds each on its PATH under its own name. The daemon does not. */
  readonly agentBinaries: readonly string[];
  /** Files of /etc made for sandboxes, by name. */
  readonly settings: Readonly<Record<string, string>>;
  /** Further files below /opt/platform/lib, by name. */
  readonly library: Readonly<Record<string, string>>;
}

/** The directory of our own programs inside, except for the paths of spec.md, sandbox layout. The daemon's Node is one of them. */
export const LIBRARY = "/opt/platform/lib";
/** The usual search path. In a sandbox without an image, PID 1, the daemon and the agent's launcher use it. */
export const SANDBOX_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
/** The search path of PID 1, the daemon and the agent's launcher. In an image's root, they use the bundle's programs. */
export const platformPath = (image: ImageRoot | null): string =>
  image === null ? SANDBOX_PATH : `${BUNDLE_TOOLS}:${SANDBOX_PATH}`;
/** Programs of the agent runtime. They may have any name, so our own code never searches here. */
const AGENT_BINARIES = "/opt/platform/bin";
/**
 * The search path of the agent runtime and its children. The image's programs come before the bundle's.
 * @param imagePath the image's PATH. Null if the image sets none, or the sandbox has no image
 */
export const agentPath = (image: ImageRoot | null, imagePath: string | null): string =>
  image === null
    ? `${AGENT_BINARIES}:${SANDBOX_PATH}`
    : `${AGENT_BINARIES}:${imagePath ?? SANDBOX_PATH}:/usr/local/bin:${BUNDLE_TOOLS}`;
export const WORKSPACE = "/workspace";
export const SANDBOX_HOME = "/opt/platform/home";
export const SANDBOX_HOSTNAME = "sandbox";

/** The daemon's and the agent's user inside every sandbox. */
export const DAEMON_UID = 1000;
export const AGENT_UID = 1001;

/** The size of /dev/shm and of our small directories, in bytes. */
export const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
const SMALL_BYTES = 1024 * 1024;

/**
 * Only the parts of /etc that programs need to run and to verify certificates: no machine id, no user list, no
 * configuration.
 */
const HOST_SETTINGS = [
  "/etc/ssl",
  "/etc/pki",
  "/etc/ca-certificates",
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
];

/** Debian keeps each Java's configuration there, and links to it from /usr. */
const JAVA_SETTINGS = /^java-\d+-openjdk$/;
/** Likewise Maven's, without `settings.xml`: it may have passwords of servers. */
const MAVEN_SETTINGS = ["/etc/maven/m2.conf", "/etc/maven/logging"];

/** What programs below /usr need of /etc. */
const hostSettings = (): MountStep[] => {
  const java = readdirSync("/etc").filter((name) => JAVA_SETTINGS.test(name));
  const maven = MAVEN_SETTINGS.filter((path) => existsSync(path));
  return [
    ...(maven.length === 0 ? [] : [{ kind: "directory", target: "/etc/maven" } as const]),
    ...[...HOST_SETTINGS, ...java.map((name) => `/etc/${name}`), ...maven].map((path): MountStep => ({
      kind: "read-only-bind",
      source: path,
      target: path,
      optional: true,
    })),
  ];
};

/** The files of /etc that we write ourselves. */
export const sandboxSettings: Readonly<Record<string, string>> = {
  passwd: [
    "root:x:0:0:root:/nonexistent:/usr/sbin/nologin",
    `platform:x:${DAEMON_UID}:${DAEMON_UID}:platform daemon:${SANDBOX_HOME}:/bin/sh`,
    `agent:x:${AGENT_UID}:${AGENT_UID}:agent:${SANDBOX_HOME}:/bin/sh`,
    // plain-english: the name of a system user
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
    "",
  ].join("\n"),
  group: ["root:x:0:", `platform:x:${DAEMON_UID}:`, `agent:x:${AGENT_UID}:`, "nogroup:x:65534:", ""].join(
    "\n",
  ),
  hosts: `127.0.0.1 localhost ${SANDBOX_HOSTNAME}\n::1 localhost\n`,
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
  // No name server is reachable: the egress proxy resolves names.
  "resolv.conf": "",
};

/** /bin, /lib and so on as on this machine: links into /usr, or directories of their own. */
export const topLevel = (): MountStep[] =>
  ["/bin", "/sbin", "/lib", "/lib32", "/lib64"].flatMap((target): MountStep[] => {
    const stats = lstatSync(target, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    return stats.isSymbolicLink()
      ? [{ kind: "symlink", source: readlinkSync(target), target }]
      : [{ kind: "read-only-bind", source: target, target }];
  });

export const readOnly = (source: string, target: string): MountStep => ({
  kind: "read-only-bind",
  source,
  target,
});

/** Created first: bubblewrap makes missing parent directories of a mount point accessible only to its own user. */
const DIRECTORIES = ["/etc", "/opt", "/opt/platform", LIBRARY, AGENT_BINARIES, "/run", "/var"];

/** This machine's own programs and settings, read-only. */
const hostRoot = (parts: Parts): MountStep[] => [
  ...DIRECTORIES.map((target): MountStep => ({ kind: "directory", target })),
  readOnly("/usr", "/usr"),
  ...topLevel(),
  // A file cannot be bound over a missing path of a read-only directory, so /usr/local/bin becomes a directory of our
  // own.
  { kind: "memory", target: "/usr/local/bin", bytes: SMALL_BYTES, mode: "755" },
  ...ownPrograms(parts),
  readOnly(parts.node, "/usr/local/bin/node"),
  { kind: "seal", target: "/usr/local/bin" },
  readOnly(parts.node, `${LIBRARY}/node`),
  ...parts.agentBinaries.map((path) => readOnly(path, `${AGENT_BINARIES}/${basename(path)}`)),
  ...hostSettings(),
  { kind: "symlink", source: "../tmp", target: "/var/tmp" },
];

/** The image's file system. The bundle's programs are below /opt/platform, so they hide no file of the image. */
const imageRoot = ({ root, bundle }: ImageRoot, paths: SandboxPaths, parts: Parts): MountStep[] => [
  { kind: "root", source: root, target: "/" },
  { kind: "memory", target: "/opt/platform", bytes: SMALL_BYTES, mode: "755" },
  { kind: "directory", target: LIBRARY },
  { kind: "directory", target: AGENT_BINARIES },
  ...ownPrograms(parts),
  ...["gnu", "tools", "git-core"].map((name) => readOnly(`${bundle}/${name}`, `${LIBRARY}/${name}`)),
  readOnly(`${bundle}/agent`, AGENT_BINARIES),
  readOnly(`${bundle}/tools/node`, `${LIBRARY}/node`),
  { kind: "bind", source: paths.tmp, target: "/var/tmp" },
];

/** The programs that have their path from spec.md, sandbox layout. */
const ownPrograms = (parts: Parts): MountStep[] => [
  readOnly(parts.daemon, "/usr/local/bin/platform-agent"),
  readOnly(parts.entrypoint, "/usr/local/bin/platform-entrypoint"),
  readOnly(parts.commandLine, "/usr/local/bin/platform"),
];

/** Further files below LIBRARY. In an image's root, a program comes from the bundle. */
const library = (parts: Parts, image: ImageRoot | null): MountStep[] =>
  Object.entries(parts.library).map(([name, path]) =>
    readOnly(image !== null && name === "bwrap" ? `${image.bundle}/tools/bwrap` : path, `${LIBRARY}/${name}`),
  );

/** A directory of this machine that one sandbox sees read-only, below /opt/platform. */
export interface InsideTree {
  readonly source: string;
  /** Absolute, inside. */
  readonly place: string;
}

/** bubblewrap makes missing parents of a mount point accessible only to its own user. */
const insideTree = ({ source, place }: InsideTree): MountStep[] => {
  const names = place.slice("/opt/platform/".length).split("/");
  const parents = names.slice(0, -1).map((_, index) => names.slice(0, index + 1).join("/"));
  return [
    ...parents.map((parent): MountStep => ({ kind: "directory", target: `/opt/platform/${parent}` })),
    readOnly(source, place),
  ];
};

/** What one sandbox sees beyond the shared parts. */
export interface OwnSight {
  /** Null means this machine's own root. */
  readonly image: ImageRoot | null;
  /** Its agent runtime. Null if it comes with the parts or the image. */
  readonly runtime: InsideTree | null;
}

/** The steps that lay out one sandbox, in order. */
export const sandboxLayout = (
  paths: SandboxPaths,
  parts: Parts,
  { image, runtime }: OwnSight,
): MountStep[] => [
  ...(image === null ? hostRoot(parts) : imageRoot(image, paths, parts)),
  ...Object.entries(parts.settings).map(([name, path]) => readOnly(path, `/etc/${name}`)),
  { kind: "proc", target: "/proc" },
  { kind: "devices", target: "/dev" },
  { kind: "memory", target: "/dev/shm", bytes: SHARED_MEMORY_BYTES, mode: "1777" },
  { kind: "seal", target: "/dev" },
  { kind: "bind", source: paths.tmp, target: "/tmp" },
  { kind: "bind", source: paths.workspace, target: WORKSPACE },
  { kind: "bind", source: paths.home, target: SANDBOX_HOME },
  ...library(parts, image),
  ...(runtime === null ? [] : insideTree(runtime)),
  { kind: "bind", source: paths.run, target: "/run/platform" },
  readOnly(paths.proxy, "/run/platform/proxy"),
  { kind: "seal", target: image === null ? "/" : "/opt/platform" },
];

/**
 * The layout as bubblewrap's arguments.
 * @param root the directory that becomes the sandbox's root. Empty: bubblewrap's own root
 */
export const bubblewrapArguments = (steps: readonly MountStep[], root = ""): string[] =>
  steps.flatMap((step) => {
    const target = root === "" || step.target !== "/" ? root + step.target : root;
    switch (step.kind) {
      case "root":
        return ["--ro-bind", step.source, target];
      case "bind":
        return [step.optional ? "--bind-try" : "--bind", step.source, target];
      case "read-only-bind":
        return [step.optional ? "--ro-bind-try" : "--ro-bind", step.source, target];
      case "symlink":
        return ["--symlink", step.source, target];
      case "directory":
        return ["--dir", target];
      case "proc":
        return ["--proc", target];
      case "devices":
        return ["--dev", target];
      case "seal":
        return ["--remount-ro", target];
      case "memory":
        return ["--perms", step.mode, "--size", String(step.bytes), "--tmpfs", target];
    }
  });
