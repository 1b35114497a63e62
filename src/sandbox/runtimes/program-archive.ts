/**
 * Unpacks the archive of an agent's program, whose checksum was compared before.
 *
 *  A1 No path and no link leads out of the directory. Links are made after all files, so nothing is written through one.
 *  A2 No set-uid or set-gid bit, no device, no pipe and no socket reaches the disk.
 *  A3 Bytes and files are counted while they are written.
 */
import { spawn } from "node:child_process";
import {
  closeSync,
  createWriteStream,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { chmod, copyFile } from "node:fs/promises";
import { dirname, join, posix, sep } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Bytes, forEachEntry, decompress } from "../images/unpack/archive.ts";
import { UnpackFailure } from "../images/unpack/failure.ts";
import { findProgram } from "../machine/tools.ts";

/** Usual programs have up to 500 MB. */
const LIMITS = { bytes: 4 * 1024 ** 3, files: 200_000 };
/** For the whole archive, in milliseconds. */
const UNPACK_MS = 10 * 60_000;
const MODE_MASK = 0o777;
const HEAD_BYTES = 4;

/** How files begin. The name of an archive says too little: an address may end in anything. */
const ZIP = Buffer.from("PK");
const BZIP2 = Buffer.from("BZh");
/** Files that are no archive: a program of Linux, and a script. */
const PROGRAMS = [Buffer.from("\u007fELF"), Buffer.from("#!")];

const displayName = (name: string): string => JSON.stringify(name.slice(0, 200));

/** The path of an entry below the directory. Empty: the directory itself. @throws UnpackFailure if it leads elsewhere (A1) */
const entryPath = (name: string): string => {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (posix.isAbsolute(name) || parts.includes(".."))
    throw new UnpackFailure(`the archive has a path that leads out of it: ${displayName(name)}`);
  return parts.join("/");
};

/** The tar in a file compressed with bzip2, which Node cannot read. @param path the machine's PATH */
const bunzip = (file: string, path: string): Readable => {
  const bzip2 = findProgram("bzip2", path);
  if (bzip2 === null)
    throw new UnpackFailure("the archive is compressed with bzip2, which is not installed here");
  const limits = { env: {}, timeout: UNPACK_MS, killSignal: "SIGKILL" } as const;
  return spawn(bzip2, ["-dc", "--", file], { ...limits, stdio: ["ignore", "pipe", "ignore"] }).stdout;
};

interface Link {
  readonly place: string;
  readonly target: string;
}

/** @returns the links, which are not made yet */
const writeFiles = async (tar: Bytes, root: string): Promise<readonly Link[]> => {
  const links: Link[] = [];
  const count = { bytes: 0, files: 0 };
  async function* counted(content: Bytes): AsyncGenerator<Buffer> {
    for await (const chunk of content) {
      count.bytes += chunk.length;
      if (count.bytes > LIMITS.bytes)
        throw new UnpackFailure(`the archive has more than ${LIMITS.bytes} bytes`);
      yield chunk;
    }
  }
  await forEachEntry(tar, async ({ name, type, mode, linkname }, content) => {
    const place = entryPath(name);
    if (place === "") return;
    count.files += 1;
    if (count.files > LIMITS.files)
      throw new UnpackFailure(`the archive has more than ${LIMITS.files} files`);
    const path = join(root, place);
    if (type === "directory") {
      mkdirSync(path, { recursive: true });
      return;
    }
    mkdirSync(dirname(path), { recursive: true });
    if (type === "file" || type === "contiguous-file") {
      rmSync(path, { force: true });
      await pipeline(counted(content), createWriteStream(path, { flags: "wx" }));
      await chmod(path, (mode | 0o444) & MODE_MASK);
    } else if (type === "link") linkSync(join(root, entryPath(linkname ?? "")), path);
    else if (type === "symlink") links.push({ place, target: linkname ?? "" });
  });
  return links;
};

/** A1. Each one is in a directory that was made before, so no link is made through another one. */
const makeLinks = (root: string, links: readonly Link[]): void => {
  const outside = ({ place, target }: Link) =>
    new UnpackFailure(
      `the archive has a link that leads out of it: ${displayName(place)} to ${displayName(target)}`,
    );
  for (const link of links) {
    const { place, target } = link;
    const end = posix.normalize(posix.join(posix.dirname(place), target));
    if (posix.isAbsolute(target) || end.startsWith("..")) throw outside(link);
    const path = join(root, place);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined)
      throw new UnpackFailure(`the archive has two files of one path: ${displayName(place)}`);
    symlinkSync(target, path);
  }
  // One link can lead over another one.
  for (const link of links) {
    const end = resolveLink(join(root, link.place));
    if (end !== null && end !== root && !end.startsWith(root + sep)) throw outside(link);
  }
};

/** Null if it leads nowhere, or in a circle. */
const resolveLink = (path: string): string | null => {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
};

/**
 * Unpacks a file below a directory: a tar without compression or with that of gzip, zstd or bzip2, or the program itself.
 *
 * @param program the program's place below the directory, which a file that is no archive gets
 * @param path the machine's PATH
 * @throws UnpackFailure
 */
export const unpackProgram = async (
  file: string,
  { directory, program, path }: Readonly<Record<"directory" | "program" | "path", string>>,
): Promise<void> => {
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    readSync(descriptor, head, 0, head.length, 0);
    const begins = (word: Buffer) => head.subarray(0, word.length).equals(word);
    if (begins(ZIP))
      throw new UnpackFailure("the archive is a .zip. The platform unpacks .tar.gz, .tar.bz2 and .tar.zst");
    if (PROGRAMS.some(begins)) await copyFile(file, join(directory, program));
    else {
      const root = realpathSync(directory);
      const tar = begins(BZIP2) ? bunzip(file, path) : decompress(descriptor);
      makeLinks(root, await writeFiles(tar, root));
    }
  } finally {
    closeSync(descriptor);
  }
};
