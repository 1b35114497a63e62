/**
 * Writes the layers of an image over each other into the root directory. It runs with the new root as its own root, so
 * that no path and no link leads out of it (../import.ts). Calls are synchronous: the program does nothing else, and
 * asynchronous ones took most of its time.
 *
 *  U1 Nothing is written through a link that leads out of the root: there is no outside.
 *  U2 No set-uid or set-gid bit, no device, no pipe and no socket reaches the disk.
 *  U3 Bytes and files are counted while they are written.
 */
import {
  chmodSync,
  closeSync,
  fchmodSync,
  futimesSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import type { Header } from "tar-stream";
import { type Bytes, forEachEntry } from "./archive.ts";
import { UnpackFailure } from "./failure.ts";

export interface UnpackLimits {
  /** All files together. */
  readonly bytes: number;
  /** Files, directories and links. */
  readonly files: number;
}

/** The size of all written files. */
export interface Unpacked {
  readonly bytes: number;
  readonly files: number;
}

/** A file with this prefix removes the file without it, which is from a lower layer. */
const WHITEOUT = ".wh.";
/** Removes everything that lower layers have in its directory. */
const OPAQUE = ".wh..wh..opq";
/** Without set-uid and set-gid (U2). The sticky bit stays. */
const MODE_MASK = 0o1777;
/** Longer paths than the kernel takes. */
const PATH_MAX = 4096;

/** Programs and libraries of ours are mounted there while layers are written. */
const OWN = "opt/platform";

/** @param root the directory that becomes the root: `/`, except in tests */
export const writeLayers = async (
  root: string,
  layers: readonly (() => Readable)[],
  limits: UnpackLimits,
): Promise<Unpacked> => {
  const count = { bytes: 0, files: 0 };
  for (const open of layers) {
    // eslint-disable-next-line no-await-in-loop -- a layer lies on the ones below
    await forEachEntry(open(), ({ name }) => remove(root, name));
    // eslint-disable-next-line no-await-in-loop -- see above
    await writeLayer(root, open(), { limits, count });
  }
  return count;
};

/** The path of an entry in the root, or null for the root itself. @throws UnpackFailure if it leads elsewhere */
const entryPath = (name: string): string | null => {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes(".."))
    throw new UnpackFailure(`the image has a file with .. in its path: ${displayName(name)}`);
  const place = parts.join("/");
  if (Buffer.byteLength(place) >= PATH_MAX) throw new UnpackFailure("the image has a path that is too long");
  if (place === OWN || place.startsWith(`${OWN}/`))
    throw new UnpackFailure("the image has files in /opt/platform, which belongs to the platform");
  return place === "" ? null : place;
};

const displayName = (name: string): string => JSON.stringify(name.slice(0, 200));

const remove = async (root: string, name: string): Promise<void> => {
  const place = entryPath(name);
  if (place === null) return;
  const [directory, file] = [posix.dirname(place), posix.basename(place)];
  if (!file.startsWith(WHITEOUT)) return;
  const parent = join(root, directory);
  if (file !== OPAQUE) {
    const removedName = file.slice(WHITEOUT.length);
    if (removedName === "" || removedName === "." || removedName === "..")
      throw new UnpackFailure(`the image removes ${displayName(place)}`);
    await rm(join(parent, removedName), { recursive: true, force: true });
    return;
  }
  const children = await readdir(parent).catch(() => []);
  await Promise.all(children.map((child) => rm(join(parent, child), { recursive: true, force: true })));
};

interface Counting {
  readonly limits: UnpackLimits;
  readonly count: { bytes: number; files: number };
}

const writeLayer = async (root: string, layer: Readable, { limits, count }: Counting): Promise<void> => {
  /** Modes and times of directories, which change again while files are written into them. */
  const directories = new Map<string, Header>();
  await forEachEntry(layer, async (header, content) => {
    const place = entryPath(header.name);
    if (place === null || posix.basename(place).startsWith(WHITEOUT)) return;
    count.files += 1;
    if (count.files > limits.files) throw new UnpackFailure(`the image has more than ${limits.files} files`);
    const path = join(root, place);
    if (header.type === "directory") {
      makeDirectory(path);
      directories.set(path, header);
      return;
    }
    switch (header.type) {
      case "file":
      case "contiguous-file":
        await writeFile(path, { header, content, counting: { limits, count } });
        return;
      case "symlink":
        make(path, () => symlinkSync(header.linkname, path));
        return;
      case "link": {
        const target = entryPath(header.linkname);
        if (target === null) throw new UnpackFailure("the image has a link to its root");
        if (target === place) return;
        make(path, () => linkSync(join(root, target), path));
        return;
      }
      default:
      // Devices and pipes: a sandbox has its own (U2).
    }
  });
  // The innermost first.
  for (const [path, { mode, mtime }] of [...directories].toReversed()) {
    chmodSync(path, mode & MODE_MASK);
    if (isTime(mtime)) utimesSync(path, mtime, mtime);
  }
};

const isTime = (mtime: Date): boolean => Number.isFinite(mtime.getTime());

/** A directory of this layer replaces a file of a lower one, and keeps what a directory there has. */
const makeDirectory = (path: string): void => {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  // A link to a directory stays: later layers often name a directory by its old path, such as /lib.
  if (stats?.isSymbolicLink() === true && isDirectory(path)) return;
  if (stats !== undefined) rmSync(path, { force: true });
  mkdirSync(path, { recursive: true });
};

const isDirectory = (path: string): boolean => {
  try {
    return statSync(`${path}/.`).isDirectory();
  } catch {
    return false; // it leads nowhere, or in a circle
  }
};

/** Makes a file or a link. It replaces what lower layers have there. Most need no directory and replace nothing. */
const make = <A>(path: string, attempt: () => A): A => {
  try {
    return attempt();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") rmSync(path, { recursive: true, force: true });
    else if (code === "ENOENT") mkdirSync(posix.dirname(path), { recursive: true });
    else throw error;
    return attempt();
  }
};

const writeFile = async (
  path: string,
  {
    header: { mode, mtime },
    content,
    counting: { limits, count },
  }: { readonly header: Header; readonly content: Bytes; readonly counting: Counting },
): Promise<void> => {
  const file = make(path, () => openSync(path, "wx", 0o600));
  try {
    for await (const chunk of content) {
      count.bytes += chunk.length;
      if (count.bytes > limits.bytes)
        throw new UnpackFailure(`the image has more than ${limits.bytes} bytes`);
      writeFileSync(file, chunk);
    }
    fchmodSync(file, mode & MODE_MASK);
    if (isTime(mtime)) futimesSync(file, mtime, mtime);
  } finally {
    closeSync(file);
  }
};
