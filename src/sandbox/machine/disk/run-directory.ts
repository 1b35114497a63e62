/**
 * The files of sandboxes on this machine: one directory for each installation. The sandboxes' uids can traverse it; below a 0700 home they
 * could not, so nothing there could be bound into a sandbox.
 *
 *     <run directory>/parts/<content hash>/<name>   programs and settings that every sandbox binds read-only
 *     <run directory>/bundles/<hash>/               runtime bundles (../bundle/bundle.ts)
 *     <run directory>/s/<sandbox id>/               one sandbox, removed by destroy
 *         record.json   the facts that a restarted service needs (0600)
 *         exit.json     why it ended, once it has ended
 *         log, log.old  output of PID 1 and the daemon
 *         run/          /run/platform: launch.json, d.sock, agent/ (the daemon's user writes here)
 *         proxy/        the egress proxy's socket (only the service writes here)
 *         disk/         workspace, home, tmp: everything that the disk limit covers
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import {
  access,
  chmod,
  copyFile,
  lstat,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import * as Schema from "effect/Schema";
import { runShort } from "../../../starter/short.ts";
import { SandboxPackages } from "../../packages/of-sandbox.ts";
import { SandboxExit } from "../../port.ts";

/** sun_path holds 108 bytes. api.md 8 keeps socket paths below 100. */
const SOCKET_PATH_MAX = 99;

const Identity = Schema.Struct({ pid: Schema.Int, startTime: Schema.String, bootId: Schema.String });

/** Facts about a sandbox that a restarted service needs. It contains names of secrets, but no secret. */
export const SandboxRecord = Schema.Struct({
  version: Schema.Literal(1),
  id: Schema.String,
  /** Null if it was started without a session. */
  sessionId: Schema.NullOr(Schema.String),
  installationId: Schema.String,
  nodeId: Schema.String,
  /** The first of the sandbox's host uids. Null if everything runs as the service's own user. */
  uidBase: Schema.NullOr(Schema.Int),
  /** The outermost process, which lives exactly as long as PID 1. Null before its start. */
  launcher: Schema.NullOr(Identity),
  cgroups: Schema.Array(Schema.String),
  egressAllow: Schema.Array(Schema.String),
  secretNames: Schema.Array(Schema.String),
  llmUpstream: Schema.NullOr(Schema.String),
  /** The package registries that it was started with. Absent: none. */
  packages: Schema.optionalKey(SandboxPackages),
  /** The container that has its processes. Absent: they are the service's own. */
  container: Schema.optionalKey(
    Schema.Struct({
      socket: Schema.String,
      name: Schema.String,
      /** The engine's control groups of it, empty until it runs. */
      cgroups: Schema.Array(Schema.String),
    }),
  ),
  /** The image's digest. Absent for a sandbox in the machine's own root. */
  image: Schema.optionalKey(Schema.String),
  /** The digest of the agent runtime that the node has. Absent: the program is elsewhere. */
  agentRuntime: Schema.optionalKey(Schema.String),
});
export type SandboxRecord = typeof SandboxRecord.Type;

const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(SandboxRecord));

const decodeExit = Schema.decodeUnknownSync(Schema.fromJsonString(SandboxExit));

/** Sockets need a short path, and sandboxes a path that other users can traverse. The data directory offers neither. */
export const runDirectoryPath = (installationId: string): string =>
  join(tmpdir(), `platform-${installationId.slice(-12)}`);

/** The files of one sandbox. */
export interface SandboxPaths {
  readonly root: string;
  readonly record: string;
  readonly exit: string;
  readonly log: string;
  readonly oldLog: string;
  readonly run: string;
  readonly daemonSocket: string;
  readonly launch: string;
  /** Descriptor 3 of PID 1 in a container. */
  readonly up: string;
  /** The environment of PID 1 in a container. It is removed once it was read. */
  readonly environment: string;
  readonly agentReadable: string;
  readonly proxy: string;
  readonly proxySocket: string;
  /** The place of `proxy` below `run`. */
  readonly proxyMount: string;
  /** The new root is built over this directory. */
  readonly newRoot: string;
  readonly disk: string;
  readonly workspace: string;
  readonly home: string;
  readonly tmp: string;
}

