/**
 * Unpacks the archive of an agent's program, whose checksum was compared before.
 *
 *  A1 No path and no link leads out of the directory. Links are made after all files, so nothing is written through one.
 *  A2 No set-uid or set-gid bit, no device, no pipe and no socket reaches the disk.
 *  A3 Bytes and files are counted while they are written.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  createWriteStream,
  fstatSync,
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
import { pipeline } from "node:stream/promises";
import { errorCode } from "../../ground/net/fault.ts";
import { type Bytes, forEachEntry, decompress } from "../images/unpack/archive.ts";
import { UnpackFailure } from "../images/unpack/failure.ts";
import { findProgram } from "../machine/tools.ts";

/** Usual programs have up to 500 MB. */
const LIMITS = { bytes: 4 * 1024 ** 3, files: 200_000 };
/** For the whole archive, in milliseconds. */
const UNPACK_MS = 10 * 60_000;
const MODE_MASK = 0o777;
const HEAD_BYTES = 6;

/** How files begin. The name of an archive says too little: an address may end in anything. */
const OTHERS: readonly (readonly [head: Buffer, ending: string])[] = [
  [Buffer.from("PK"), ".zip"],
  [Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]), ".tar.xz"],
  [Buffer.from([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c]), ".7z"],
];
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
async function* bunzip(file: string, path: string): AsyncGenerator<Buffer> {
  const bzip2 = findProgram("bzip2", path);
  if (bzip2 === null)
    throw new UnpackFailure("the archive is compressed with bzip2, which is not installed here");
  const limits = { env: {}, timeout: UNPACK_MS, killSignal: "SIGKILL" } as const;
  const child = spawn(bzip2, ["-dc", "--", file], { ...limits, stdio: ["ignore", "pipe", "ignore"] });
  const end = once(child, "close");
  // If the archive is refused before its end, the program's end is not awaited.
  end.catch(() => undefined);
  yield* child.stdout as AsyncIterable<Buffer>;
  const [code] = (await end) as [number | null];
  if (code !== 0) throw new UnpackFailure("the archive is damaged: bzip2 cannot read it to its end");
}

/** A system's codes where one part of an archive stands in the way of another one. */
const IN_THE_WAY: ReadonlySet<string> = new Set(["EEXIST", "EISDIR", "ENOTDIR", "ERR_FS_EISDIR"]);

/** Makes a part of the archive. Its failure names the part as the archive does, and no path of this machine. @throws UnpackFailure */
const makePart = <A>(name: string, make: () => A): A => {
  try {
    return make();
  } catch (error) {
    if (error instanceof UnpackFailure) throw error;
    const code = errorCode(error);
    throw new UnpackFailure(
      IN_THE_WAY.has(code)
        ? `the archive has two files of one path: ${displayName(name)}`
        : `the archive has a file that cannot be written: ${displayName(name)} (${code})`,
    );
  }
};

interface Link {
  readonly place: string;
  readonly target: string;
}

/** @throws UnpackFailure if the archive does not have the file before the link */
const makeHardLink = (root: string, { place, target }: Link): void => {
  const existing = join(root, entryPath(target));
  if (lstatSync(existing, { throwIfNoEntry: false })?.isFile() !== true)
    throw new UnpackFailure(
      `the archive has a hard link to a file that does not stand before it: ${displayName(place)} to ${displayName(target)}`,
    );
  linkSync(existing, join(root, place));
};

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
    const target = linkname ?? "";
    makePart(place, () => mkdirSync(type === "directory" ? path : dirname(path), { recursive: true }));
    if (type === "file" || type === "contiguous-file") {
      const descriptor = makePart(place, () => {
        rmSync(path, { force: true });
        return openSync(path, "wx");
      });
      await pipeline(counted(content), createWriteStream("", { fd: descriptor }));
      await chmod(path, (mode | 0o444) & MODE_MASK);
    } else if (type === "link") makePart(place, () => makeHardLink(root, { place, target }));
    else if (type === "symlink") links.push({ place, target });
  });
  if (count.files === 0) throw new UnpackFailure("the archive is empty");
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
    const [, ending] = OTHERS.find(([other]) => begins(other)) ?? [];
    if (ending !== undefined)
      throw new UnpackFailure(
        `the archive is a ${ending}. The platform unpacks .tar, .tar.gz, .tar.bz2 and .tar.zst`,
      );
    if (fstatSync(descriptor).size === 0) throw new UnpackFailure("the archive is empty");
    if (PROGRAMS.some(begins)) {
      const place = join(directory, program);
      mkdirSync(dirname(place), { recursive: true });
      await copyFile(file, place);
    } else {
      const root = realpathSync(directory);
      const tar = begins(BZIP2) ? bunzip(file, path) : decompress(descriptor);
      makeLinks(root, await writeFiles(tar, root));
    }
  } finally {
    closeSync(descriptor);
  }
};
