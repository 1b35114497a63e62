/**
 * The files of the page as the service sends them: minified and compressed, each with a tag by which a
 * browser knows that it has it. The modules stay what they are in the folder (decision 0050).
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import * as Schema from "effect/Schema";
import { keptFile, madeOnce } from "../../build-cache.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * The page's libraries, by the names under which it imports them. Each is its package's file for browsers, which imports
 * nothing.
 */
const LIBRARIES = [["markdown-it.js", fileURLToPath(import.meta.resolve("markdown-it/browser"))]] as const;

const PageFile = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  plain: Schema.Uint8ArrayFromBase64,
  gzipped: Schema.Uint8ArrayFromBase64,
  /** Quoted, as in HTTP. */
  tag: Schema.String,
});
export type PageFile = typeof PageFile.Type;

const compressed = promisify(gzip);

const MINIFY = { minify: true, charset: "utf8", target: "esnext", logLevel: "error" } as const;

/** The style sheet that imports all others: they compress better as one file, and arrive with one request. */
const STYLES = "page.css";

/** Code, minified one by one: each module stays a file. The style sheet has what it imports. */
const minified = async (files: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> => {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [...files],
    // Nothing is written.
    outdir: "/",
    write: false,
    // A module's imports stay.
    bundle: true,
    external: ["*.js"],
    format: "esm",
    legalComments: "none",
    ...MINIFY,
  });
  return new Map(outputFiles.map(({ path: file, contents }) => [path.basename(file), contents]));
};

/** A package's own minified file is for old browsers, too: for new ones it gets smaller. Its notice of the license stays. */
const library = async (file: string): Promise<Uint8Array> => {
  const { transform } = await import("esbuild");
  const { code } = await transform(await readFile(file, "utf8"), { ...MINIFY, legalComments: "inline" });
  return Buffer.from(code);
};

/** Which size of blocks suits a file, each block with codes of its own, depends on how it mixes code and tables. */
const MEMORY_LEVELS = [4, 5, 6, 7, 8, 9];

const smallest = async (plain: Uint8Array): Promise<Uint8Array> => {
  const all = await Promise.all(MEMORY_LEVELS.map((memLevel) => compressed(plain, { level: 9, memLevel })));
  return all.reduce((best, next) => (next.length < best.length ? next : best));
};

const served = async (name: string, plain: Uint8Array): Promise<PageFile> => ({
  name,
  type: TYPES[path.extname(name)] ?? "application/octet-stream",
  plain,
  gzipped: await smallest(plain),
  tag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
});

const make = async (directory: string, names: readonly string[]): Promise<readonly PageFile[]> => {
  const shown = names.filter((name) => path.extname(name) !== ".css" || name === STYLES);
  const code = await minified(
    shown.filter((name) => /\.(?:js|css)$/.test(name)).map((name) => path.join(directory, name)),
  );
  return Promise.all([
    ...shown.map(async (name) =>
      served(name, code.get(name) ?? (await readFile(path.join(directory, name)))),
    ),
    ...LIBRARIES.map(async ([name, file]) => served(name, await library(file))),
  ]);
};

const read = async (directory: string): Promise<readonly PageFile[]> => {
  const names = (await readdir(directory)).filter((name) => path.extname(name) in TYPES).toSorted();
  const sources = names.map((name) => path.join(directory, name));
  const inputs = [...sources, ...LIBRARIES.map(([, file]) => file), import.meta.filename];
  return madeOnce({
    file: keptFile(`page ${directory}`),
    // A new file is an input that an earlier start did not have.
    key: names.join(),
    schema: Schema.Array(PageFile),
    make: async () => ({ value: await make(directory, names), inputs }),
  });
};

const pages = new Map<string, Promise<readonly PageFile[]>>();

/** Reads a page once in a process: there are a few dozen files, of a few kilobytes each, and none is added later. */
export const readPage = (directory: string): Promise<readonly PageFile[]> => {
  const known = pages.get(directory) ?? read(directory);
  pages.set(directory, known);
  return known;
};