export const sandboxPaths = (runDir: string, id: string): SandboxPaths => {
  const root = join(runDir, "s", id);
  return {
    root,
    record: join(root, "record.json"),
    exit: join(root, "exit.json"),
    log: join(root, "log"),
    oldLog: join(root, "log.old"),
    run: join(root, "run"),
    daemonSocket: join(root, "run", "d.sock"),
    launch: join(root, "run", "launch.json"),
    up: join(root, "run", "up"),
    environment: join(root, "run", "environment"),
    agentReadable: join(root, "run", "agent"),
    proxy: join(root, "proxy"),
    proxySocket: join(root, "proxy", "egress.sock"),
    proxyMount: join(root, "run", "proxy"),
    newRoot: join(root, "root"),
    disk: join(root, "disk"),
    workspace: join(root, "disk", "workspace"),
    home: join(root, "disk", "home"),
    tmp: join(root, "disk", "tmp"),
  };
};

/**
 * Creates the run directory and the parts that every sandbox shares.
 * @throws Error if others can write it, if it is not a directory, or if it is too long for socket paths
 */
export const openRunDirectory = async (runDir: string): Promise<void> => {
  const longest = sandboxPaths(runDir, "0".repeat(36)).proxySocket;
  if (Buffer.byteLength(longest) > SOCKET_PATH_MAX) {
    throw new Error(
      `the run directory ${runDir} is too long: a socket's path in it must stay below 100 bytes`,
    );
  }
  await mkdir(runDir, { recursive: true, mode: 0o711 });
  const stats = await lstat(runDir);
  if (!stats.isDirectory() || stats.uid !== process.geteuid?.() || (stats.mode & 0o022) !== 0) {
    throw new Error(`the run directory ${runDir} is not a directory that this user alone can write`);
  }
  // The sandboxes' uids must traverse it, even if a umask removed that permission. Other permissions stay unchanged.
  await chmod(runDir, (stats.mode & 0o777) | 0o111);
  await Promise.all(
    ["parts", "s"].map(async (name) => {
      await mkdir(join(runDir, name), { recursive: true });
      await chmod(join(runDir, name), 0o711);
    }),
  );
};

/** The directory of runtime bundles, made if it is missing. */
export const bundlesDirectory = async (runDir: string): Promise<string> => {
  const directory = join(runDir, "bundles");
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o711);
  return directory;
};

/** Ids of all sandboxes with a directory. */
export const sandboxIds = (runDir: string): Promise<string[]> => readdir(join(runDir, "s"));

/** Removes the directory if no sandbox is left in it. The next start creates its copies of programs again. */
export const leaveRunDirectory = async (runDir: string): Promise<void> => {
  if ((await sandboxIds(runDir)).length === 0) await rm(runDir, { recursive: true, force: true });
};

