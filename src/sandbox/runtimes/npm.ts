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
const wordsOf = (error: unknown): string => {
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
  const args = ["install", "--prefix", directory, ...options, "--save-exact", `${name}@${version}`];
  await promisify(execFile)(npm, args, {
    cwd: directory,
    timeout: WITHIN_MS,
    maxBuffer: OUTPUT_BYTES,
  }).catch((error: unknown) => {
    throw new Error(`npm could not get ${name}@${version}: ${wordsOf(error)}`);
  });
  const lock = path.join(directory, "node_modules/.package-lock.json");
  const { packages } = decodeLock(await readFile(lock, "utf8"));
  return Object.entries(packages).map(([place, { version: found, integrity }]) => {
    if (integrity === undefined)
      throw new Error(`The registry names no checksum of ${place}, so it is not taken.`);
    return { place, version: found, integrity };
  });
};

/** One digest of all of them, in any order. */
export const digestOf = (parts: Readonly<Record<string, readonly Unpacked[]>>): string => {
  const lines = Object.entries(parts).flatMap(([part, packages]) =>
    packages.map(({ place, version, integrity }) => [part, place, version, integrity].join(" ")),
  );
  return `sha256:${createHash("sha256").update(lines.toSorted().join("\n")).digest("hex")}`;
};
