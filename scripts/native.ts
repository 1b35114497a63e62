/** Compiles the programs of src/sandbox/native for both processors: `npm run build:native`. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Architecture } from "../src/sandbox/machine/seccomp.ts";
import { NATIVE_PROGRAMS, nativePath, type NativeProgram } from "../src/sandbox/native/programs.ts";

const FOLDER = path.join(import.meta.dirname, "../src/sandbox/native");
const RECORD = path.join(FOLDER, "programs.json");

/** Debian's packages gcc and gcc-aarch64-linux-gnu. */
const TOOLS: Readonly<Record<Architecture, { readonly prefix: string; readonly flags: readonly string[] }>> =
  {
    x64: { prefix: "x86_64-linux-gnu-", flags: ["-mno-red-zone", "-fcf-protection=none"] },
    arm64: { prefix: "aarch64-linux-gnu-", flags: [] },
  };
export const ARCHITECTURES = Object.keys(TOOLS) as Architecture[];

/** No C library, one segment, no unwind tables and no names of files: the same sources give the same bytes. */
const FLAGS = [
  "-std=c17",
  "-Os",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-ffreestanding",
  "-nostdlib",
  "-static",
  "-no-pie",
  "-fno-pie",
  "-fno-ident",
  "-fno-stack-protector",
  "-fno-stack-clash-protection",
  "-fno-asynchronous-unwind-tables",
  "-fno-unwind-tables",
  "-fno-tree-loop-distribute-patterns",
  "-s",
  "-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-z,norelro",
];

/** What programs.json says of one processor's programs. */
interface Built {
  /** The first lines of what compiler and linker say of their versions. */
  readonly compiler: string;
  readonly programs: Readonly<Record<string, string>>;
}
export interface Native extends Readonly<Record<Architecture, Built>> {
  /** The digest of all C sources. */
  readonly sources: string;
}

export const digest = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

/** @returns the record of the programs in the tree */
export const recorded = (): Native => JSON.parse(readFileSync(RECORD, "utf8")) as Native;

/** The digest of the sources as they are now. */
export const sourcesDigest = (): string =>
  digest(
    readdirSync(FOLDER)
      .filter((name) => /\.[ch]$/.test(name))
      .toSorted()
      .map((name) => `${name}\0${readFileSync(path.join(FOLDER, name), "utf8")}`)
      .join("\0"),
  );

const firstLine = (command: string): string | null => {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  return status === 0 ? (stdout.split("\n")[0] ?? null) : null;
};

/** The compiler and linker for a processor on this machine. Null: one is not installed. */
export const compilerOf = (architecture: Architecture): string | null => {
  const { prefix } = TOOLS[architecture];
  const [compiler, linker] = [firstLine(`${prefix}gcc`), firstLine(`${prefix}ld`)];
  return compiler === null || linker === null ? null : `${compiler}; ${linker}`;
};

/** A program, compiled now. @throws Error with the compiler's messages on standard error */
export const compile = (program: NativeProgram, architecture: Architecture): Buffer => {
  const { prefix, flags } = TOOLS[architecture];
  const directory = mkdtempSync(path.join(tmpdir(), "platform-native-"));
  try {
    const output = path.join(directory, program);
    execFileSync(`${prefix}gcc`, [...FLAGS, ...flags, "-o", output, `${program}.c`], { cwd: FOLDER });
    return readFileSync(output);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

const build = (architecture: Architecture): Built => {
  const compiler = compilerOf(architecture);
  if (compiler === null) throw new Error(`no ${TOOLS[architecture].prefix}gcc is installed`);
  mkdirSync(path.join(FOLDER, architecture), { recursive: true });
  const programs = NATIVE_PROGRAMS.map((program) => {
    const bytes = compile(program, architecture);
    const file = path.join(FOLDER, nativePath(program, architecture));
    writeFileSync(file, bytes);
    chmodSync(file, 0o755);
    return [program, digest(bytes)] as const;
  });
  return { compiler, programs: Object.fromEntries(programs) };
};

if (import.meta.main) {
  const record: Native = { sources: sourcesDigest(), x64: build("x64"), arm64: build("arm64") };
  writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`);
}
