/** Compiles our programs in C for both processors: `npm run build:native`. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Architecture } from "../src/sandbox/machine/isolation/seccomp.ts";
import { NATIVE_PROGRAMS } from "../src/sandbox/native/programs.ts";

const FOLDER = path.join(import.meta.dirname, "../src/sandbox/native");
const LIBRARIES = path.join(import.meta.dirname, "../src/store/postgres/embedded/native");
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
  "-fno-ident",
  "-fno-stack-protector",
  "-fno-stack-clash-protection",
  "-fno-asynchronous-unwind-tables",
  "-fno-unwind-tables",
  "-fno-tree-loop-distribute-patterns",
  "-s",
  "-Wl,--build-id=none,-z,noseparate-code,-z,noexecstack,-z,norelro",
];
const PROGRAM_FLAGS = ["-static", "-no-pie", "-fno-pie"];
/** For programs that are not ours. */
const LIBRARY_FLAGS = ["-shared", "-fPIC"];

/** A source to compile. A program's source has its name with `.c`. */
export interface Source {
  readonly name: string;
  readonly folder: string;
  readonly flags: readonly string[];
}
export const SOURCES: readonly Source[] = [
  ...NATIVE_PROGRAMS.map((name) => ({ name, folder: FOLDER, flags: PROGRAM_FLAGS })),
  { name: "account.so", folder: LIBRARIES, flags: LIBRARY_FLAGS },
];

/** Where a compiled source is kept. */
export const builtPath = ({ name, folder }: Source, architecture: Architecture): string =>
  path.join(folder, architecture, name);

/** All files in C, with their contents. */
export const sourceFiles = (): readonly { readonly name: string; readonly text: string }[] =>
  [FOLDER, LIBRARIES].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.[ch]$/.test(name))
      .toSorted()
      .map((name) => ({ name, text: readFileSync(path.join(folder, name), "utf8") })),
  );

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
    sourceFiles()
      .map(({ name, text }) => `${name}\0${text}`)
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

/** A source, compiled now. @throws Error with the compiler's messages on standard error */
export const compile = ({ name, folder, flags }: Source, architecture: Architecture): Buffer => {
  const tools = TOOLS[architecture];
  const directory = mkdtempSync(path.join(tmpdir(), "platform-native-"));
  try {
    const output = path.join(directory, name);
    const source = `${path.parse(name).name}.c`;
    execFileSync(`${tools.prefix}gcc`, [...FLAGS, ...flags, ...tools.flags, "-o", output, source], {
      cwd: folder,
    });
    return readFileSync(output);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

const build = (architecture: Architecture): Built => {
  const compiler = compilerOf(architecture);
  if (compiler === null) throw new Error(`no ${TOOLS[architecture].prefix}gcc is installed`);
  const programs = SOURCES.map((source) => {
    const bytes = compile(source, architecture);
    const file = builtPath(source, architecture);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, bytes);
    chmodSync(file, 0o755);
    return [source.name, digest(bytes)] as const;
  });
  return { compiler, programs: Object.fromEntries(programs) };
};

if (import.meta.main) {
  const record: Native = { sources: sourcesDigest(), x64: build("x64"), arm64: build("arm64") };
  writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`);
}
