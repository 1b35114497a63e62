/**
 * A root file system with musl: its loader, as Debian's package `musl` has it, and a program that is linked to it dynamically. No
 * package of Debian has one, so this writes it, byte by byte.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const LIBRARY = "/lib/x86_64-linux-musl/libc.so";
/** The loader, which is the library too. Programs name it. */
const LOADER = "/lib/ld-musl-x86_64.so.1";

/** Null where roots with musl can be made. */
export const lacksMusl: string | null =
  process.arch === "x64" && existsSync(LIBRARY) ? null : "(needs x86-64 and Debian's package musl)";

/** Where the only segment is in memory. */
const BASE = 0x40_0000;
const HEADERS = { file: 64, segment: 56, segments: 3 } as const;
const SYMBOL_BYTES = 24;
const RELOCATION_BYTES = 24;
/** Sets a slot to a symbol's address. */
const GLOB_DAT = 6n;
const GLOBAL_FUNCTION = 0x12;
/** Tags of the dynamic section. */
const TAG = { needed: 1, hash: 4, strings: 5, symbols: 6, rela: 7, relaBytes: 8, relaEntry: 9 } as const;
const SEGMENT = { load: 1, dynamic: 2, interpreter: 3 } as const;

const words32 = (...words: readonly number[]): Buffer => Buffer.from(new Uint32Array(words).buffer);
const words64 = (...words: readonly (number | bigint)[]): Buffer =>
  Buffer.from(new BigUint64Array(words.map(BigInt)).buffer);
const text = (...texts: readonly string[]): Buffer => Buffer.from(texts.map((one) => `${one}\0`).join(""));

/** Parts of a file, each at a multiple of 16 bytes. */
class Parts {
  bytes = Buffer.alloc(HEADERS.file + HEADERS.segment * HEADERS.segments);

  /** @returns the part's address in memory */
  add(part: Buffer): number {
    const gap = Buffer.alloc((16 - (this.bytes.length % 16)) % 16);
    const address = BASE + this.bytes.length + gap.length;
    this.bytes = Buffer.concat([this.bytes, gap, part]);
    return address;
  }
}

const segment = (type: number, address: number, bytes: number): Buffer =>
  // Readable, writable and executable, because there is only one.
  Buffer.concat([words32(type, 7), words64(address - BASE, address, address, bytes, bytes, 16)]);

/** An x86-64 program that prints a line by musl's `puts`, and ends by its `exit`. */
const printer = (line: string): Buffer => {
  const parts = new Parts();
  const interpreter = parts.add(text(LOADER));
  const message = parts.add(text(line));
  const strings = parts.add(text("", "puts", "exit", "libc.so"));
  const symbol = (name: number): Buffer =>
    Buffer.concat([words32(name), Buffer.from([GLOBAL_FUNCTION, 0, 0, 0]), words64(0, 0)]);
  const symbols = parts.add(Buffer.concat([Buffer.alloc(SYMBOL_BYTES), symbol(1), symbol(6)]));
  // One bucket without a symbol, since the program offers none.
  const hash = parts.add(words32(1, 3, 0, 0, 0, 0));
  const slots = parts.add(words64(0, 0));
  const rela = parts.add(words64(slots, (1n << 32n) | GLOB_DAT, 0, slots + 8, (2n << 32n) | GLOB_DAT, 0));
  const dynamicParts = [
    [TAG.needed, 11],
    [TAG.hash, hash],
    [TAG.strings, strings],
    [TAG.symbols, symbols],
    [TAG.rela, rela],
    [TAG.relaBytes, 2 * RELOCATION_BYTES],
    [TAG.relaEntry, RELOCATION_BYTES],
    [0, 0],
  ] as const;
  const dynamic = parts.add(words64(...dynamicParts.flat()));
  const callSlot = (slot: number): Buffer =>
    Buffer.concat([Buffer.from([0xff, 0x14, 0x25]), words32(slots + 8 * slot)]);
  const entry = parts.add(
    // mov edi, message; call [puts]; xor edi, edi; call [exit]
    Buffer.concat([
      Buffer.from([0xbf]),
      words32(message),
      callSlot(0),
      Buffer.from([0x31, 0xff]),
      callSlot(1),
    ]),
  );
  const { bytes } = parts;
  const identity = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const header = Buffer.concat([
    identity,
    // An executable for x86-64.
    Buffer.from(new Uint16Array([2, 62]).buffer),
    words32(1),
    words64(entry, HEADERS.file, 0),
    words32(0),
    Buffer.from(new Uint16Array([HEADERS.file, HEADERS.segment, HEADERS.segments, 0, 0, 0]).buffer),
  ]);
  const segments = [
    segment(SEGMENT.interpreter, interpreter, text(LOADER).length),
    segment(SEGMENT.load, BASE, bytes.length),
    segment(SEGMENT.dynamic, dynamic, dynamicParts.length * 16),
  ];
  Buffer.concat([header, ...segments]).copy(bytes);
  return bytes;
};

/** Adds musl and the program `greet-by-musl`, which prints the line, to a root. */
export const addMusl = async (root: string, line: string): Promise<void> => {
  await Promise.all(["lib", "bin"].map((name) => mkdir(join(root, name), { recursive: true })));
  await copyFile(LIBRARY, join(root, LOADER));
  await writeFile(join(root, "bin/greet-by-musl"), printer(line), { mode: 0o755 });
};
