/**
 * The files of the page as the service sends them (decision 0095): one script for each reader, and one for each page that
 * few readers open, minified and compressed. A script and the styles are named by their content, so a
 * browser keeps them without asking. `index.html` names the newest ones.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import * as Schema from "effect/Schema";
import { escapeHtml } from "../../ground/html.ts";
import { keptFile, madeOnce } from "../../ground/build-cache.ts";
import { BUNDLE_SOURCES, bundlePage, type Content } from "./page-bundle.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

const PageFile = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  plain: Schema.Uint8ArrayFromBase64,
  gzipped: Schema.Uint8ArrayFromBase64,
  /** Quoted, as in HTTP. */
  tag: Schema.String,
  /** Its name says its content: a browser that has it need not ask again. */
  isLasting: Schema.Boolean,
});
export type PageFile = typeof PageFile.Type;

/** Sent as they are, beside what is bundled. */
const BESIDE: ReadonlySet<string> = new Set([".html", ".svg"]);
const SOURCES: ReadonlySet<string> = new Set([...BESIDE, ".ts", ".tsx", ".css"]);

/**
 * The page runs only its own scripts, makes no markup of text, sends nothing elsewhere, and no other page may frame it
 * (threats.md T08).
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** The page's sources. */
export const PAGE_DIRECTORY = fileURLToPath(new URL("../../../dashboard", import.meta.url));

const compress = promisify(gzip);

/** The best size of blocks, each with its own codes, depends on how a file mixes code and tables. */
const MEMORY_LEVELS = [4, 5, 6, 7, 8, 9];

const smallest = async (plain: Uint8Array): Promise<Uint8Array> => {
  const all = await Promise.all(MEMORY_LEVELS.map((memLevel) => compress(plain, { level: 9, memLevel })));
  return all.reduce((best, next) => (next.length < best.length ? next : best));
};

const toPageFile = async ({ name, plain }: Content, isLasting: boolean): Promise<PageFile> => ({
  name,
  type: TYPES[path.extname(name)] ?? "application/octet-stream",
  plain,
  gzipped: await smallest(plain),
  tag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
  isLasting,
});

/** The name in `index.html`. */
export const PAGE_NAME = "Platform";

/** What an operator chooses of the page's look: its name (PLATFORM_NAME) and its logo (PLATFORM_LOGO). */
export interface OwnLook {
  readonly name: string;
  readonly logo: Content | null;
}

/** The page with the name in its title and at its top. The logo stands before it, and is a separate file. */
export const ownPage = async (
  files: readonly PageFile[],
  { name, logo }: OwnLook,
): Promise<readonly PageFile[]> => {
  if (name === PAGE_NAME && logo === null) return files;
  const title = escapeHtml(name);
  const picture = logo === null ? "" : `<img class="logo" src="${logo.name}" alt="" />`;
  const withName = (html: string) =>
    html
      .replace(`<title>${PAGE_NAME}<`, () => `<title>${title}<`)
      .replace(`>${PAGE_NAME}</a>`, () => `>${picture}${title}</a>`);
  const pageFiles = files.map(async (file) => {
    if (file.name !== "index.html") return file;
    const plain = Buffer.from(withName(Buffer.from(file.plain).toString()));
    return toPageFile({ name: file.name, plain }, file.isLasting);
  });
  const logoFiles = logo === null ? [] : [toPageFile(logo, false)];
  return Promise.all([...pageFiles, ...logoFiles]);
};

const make = async (directory: string, names: readonly string[]): Promise<readonly PageFile[]> => {
  const { files, entries, parts } = await bundlePage(directory);
  // The browser learns of all parts from the start, not only when it has read the first one.
  const links = parts.map((part) => `<link rel="modulepreload" href="${part}" />`).join("");
  const others = names.filter((name) => BESIDE.has(path.extname(name)));
  const contents = others.map(async (name): Promise<Content> => {
    const plain = await readFile(path.join(directory, name));
    if (name !== "index.html") return { name, plain };
    let html = `${plain}`;
    for (const [entry, file] of Object.entries(entries)) html = html.replace(`"${entry}"`, `"${file}"`);
    return { name, plain: Buffer.from(html.replace("</head>", `${links}</head>`)) };
  });
  return Promise.all([
    ...(await Promise.all(contents)).map((content) => toPageFile(content, false)),
    ...files.map((content) => toPageFile(content, true)),
  ]);
};

const read = async (directory: string): Promise<readonly PageFile[]> => {
  const all = await readdir(directory, { recursive: true });
  const names = all.filter((name) => SOURCES.has(path.extname(name))).toSorted();
  // The lockfile, which each kept result depends on, says which libraries there are.
  const inputs = [
    ...names.map((name) => path.join(directory, name)),
    import.meta.filename,
    ...BUNDLE_SOURCES,
  ];
  return madeOnce({
    // A copy of a clone finds what was built before it was copied.
    file: keptFile(`page ${path.relative(import.meta.dirname, directory)}`),
    // A new file is an input that an earlier start did not have.
    key: names.join(),
    schema: Schema.Array(PageFile),
    make: async () => ({ value: await make(directory, names), inputs }),
  });
};

const pages = new Map<string, Promise<readonly PageFile[]>>();

/** Reads a page once in a process: no file is added later. */
export const readPage = (directory: string): Promise<readonly PageFile[]> => {
  const content = pages.get(directory) ?? read(directory);
  pages.set(directory, content);
  return content;
};
