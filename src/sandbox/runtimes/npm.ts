/** Packages of npm with all that they need, in a directory. npm compares each file with the checksum that its registry names. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import * as Schema from "effect/Schema";

/** Usual programs have up to 500 MB. */
const WITHIN_MS = 15 * 60_000;
const OUTPUT_BYTES = 4 * 1024 * 1024;

export interface PackageWish {
  readonly name: string;
  readonly version: string;
  /** Whether it comes without its optional parts. */
  readonly isBare: boolean;
}

/** The files that npm writes beside the packages. */
const Lock = Schema.fromJsonString(
  Schema.Struct({
    packages: Schema.Record(
      Schema.String,
      Schema.Struct({ version: Schema.String, integrity: Schema.optionalKey(Schema.String) }),
    ),
  }),
);
const decodeLock = Schema.decodeUnknownSync(Lock);

/** One package in a directory. */
export interface Unpacked {
  /** Its place below the directory, such as `node_modules/zod`. */
  readonly place: string;
  readonly version: string;
  /** `sha512-…`. */
  readonly integrity: string;
}

/** npm's own words, without its debug log's address. */
const errorWords = (error: unknown): string => {
  const { stderr = "", message = "" } = error as { readonly stderr?: string; readonly message?: string };
  const lines = stderr
    .split("\n")
    .filter((line) => line.startsWith("npm error") && !/log of this run/.test(line));
  return lines.length === 0
    ? message
    : lines
        .map((line) => line.replace(/^npm error ?/, ""))
        .join(" ")
        .trim();
};

/**
 * Unpacks a package of exactly this version below a directory, which is made. No script of any package runs.
 * @throws Error with npm's words, or if a package has no checksum
 */
export const unpackPackage = async (
  npm: string,
  { name, version, isBare }: PackageWish,
  directory: string,
): Promise<readonly Unpacked[]> => {
  await mkdir(directory, { recursive: true });
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", ...(isBare ? ["--omit=optional"] : [])];
  const args = ["install", "--prefix", directory, ...options, "--save-exact", "--", `${name}@${version}`];
  await promisify(execFile)(npm, args, {
    cwd: directory,
    timeout: WITHIN_MS,
    maxBuffer: OUTPUT_BYTES,
  }).catch((error: unknown) => {
    throw new Error(`npm could not get ${name}@${version}: ${errorWords(error)}`);
  });
  const lock = path.join(directory, "node_modules/.package-lock.json");
  const { packages } = decodeLock(await readFile(lock, "utf8"));
  return Object.entries(packages).map(([place, { version: found, integrity }]) => {
    if (integrity === undefined)
      throw new Error(`The registry names no checksum of ${place}, so it is not taken.`);
    return { place, version: found, integrity };
  });
};

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    bin: Schema.optionalKey(Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.String)])),
  }),
);
const decodeManifest = Schema.decodeUnknownSync(Manifest);

/** A program that Node runs. Any other one runs by itself. */
const OF_NODE = /^#!.*\bnode\b|\.[cm]?js$/;

/**
 * The command of a package as npm chooses it: the only one, or the one with the package's name.
 *
 * @param directory into which it was unpacked
 * @param program the command's name. Null means npm's choice
 * @returns the words that start it, with the holes of `installedAt`
 * @throws Error if it has none, or several of which none has its name
 */
export const packageProgram = async (
  directory: string,
  { name, program }: { readonly name: string; readonly program: string | null },
): Promise<readonly string[]> => {
  const home = path.join(directory, "node_modules", name);
  const { bin = {} } = decodeManifest(await readFile(path.join(home, "package.json"), "utf8"));
  const own = name.slice(name.lastIndexOf("/") + 1);
  const programs = typeof bin === "string" ? { [own]: bin } : bin;
  const names = Object.keys(programs);
  const file = programs[program ?? (names.length === 1 ? (names[0] ?? "") : own)];
  if (file === undefined)
    throw new Error(
      program === null
        ? `The package ${name} has no command of its name. It has: ${names.join(", ") || "none"}.`
        : `The package ${name} has no command ${program}. It has: ${names.join(", ") || "none"}.`,
    );
  const place = path.posix.join(name, file);
  if (!place.startsWith(`${name}/`))
    throw new Error(`The command of ${name} is not one of its files: ${file}.`);
  const text = await readFile(path.join(home, file)).catch(() => Buffer.alloc(0));
  const [line = ""] = text.subarray(0, 200).toString("latin1").split("\n");
  return OF_NODE.test(line) || OF_NODE.test(file) ? ["{node}", `{own}/${place}`] : [`{own}/${place}`];
};

/** One digest of all of them, in any order, and of further lines. */
export const treeDigest = (
  parts: Readonly<Record<string, readonly Unpacked[]>>,
  further: readonly string[] = [],
): string => {
  const lines = Object.entries(parts).flatMap(([part, packages]) =>
    packages.map(({ place, version, integrity }) => [part, place, version, integrity].join(" ")),
  );
  return `sha256:${createHash("sha256")
    .update([...lines.toSorted(), ...further].join("\n"))
    .digest("hex")}`;
};
