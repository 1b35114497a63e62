/** The content of one path of the workspace, byte for byte as it lies on the disk. No link is followed. */
import { createHash, type Hash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  type BigIntStats,
} from "node:fs";
import type { ListedItem } from "../../src/domain/save/listing.ts";

const CHUNK = 1024 * 1024;
/** How often a file that changes while it is read is read again. */
const TRIES = 3;

/** An absolute path. `path` is latin1 text, one character a byte. */
export const absolute = (directory: string, path: string): Buffer =>
  path === ""
    ? Buffer.from(directory)
    : Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, "latin1")]);

/** A path that is relative to a directory, with the directory's own path in front. */
export const below = (directory: string, path: string): string =>
  directory === "" ? path : `${directory}/${path}`;

export const parentPath = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** The digest that git would give to a file of this size. */
export const objectHash = (size: number): Hash => createHash("sha1").update(`blob ${size}\0`);

const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error ? String(error.code) : undefined;

/** Why a path has no content. */
export type Unread = "missing" | "unreadable" | "directory" | "device" | "fifo" | "socket";

export const whyUnread = (error: unknown): Unread => {
  const code = errorCode(error) ?? "";
  return ["ENOENT", "ENOTDIR", "ELOOP"].includes(code) ? "missing" : "unreadable";
};

/** A path and its file. */
export interface Present {
  readonly bytes: Buffer;
  readonly stats: BigIntStats;
}

/** Looks at paths below one directory. A path that leads through a link is missing. */
export class Tree {
  readonly root: string;
  readonly #real: Buffer;
  /** Whether these directories are where they seem to be. The last ones only, because paths come in order. */
  readonly #checked = new Map<string, boolean>();

  constructor(root: string) {
    this.root = root;
    this.#real = realpathSync.native(root, "buffer");
  }

  look(path: string): Present | Unread {
    const bytes = absolute(this.root, path);
    try {
      if (!this.#isInside(parentPath(path))) return "missing";
      const stats = lstatSync(bytes, { bigint: true });
      return unreadKind(stats) ?? { bytes, stats };
    } catch (error) {
      return whyUnread(error);
    }
  }

  #isInside(directory: string): boolean {
    if (directory === "") return true;
    const cached = this.#checked.get(directory);
    if (cached !== undefined) return cached;
    const expected = Buffer.concat([this.#real, Buffer.from(`/${directory}`, "latin1")]);
    const isInside = realpathSync.native(absolute(this.root, directory), "buffer").equals(expected);
    if (this.#checked.size > 10_000) this.#checked.clear();
    this.#checked.set(directory, isInside);
    return isInside;
  }
}

/** Null means a file or a link. */
const unreadKind = (stats: BigIntStats): Unread | null => {
  if (stats.isFile() || stats.isSymbolicLink()) return null;
  if (stats.isDirectory()) return "directory";
  if (stats.isFIFO()) return "fifo";
  return stats.isSocket() ? "socket" : "device";
};

export const gitMode = (stats: BigIntStats): ListedItem["mode"] => {
  if (stats.isSymbolicLink()) return "120000";
  return (stats.mode & 0o100n) === 0n ? "100644" : "100755";
};

/** Differs if the file may have changed. */
export const fileStamp = ({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ctimeNs} ${ino}`;

/** Reads a file from its begin to its size. @returns whether it was unchanged meanwhile */
const readThrough = ({ bytes, stats }: Present, use: (chunk: Buffer) => void): boolean => {
  const file = openSync(bytes, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK, Number(stats.size) + 1));
    let rest = Number(stats.size);
    while (rest > 0) {
      const read = readSync(file, buffer, 0, Math.min(rest, buffer.length), null);
      if (read === 0) return false;
      use(buffer.subarray(0, read));
      rest -= read;
    }
    return fileStamp(fstatSync(file, { bigint: true })) === fileStamp(stats);
  } finally {
    closeSync(file);
  }
};

/** The largest content that is kept beside its digest, bytes. */
const SMALL_BYTES = 64 * 1024;

/** A path as a listing has it. */
export interface Digested {
  readonly mode: ListedItem["mode"];
  readonly size: number;
  readonly object: string;
  readonly stamp: string;
  /** Null if it is large, or was not read. */
  readonly content: Buffer | null;
}

/** Reads a path whole. If the file changes meanwhile, the digest is of what was read last. */
export const digest = (
  tree: Tree,
  path: string,
  former?: { stamp: string; object: string },
): Digested | Unread => {
  for (let tries = 1; ; tries += 1) {
    const there = tree.look(path);
    if (typeof there === "string") return there;
    const { stats } = there;
    const [mode, stamp] = [gitMode(stats), fileStamp(stats)];
    const size = Number(stats.size);
    if (former?.stamp === stamp) return { mode, size, object: former.object, stamp, content: null };
    try {
      if (mode === "120000") {
        const target = readlinkSync(there.bytes, "buffer");
        const object = objectHash(target.length).update(target).digest("hex");
        return { mode, size: target.length, object, stamp, content: target };
      }
      const hash = objectHash(size);
      const chunks: Buffer[] = [];
      const isWhole = readThrough(there, (chunk) => {
        hash.update(chunk);
        if (size <= SMALL_BYTES) chunks.push(Buffer.from(chunk));
      });
      const content = isWhole && size <= SMALL_BYTES ? Buffer.concat(chunks) : null;
      if (isWhole || tries === TRIES) return { mode, size, object: hash.digest("hex"), stamp, content };
    } catch (error) {
      if (tries === TRIES || errorCode(error) === "EACCES") return whyUnread(error);
    }
  }
};
