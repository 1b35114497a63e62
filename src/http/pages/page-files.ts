/**
 * The files of the page as the service sends them (decisions 0050, 0081): one script for each reader, and one for each page that
 * few readers open, minified and compressed. A script and the styles are named by their content, so a
 * browser keeps them without asking. `index.html` names the newest ones.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Plugin } from "esbuild";
import * as Schema from "effect/Schema";
import { keptFile, madeOnce } from "../../build-cache.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
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

/** The page's sources. */
export const PAGE_DIRECTORY = fileURLToPath(new URL("../../../dashboard", import.meta.url));

const compressed = promisify(gzip);

/** What `index.html` loads. */
const ENTRIES = ["app.js", "page.css"] as const;

/** The page imports its libraries as files beside its own. Those are the packages' files for browsers, which import nothing. */
const LIBRARIES: Readonly<Record<string, string>> = {
  "./markdown-it.js": fileURLToPath(import.meta.resolve("markdown-it/browser")),
  "./xterm-fit.js": path.join(
    path.dirname(fileURLToPath(import.meta.resolve("@xterm/addon-fit"))),
    "addon-fit.mjs",
  ),
};
const XTERM = path.join(path.dirname(fileURLToPath(import.meta.resolve("@xterm/xterm"))), "xterm.mjs");
/** The terminal's styles, which its module brings along as text: few readers need them. */
const XTERM_STYLES = fileURLToPath(import.meta.resolve("@xterm/xterm/css/xterm.css"));
const TERMINAL_STYLES = "terminal.css";

const libraries: Plugin = {
  name: "libraries",
  setup: ({ onResolve, onLoad, esbuild }) => {
    onResolve({ filter: /^\.\/(?:markdown-it|xterm-fit)\.js$/ }, ({ path: name }) => ({
      path: LIBRARIES[name] ?? name,
    }));
    // The library writes styles that the page's policy refuses, unless its `document` is ours (decision 0087).
    onResolve({ filter: /^\.\/xterm\.js$/ }, ({ resolveDir }) => ({
      path: XTERM,
      pluginData: path.join(resolveDir, "terminal-document.js"),
    }));
    onLoad({ filter: /[\\/]xterm\.mjs$/ }, async ({ path: file, pluginData }) => ({
      contents: `import { styledDocument as document } from ${JSON.stringify(pluginData)};\n${await readFile(file, "utf8")}`,
      loader: "js",
    }));
    onResolve({ filter: /^\.\/terminal-style\.js$/ }, ({ resolveDir }) => ({
      path: path.join(resolveDir, TERMINAL_STYLES),
      namespace: "styles",
    }));
    onLoad({ filter: /./, namespace: "styles" }, async ({ path: file }) => {
      const texts = await Promise.all([XTERM_STYLES, file].map((one) => readFile(one, "utf8")));
      const { code } = await esbuild.transform(texts.join("\n"), { loader: "css", minify: true });
      return { contents: `export const style = ${JSON.stringify(code)};`, loader: "js" };
    });
  },
};

/** @returns the scripts and styles by their new names, the new name of each entry, and the scripts that `app.js` needs at once. */
const bundled = async (directory: string) => {
  const { build } = await import("esbuild");
  const { outputFiles, metafile } = await build({
    entryPoints: ENTRIES.map((name) => path.join(directory, name)),
    bundle: true,
    // Modules that are imported later are files of their own.
    splitting: true,
    format: "esm",
    // Nothing is written.
    outdir: "/",
    write: false,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    plugins: [libraries],
    metafile: true,
    minify: true,
    charset: "utf8",
    target: "esnext",
    // The library's notice stays.
    legalComments: "eof",
    logLevel: "error",
  });
  const outputs = Object.entries(metafile.outputs);
  const entries = new Map(
    outputs.flatMap(([file, { entryPoint }]) =>
      entryPoint === undefined ? [] : [[path.basename(entryPoint), path.basename(file)] as const],
    ),
  );
  const [, app] = outputs.find(([file]) => path.basename(file) === entries.get("app.js")) ?? [];
  const parts = app?.imports.filter(({ kind }) => kind === "import-statement") ?? [];
  return {
    files: outputFiles.map(({ path: file, contents }) => ({ name: path.basename(file), plain: contents })),
    entries,
    parts: parts.map((part) => path.basename(part.path)),
  };
};

/** Which size of blocks suits a file, each block with codes of its own, depends on how it mixes code and tables. */
const MEMORY_LEVELS = [4, 5, 6, 7, 8, 9];

const smallest = async (plain: Uint8Array): Promise<Uint8Array> => {
  const all = await Promise.all(MEMORY_LEVELS.map((memLevel) => compressed(plain, { level: 9, memLevel })));
  return all.reduce((best, next) => (next.length < best.length ? next : best));
};

interface Content {
  readonly name: string;
  readonly plain: Uint8Array;
}

const served = async ({ name, plain }: Content, isLasting: boolean): Promise<PageFile> => ({
  name,
  type: TYPES[path.extname(name)] ?? "application/octet-stream",
  plain,
  gzipped: await smallest(plain),
  tag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
  isLasting,
});

const make = async (directory: string, names: readonly string[]): Promise<readonly PageFile[]> => {
  const { files, entries, parts } = await bundled(directory);
  // The browser learns of all parts at once, not when it has read the first one.
  const links = parts.map((part) => `<link rel="modulepreload" href="${part}" />`).join("");
  const others = names.filter((name) => !/\.(?:js|css)$/.test(name));
  const contents = others.map(async (name): Promise<Content> => {
    const plain = await readFile(path.join(directory, name));
    if (name !== "index.html") return { name, plain };
    const html = ENTRIES.reduce(
      (text, entry) => text.replace(`"${entry}"`, `"${entries.get(entry)}"`),
      `${plain}`,
    );
    return { name, plain: Buffer.from(html.replace("</head>", `${links}</head>`)) };
  });
  return Promise.all([
    ...(await Promise.all(contents)).map((content) => served(content, false)),
    ...files.map((content) => served(content, true)),
  ]);
};

const read = async (directory: string): Promise<readonly PageFile[]> => {
  const names = (await readdir(directory)).filter((name) => path.extname(name) in TYPES).toSorted();
  const inputs = [
    ...names.map((name) => path.join(directory, name)),
    ...Object.values(LIBRARIES),
    XTERM,
    XTERM_STYLES,
    import.meta.filename,
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
  const known = pages.get(directory) ?? read(directory);
  pages.set(directory, known);
  return known;
};
