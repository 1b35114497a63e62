/**
 * Small changes to ELF programs of this machine, so that they run in any root directory from `/opt/platform/lib`: with
 * their own dynamic loader, which finds their own libraries. Every change replaces bytes by as many bytes, so that no
 * offset in the file moves.
 */

/** The loader's path inside every sandbox. It is as long as `HOST_LOADER`. */
export const BUNDLE_LOADER = "/opt/platform/lib/gnu/ld.so";
/** Where the bundle's loader looks for libraries. */
const BUNDLE_LIBRARIES = "/opt/platform/lib/gnu/";
/** The loader that programs for glibc on x86-64 name. */
export const HOST_LOADER = "/lib64/ld-linux-x86-64.so.2";

const ELF_MAGIC = Buffer.from("\x7fELF", "latin1");
const CLASS_64 = 2;
const PT_INTERP = 3;
const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
/** A program has about ten program headers. */
const PROGRAM_HEADERS_MAX = 64;
/** The headers of every program that `readInterpreter` understands lie in its first bytes. */
export const HEAD_BYTES = HEADER_BYTES + PROGRAM_HEADERS_MAX * PROGRAM_HEADER_BYTES;

/** Where a program names its loader, as a byte range of the file. */
export interface Interpreter {
  readonly offset: number;
  readonly bytes: number;
}

/**
 * @param head the first `HEAD_BYTES` of a file
 * @returns null if the file is no 64-bit ELF program, or if it is linked statically
 */
export const readInterpreter = (head: Buffer): Interpreter | null => {
  if (head.length < HEADER_BYTES || !head.subarray(0, 4).equals(ELF_MAGIC) || head[4] !== CLASS_64)
    return null;
  const start = Number(head.readBigUInt64LE(32));
  const count = head.readUInt16LE(56);
  for (let index = 0; index < count; index += 1) {
    const at = start + index * PROGRAM_HEADER_BYTES;
    if (at + PROGRAM_HEADER_BYTES > head.length) return null;
    if (head.readUInt32LE(at) === PT_INTERP) {
      return { offset: Number(head.readBigUInt64LE(at + 8)), bytes: Number(head.readBigUInt64LE(at + 32)) };
    }
  }
  return null;
};

/**
 * In this order: the second path is also the end of the first. The directories and files that Debian's glibc has built into its loader, and what replaces each. The caches of the
 * image's root must not apply: they name libraries of another glibc.
 */
const LOADER_CHANGES: readonly (readonly [from: string, to: string])[] = [
  ["/usr/lib/x86_64-linux-gnu/", `${BUNDLE_LIBRARIES}////`],
  ["/lib/x86_64-linux-gnu/", BUNDLE_LIBRARIES],
  ["/etc/ld.so.cache", "/etc/ld.so.none1"],
  ["/etc/ld.so.preload", "/etc/ld.so.nothing"],
];

/**
 * The loader for the bundle.
 * @throws Error if this is not the loader of a glibc with Debian's directories
 */
export const bundledLoader = (loader: Buffer): Buffer => {
  const patchedLoader = Buffer.from(loader);
  for (const [from, to] of LOADER_CHANGES) {
    const [search, replacement] = [Buffer.from(from), Buffer.from(to)];
    let at = patchedLoader.indexOf(search);
    if (at === -1) throw new Error(`its loader does not contain ${from}`);
    for (; at !== -1; at = patchedLoader.indexOf(search, at)) replacement.copy(patchedLoader, at);
  }
  return patchedLoader;
};
