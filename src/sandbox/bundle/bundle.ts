/**
 * The runtime bundle: everything of ours that a sandbox runs, in one directory that works in any root file system. It
 * has copies of this machine's Node, git, shell and a few tools, the agent runtime, and the libraries and the loader
 * that they need. A provider mounts it below `/opt/platform` in an image's root. An image never contains it, so a new
 * version of it rebuilds no image.
 *
 *  R1 The directory's name is a hash of what is in it. A finished directory is never written again.
 *  R2 No program in it looks for a library or a program of the image.
 *
 *     <bundle>/gnu        the loader and the libraries
 *     <bundle>/tools      programs for the daemon and for each start
 *     <bundle>/git-core   git itself, and the programs that it starts
 *     <bundle>/agent      programs of the agent runtime
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import {
  access,
  chmod,
  copyFile,
  mkdir,
  open,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { BUNDLE_LOADER, HEAD_BYTES, HOST_LOADER, bundledLoader, readInterpreter } from "./elf.ts";

const execute = promisify(execFile);

/** Where the parts of the bundle are in a sandbox. */
export const BUNDLE_LIBRARY = "/opt/platform/lib";
export const BUNDLE_TOOLS = `${BUNDLE_LIBRARY}/tools`;
export const BUNDLE_GIT = `${BUNDLE_LIBRARY}/git-core`;

/** Changed when a bundle's content changes without a change of its sources. */
const BUNDLE_VERSION = 1;
const LIST_TIMEOUT_MS = 30_000;

/**
 * The programs that the daemon's scripts and the start of a sandbox use. Each is copied from this machine under its own
 * name.
 */
export const BUNDLED_TOOLS = [
  "sh",
  "setpriv",
  "prlimit",
  "unshare",
  "mount",
  "umount",
  "hostname",
  "cat",
  "cp",
  "env",
  "find",
  "grep",
  "head",
  "mkdir",
  "mkfifo",
  "rm",
  "rmdir",
  "sed",
  "sort",
  "touch",
  "tr",
  "xargs",
] as const;

/** Copied if this machine has it: in an ordinary user's sandbox, it starts the agent. */
const BUBBLEWRAP = "bwrap";

/** Copied if this machine has them: people log in by them (docs/use/editors.md). Newer versions of OpenSSH have the last two. */
const OPENSSH = ["sshd", "ssh-keygen", "sftp-server", "sshd-session", "sshd-auth"];
/** Where systems keep those that are on no PATH. */
const OPENSSH_DIRECTORIES = ["/usr/lib/openssh", "/usr/libexec/openssh", "/usr/lib/ssh"];

/** git's programs besides `git`. The others are parts of it, or scripts that the daemon does not use. */
const GIT_PROGRAMS = ["git-remote-http"] as const;

/** git finds its own programs and ignores templates. It is a script, because git has its directories built in. */
const GIT_SCRIPT = `#!${BUNDLE_TOOLS}/sh
export GIT_EXEC_PATH=${BUNDLE_GIT} GIT_TEMPLATE_DIR=\${GIT_TEMPLATE_DIR-}
exec ${BUNDLE_GIT}/git "$@"
`;

export interface BundleOptions {
  /** The directory that holds bundles. */
  readonly directory: string;
  /** The Node that runs the daemon. */
  readonly nodePath: string;
  /** Programs of the agent runtime. They keep their file names. */
  readonly agentBinaries: readonly string[];
  /** Finds a program of this machine. Null if it is not installed. */
  readonly find: (name: string) => string | null;
  /** The hash of a file's content. It may be remembered: a Node has 120 MB. */
  readonly hash: (path: string) => Promise<string>;
}

/** One file of a bundle. */
interface Part {
  readonly place: string;
  readonly source: string;
}

/**
 * Makes the bundle of this machine, once for each content.
 *
 * @returns its directory
 * @throws Error that says what this machine lacks
 */
export const makeBundle = async (options: BundleOptions): Promise<string> => {
  const programs = await listPrograms(options);
  const loader = await realpath(HOST_LOADER).catch(() => null);
  if (loader === null) throw new Error(`images need a machine with glibc for x86-64 (${HOST_LOADER})`);
  const libraries = await listLibraries(loader, programs);
  const parts = [...programs, ...libraries, { place: "gnu/ld.so", source: loader }];
  const hash = await bundleHash(options, parts);
  const directory = join(options.directory, hash);
  if (await isThere(directory)) return directory;
  const draft = `${directory}.${process.pid}`;
  await rm(draft, { recursive: true, force: true });
  await fill(draft, parts);
  await rename(draft, directory).catch(async (error: unknown) => {
    // Another process of this installation was faster.
    await rm(draft, { recursive: true, force: true });
    if (!(await isThere(directory))) throw error;
  });
  return directory;
};

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** A program that sandboxes can do without. */
const optional = (name: string, path: string | null | undefined): readonly Part[] =>
  path == null ? [] : [{ place: `tools/${name}`, source: path }];