const ifThere = async <A>(operation: Promise<A>): Promise<A | null> => {
  try {
    return await operation;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
};

/** Replaces a file atomically: a reader sees either the old or the new content. */
const replaceFile = async (path: string, content: string): Promise<void> => {
  const next = `${path}.next`;
  await writeFile(next, content, { mode: 0o600 });
  await rename(next, path);
};

/** A sandbox's record. Null if it does not exist, or this version does not understand it. */
export const readRecord = async (paths: SandboxPaths): Promise<SandboxRecord | null> => {
  const text = await ifThere(readFile(paths.record, "utf8"));
  if (text === null) return null;
  try {
    return decodeRecord(text);
  } catch {
    return null;
  }
};

/** Digests of the images and runtimes that sandboxes of a run directory use. Also of a service that has sandboxes elsewhere now. */
export const treesInUse = async (runDir: string): Promise<ReadonlySet<string>> => {
  const ids = (await ifThere(sandboxIds(runDir))) ?? [];
  const records = await Promise.all(ids.map((id) => readRecord(sandboxPaths(runDir, id))));
  return new Set(records.flatMap((record) => [record?.image ?? [], record?.agentRuntime ?? []].flat()));
};

/** Whether a record exists, even one that this version does not understand. */
export const isRecorded = async (paths: SandboxPaths): Promise<boolean> =>
  (await ifThere(access(paths.record).then(() => true))) ?? false;

/** Whether the sandbox has a directory, with or without a record. */
export const hasDirectory = async (paths: SandboxPaths): Promise<boolean> =>
  (await ifThere(access(paths.root).then(() => true))) ?? false;

export const writeRecord = (paths: SandboxPaths, record: SandboxRecord): Promise<void> =>
  replaceFile(paths.record, JSON.stringify(record));

export const readExit = async (paths: SandboxPaths): Promise<SandboxExit | null> => {
  const text = await ifThere(readFile(paths.exit, "utf8"));
  return text === null ? null : decodeExit(text);
};

/** Keeps the first reason, which ended the sandbox. Later observations are ignored. */
export const writeExit = async (paths: SandboxPaths, exit: SandboxExit): Promise<SandboxExit> => {
  const earlier = await readExit(paths);
  if (earlier !== null) return earlier;
  await replaceFile(paths.exit, JSON.stringify(exit));
  return exit;
};

const hashFile = async (path: string): Promise<string> => {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest("hex");
};

/** The content hash of a file, cached by metadata that changes with the file (a node is 120 MB to hash). */
export const contentHash = async (runDir: string, source: string): Promise<string> => {
  const { ino, dev, size, mtimeMs, ctimeMs } = await stat(source);
  const stamp = createHash("sha256")
    .update(JSON.stringify([source, ino, dev, size, mtimeMs, ctimeMs]))
    .digest("hex");
  const memo = join(runDir, "parts", `.${stamp.slice(0, 32)}`);
  const record = await ifThere(readFile(memo, "utf8"));
  if (record !== null) return record;
  const hash = await hashFile(source);
  await replaceFile(memo, hash);
  return hash;
};

/** Installs a part once. `fill` writes the given file. */
const installPart = async (
  runDir: string,
  part: { readonly hash: string; readonly name: string; readonly mode: number },
  fill: (path: string) => Promise<void>,
): Promise<string> => {
  const directory = join(runDir, "parts", part.hash.slice(0, 32));
  const path = join(directory, part.name);
  try {
    await access(path);
    return path;
  } catch {
    // not installed yet
  }
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o711);
  const next = `${path}.${process.pid}`;
  await fill(next);
  await chmod(next, part.mode);
  await rename(next, path);
  return path;
};

/** Copies a program into the run directory, once for each content. @returns the copy's path */
export const installFile = async (
  runDir: string,
  source: string,
  name = basename(source),
): Promise<string> => {
  const hash = await contentHash(runDir, source);
  return installPart(runDir, { hash, name, mode: 0o755 }, (path) => copyFile(source, path));
};

/** Writes generated content into the run directory, once for each content. @returns its path */
export const installContent = (
  runDir: string,
  name: string,
  content: string | Uint8Array,
): Promise<string> => {
  const hash = createHash("sha256").update(name).update("\0").update(content).digest("hex");
  return installPart(runDir, { hash, name, mode: 0o755 }, (path) => writeFile(path, content));
};

/**
 * A second round for directories that the agent locked, and a third for entries that a concurrent removal took away.
 */
const REMOVALS_MAX = 3;

/**
 * Removes all files of a sandbox. Directories that the agent locked are unlocked, without following links. It uses the
 * machine's own programs: they descend directory by directory, while the kernel refuses a path from here in a tree that
 * is deeper than 4,096 bytes.
 * @throws Error if something stays
 */
export const removeTree = async (root: string): Promise<void> => {
  for (let attempt = 1; ; attempt += 1) {
    // eslint-disable-next-line no-await-in-loop -- trying again is for when the first did not help
    const complaint = await findComplaint("rm", ["-rf", "--one-file-system", "--", root]);
    if (complaint === null) return;
    if (attempt === REMOVALS_MAX) throw new Error(`a sandbox's directory cannot be removed: ${complaint}`);
    // The next removal reports anything that cannot be unlocked, or that has vanished.
    // eslint-disable-next-line no-await-in-loop -- one step after the other
    await findComplaint("chmod", ["-R", "u+rwX", "--", root]);
  }
};

/** How much of a program's error output is kept: a single message contains a whole path. */
const COMPLAINT_BYTES_MAX = 65_536;

/** Runs a program. @returns null on success, otherwise the end of its first error line, which contains the reason */
const findComplaint = async (program: string, args: readonly string[]): Promise<string | null> => {
  const { code, text } = await runShort([program, ...args], { stream: 2, bytesMax: COMPLAINT_BYTES_MAX });
  if (code === 0) return null;
  const [first = ""] = text.split("\n");
  return `${program}: ${first.slice(-200)}`;
};
