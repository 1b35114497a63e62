/**
 * Keeps what is built from files of the clone (the page's minified files, the programs of sandboxes): by `npm run build`, or
 * by a start that finds newer files. That takes more than a second of CPU time.
 *
 *  B1 A kept result is used only if everything that it was made of is the same, by content. A result is not kept if one of its files
 *     changed while it was made.
 *  B2 A damaged file is like none. Each file appears whole, also if two services write it.
 *     The files are named from the clone's root: a copy of a clone, with its cache, looks at its own files.
 *  B3 With a cache that cannot be read or written, the result is made anew. A read-only clone keeps nothing.
 *  B4 Without development packages nothing can be built. Then a result that is not kept fails with one sentence.
 *
 * It lies in the clone, as Node's compile cache does (compile-cache.ts): who can write there can change the service itself.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as Schema from "effect/Schema";

/** A result, and the files that it was made of, as absolute paths. */
export interface Made<A> {
  readonly value: A;
  readonly inputs: readonly string[];
}

export interface Recipe<A> {
  /** Where the result is kept (`keptFile`). */
  readonly file: string;
  /** What the result depends on beside files. */
  readonly key: string;
  readonly schema: Schema.Codec<A, unknown>;
  readonly make: () => Promise<Made<A>>;
}

/** The message is for the operator. */
export class NotBuilt extends Error {}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Says which versions of packages are installed. */
const LOCKFILE = path.join(ROOT, "package-lock.json");

const digest = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** @returns the file of the cache for a result. @param name differs for each result that is kept at the same time */
export const keptFile = (name: string): string =>
  path.join(ROOT, "build", `${digest(name).slice(0, 16)}.json`);

const Record = Schema.Struct({
  key: Schema.String,
  /** From the clone's root. */
  inputs: Schema.Array(Schema.String),
  /** Of the inputs' contents. */
  digest: Schema.String,
  value: Schema.Unknown,
});
const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(Record));

const inputsDigest = async (inputs: readonly string[]): Promise<string> => {
  const contents = await Promise.all([...inputs, LOCKFILE].map((input) => readFile(input)));
  return digest(contents.map(digest).join());
};

/** By the time that no program sets. @param sinceMs in whole milliseconds, which have begun */
const haveChanged = async (inputs: readonly string[], sinceMs: number): Promise<boolean> => {
  const states = await Promise.all(inputs.map((input) => stat(input)));
  return states.some(({ ctimeMs }) => ctimeMs >= sinceMs + 1);
};

/** The first line is the digest of the rest (B2). */
const load = async <A>({ file, key, schema }: Recipe<A>): Promise<Made<A> | null> => {
  try {
    const text = await readFile(file, "utf8");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    if (digest(body) !== text.slice(0, end)) return null;
    const record = decodeRecord(body);
    const inputs = record.inputs.map((input) => path.resolve(ROOT, input));
    // An absolute name may be one of the clone from which this one was copied.
    if (record.key !== key || record.inputs.some((input) => path.isAbsolute(input))) return null;
    if (record.digest !== (await inputsDigest(inputs))) return null;
    return { value: Schema.decodeUnknownSync(schema)(record.value), inputs };
  } catch {
    return null;
  }
};

const save = async <A>(
  { file, key, schema }: Recipe<A>,
  { value, inputs }: Made<A>,
  sinceMs: number,
): Promise<void> => {
  const draft = `${file}.${randomUUID()}`;
  try {
    if (await haveChanged(inputs, sinceMs)) return;
    const body = JSON.stringify({
      key,
      inputs: inputs.map((input) => path.relative(ROOT, input)),
      digest: await inputsDigest(inputs),
      value: Schema.encodeSync(schema)(value),
    });
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(draft, `${digest(body)}\n${body}`);
    await rename(draft, file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
};

/** Of the programs of sandboxes, and of the page. */
const BUNDLERS = ["'esbuild'", "'vite'"];

const lacksBundler = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  error.code === "ERR_MODULE_NOT_FOUND" &&
  BUNDLERS.some((name) => error.message.includes(name));

const madeNow = async <A>({ make }: Recipe<A>): Promise<Made<A>> => {
  try {
    return await make();
  } catch (error) {
    if (!lacksBundler(error)) throw error;
    throw new NotBuilt(
      "The service is not built, or its files are newer than the build: run `npm ci && npm run build`, and then `npm prune --omit=dev` if development packages must not stay.",
      { cause: error },
    );
  }
};

/** @returns what `make` returns, now or in an earlier start. Rejects with `NotBuilt` (B4), or as `make` does. */
export const madeOnce = async <A>(recipe: Recipe<A>): Promise<A> => {
  const cached = await load(recipe);
  if (cached !== null) return cached.value;
  // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
  const sinceMs = Date.now();
  const result = await madeNow(recipe);
  await save(recipe, result, sinceMs);
  return result.value;
};