const listPrograms = async ({ nodePath, agentBinaries, find }: BundleOptions): Promise<Part[]> => {
  const requireProgram = (name: string): string => {
    const path = find(name);
    if (path === null) throw new Error(`images need the program ${name}, which is not installed`);
    return path;
  };
  const openSsh = (name: string) =>
    find(name) ??
    OPENSSH_DIRECTORIES.map((directory) => join(directory, name)).find((path) => existsSync(path));
  const { stdout } = await execute(requireProgram("git"), ["--exec-path"], { timeout: LIST_TIMEOUT_MS });
  const gitDirectory = stdout.trim();
  return [
    { place: "tools/node", source: nodePath },
    ...BUNDLED_TOOLS.map((name) => ({ place: `tools/${name}`, source: requireProgram(name) })),
    ...optional(BUBBLEWRAP, find(BUBBLEWRAP)),
    ...OPENSSH.flatMap((name) => optional(name, openSsh(name))),
    { place: "git-core/git", source: requireProgram("git") },
    ...GIT_PROGRAMS.map((name) => ({ place: `git-core/${name}`, source: join(gitDirectory, name) })),
    ...agentBinaries.map((path) => ({ place: `agent/${basename(path)}`, source: path })),
  ];
};

/** The libraries of dynamically linked programs, as the loader finds them. */
const listLibraries = async (loader: string, programs: readonly Part[]): Promise<Part[]> => {
  const libraries = new Map<string, string>();
  const needs = await Promise.all(programs.map(({ source }) => neededBy(loader, source)));
  for (const [name, path] of needs.flat()) libraries.set(name, path);
  return [...libraries].map(([name, source]) => ({ place: `gnu/${name}`, source }));
};

const readHead = async (path: string): Promise<Buffer> => {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(HEAD_BYTES), position: 0 });
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
};

/** `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`. The loader itself is listed with a path as its name. */
const LISTED = /^\s*([^\s/]+) => (\/\S+) \(0x[0-9a-f]+\)$/gm;

const neededBy = async (loader: string, program: string): Promise<(readonly [string, string])[]> => {
  if (readInterpreter(await readHead(program)) === null) return [];
  const { stdout } = await execute(loader, ["--list", program], { timeout: LIST_TIMEOUT_MS });
  return [...stdout.matchAll(LISTED)].map(([, name = "", path = ""]) => [name, path] as const);
};

const bundleHash = async ({ hash }: BundleOptions, parts: readonly Part[]): Promise<string> => {
  const hashes = await Promise.all(parts.map(async ({ place, source }) => [place, await hash(source)]));
  const text = JSON.stringify([BUNDLE_VERSION, GIT_SCRIPT, hashes.toSorted()]);
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
};

const fill = async (draft: string, parts: readonly Part[]): Promise<void> => {
  for (const name of ["", "gnu", "tools", "git-core", "agent"]) {
    // eslint-disable-next-line no-await-in-loop -- the first is the parent of the others
    await mkdir(join(draft, name), { mode: 0o755 });
    // eslint-disable-next-line no-await-in-loop -- a umask must not hide it from the sandboxes
    await chmod(join(draft, name), 0o755);
  }
  await Promise.all(
    parts.map(async ({ place, source }) => {
      const path = join(draft, place);
      if (place === "gnu/ld.so") await writeFile(path, bundledLoader(await readFile(source)));
      else await copyProgram(source, path);
      await chmod(path, 0o755);
    }),
  );
  await writeFile(join(draft, "tools/git"), GIT_SCRIPT);
  await chmod(join(draft, "tools/git"), 0o755);
  await symlink("git-remote-http", join(draft, "git-core/git-remote-https"));
};

/** Copies a program or library. A program then names the bundle's loader. */
const copyProgram = async (source: string, path: string): Promise<void> => {
  await copyFile(source, path);
  const interpreter = readInterpreter(await readHead(source));
  if (interpreter === null) return;
  const loader = Buffer.from(`${BUNDLE_LOADER}\0`);
  if (interpreter.bytes !== loader.length) throw new Error(`${source} is no program for glibc on x86-64`);
  await chmod(path, 0o755);
  const file = await open(path, "r+");
  try {
    await file.write(loader, 0, loader.length, interpreter.offset);
  } finally {
    await file.close();
  }
};
