/** Writes tars that no honest program writes: with names, links and headers as a hostile image has them. */
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";

export interface TarEntry {
  readonly name: string;
  /** `0` a file (the default), `1` a hard link, `2` a symbolic link, `3` and `4` devices, `5` a directory, `6` a FIFO. */
  readonly type?: string;
  readonly mode?: number;
  readonly content?: string | Uint8Array;
  readonly link?: string;
  /** Extended attributes, as SCHILY's records. */
  readonly attributes?: Readonly<Record<string, Buffer>>;
}

const BLOCK = 512;
const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`;

const header = (entry: TarEntry, size: number): Buffer => {
  const block = Buffer.alloc(BLOCK);
  block.write(entry.name.slice(0, 100), 0, "latin1");
  block.write(octal(entry.mode ?? 0o755, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  block.write("        ", 148);
  block.write(entry.type ?? "0", 156);
  block.write((entry.link ?? "").slice(0, 100), 157, "latin1");
  block.write("ustar\u000000", 257, "latin1");
  // Of a device: 1, 3 is /dev/null.
  block.write(octal(1, 8), 329);
  block.write(octal(3, 8), 337);
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return block;
};

const padded = (content: Buffer): Buffer =>
  Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);

/** A record of an extended header: its length counts itself. */
const record = (key: string, value: Buffer): Buffer => {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from("\n")]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
};

const entryBytes = (entry: TarEntry): Buffer => {
  const records = [
    ...(entry.name.length > 100 ? [record("path", Buffer.from(entry.name))] : []),
    ...Object.entries(entry.attributes ?? {}).map(([name, value]) => record(`SCHILY.xattr.${name}`, value)),
  ];
  const extended = Buffer.concat(records);
  const content = Buffer.from(entry.content ?? "");
  return Buffer.concat([
    ...(records.length > 0
      ? [header({ name: "extended", type: "x" }, extended.length), padded(extended)]
      : []),
    header(entry, content.length),
    padded(content),
  ]);
};

/** The bytes of a tar with these entries, in order. */
export const tarOf = (entries: readonly TarEntry[]): Buffer =>
  Buffer.concat([...entries.map(entryBytes), Buffer.alloc(2 * BLOCK)]);

/** The blocks of a tar with so many empty files in one directory. */
function* blocksOfMany(count: number): Generator<Buffer> {
  const at = 1000;
  for (let first = 0; first < count; first += at) {
    const names = Array.from({ length: Math.min(at, count - first) }, (_, index) => `many/${first + index}`);
    yield Buffer.concat(names.map((name) => header({ name }, 0)));
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** A compressed tar with so many empty files in one directory. Uncompressed it has half a kilobyte for each. */
export const manyEmptyFiles = async (count: number): Promise<Buffer> => {
  const compressed = Readable.from(blocksOfMany(count)).pipe(createGzip({ level: 1 }));
  const chunks: Buffer[] = [];
  for await (const chunk of compressed) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

const APPLETS =
  "sh ls cat echo id mkdir touch sleep truncate dd chmod chown wget env mknod ln yes nc grep stat mkfifo chroot rm cp mv tail";

/** A root of busybox alone, as a tar. */
export const busyboxTar = async (): Promise<Buffer> => {
  const root = await mkdtemp(join(tmpdir(), "busybox-root-"));
  try {
    await mkdir(join(root, "bin"));
    await cp("/bin/busybox", join(root, "bin", "busybox"));
    await Promise.all(APPLETS.split(" ").map((name) => symlink("busybox", join(root, "bin", name))));
    const file = join(root, "..", `${root.split("/").at(-1)}.tar`);
    execFileSync("tar", [
      "--sort=name",
      "--mtime=@0",
      "--owner=0",
      "--group=0",
      "-C",
      root,
      "-cf",
      file,
      ".",
    ]);
    const bytes = await readFile(file);
    await rm(file);
    return bytes;
  } finally {
    await rm(root, { recursive: true });
  }
};
