/**
 * Keeps the page's files as they are served, so that a start need not minify and compress them again: that takes a
 * quarter of a second of CPU time.
 *
 * The cache lies in the clone, beside Node's compile cache, and holds one file for each of the page's directories. It is
 * replaced when an input changed. If it is damaged or cannot be written, the page is made anew.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as Schema from "effect/Schema";

/** A file as the service sends it. */
export interface PageFile {
  readonly name: string;
  readonly type: string;
  readonly plain: Uint8Array;
  readonly gzipped: Uint8Array;
  /** Quoted, as in HTTP. */
  readonly tag: string;
}

const Kept = Schema.fromJsonString(
  Schema.Struct({
    key: Schema.String,
    files: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        type: Schema.String,
        plain: Schema.Uint8ArrayFromBase64,
        gzipped: Schema.Uint8ArrayFromBase64,
        tag: Schema.String,
      }),
    ),
  }),
);
const decode = Schema.decodeUnknownSync(Kept);
const encode = Schema.encodeSync(Kept);

const digest = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The first line is the digest of the rest. */
const load = async (file: string): Promise<typeof Kept.Type | null> => {
  try {
    const text = await readFile(file, "utf8");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    return digest(body) === text.slice(0, end) ? decode(body) : null;
  } catch {
    return null;
  }
};

/** Another service may write the same file, so it appears whole. */
const save = async (file: string, kept: typeof Kept.Type): Promise<void> => {
  const body = encode(kept);
  const draft = `${file}.${randomUUID()}`;
  try {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(draft, `${digest(body)}\n${body}`);
    await rename(draft, file);
  } catch {
    await rm(draft, { force: true }).catch(() => undefined);
  }
};

/** @returns where the files of a page are kept. @param directory the page's */
export const cacheFileOf = (directory: string): string =>
  path.join(
    fileURLToPath(new URL("../../../node_modules/.cache/page", import.meta.url)),
    `${digest(directory).slice(0, 16)}.json`,
  );

/**
 * @param file where the result is kept
 * @param inputs everything that the result depends on
 * @returns what an earlier call returned for the same inputs, else what `make` returns
 */
export const madeOnce = async (
  file: string,
  inputs: readonly (string | Uint8Array)[],
  make: () => Promise<readonly PageFile[]>,
): Promise<readonly PageFile[]> => {
  const key = digest(inputs.map(digest).join());
  const kept = await load(file);
  if (kept?.key === key) return kept.files;
  const files = await make();
  await save(file, { key, files });
  return files;
};
