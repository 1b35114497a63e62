/**
 * The program that bundles the page with Vite (page-bundle.ts): `node page-bundler.ts DIRECTORY`. It writes the bundle to its output, as JSON.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin, type Rolldown } from "vite";
import { type Content, encodeBundle, type PageBundle } from "./page-bundle.ts";

/** What `index.html` loads. */
const SCRIPT = "main.ts";
const STYLES = "page.css";

const XTERM = path.join(path.dirname(fileURLToPath(import.meta.resolve("@xterm/xterm"))), "xterm.mjs");

/** The library writes styles that the page's policy refuses, unless its `document` is ours (decision 0095). */
const ownDocument = (directory: string): Plugin => ({
  name: "own-document",
  load: async (id) => {
    if (id !== XTERM) return undefined;
    const ours = path.join(directory, "terminal/document.ts");
    return `import { styledDocument as document } from ${JSON.stringify(ours)};\n${await readFile(id, "utf8")}`;
  },
});

const toContent = (file: Rolldown.OutputChunk | Rolldown.OutputAsset): Content => {
  const content = file.type === "chunk" ? file.code : file.source;
  return { name: file.fileName, plain: typeof content === "string" ? Buffer.from(content) : content };
};

/** A remade page is called as its folder is, and the grammar of a language as the language is. */
const chunkName = ({ facadeModuleId }: { readonly facadeModuleId?: string | null }): string => {
  const file = facadeModuleId ?? "";
  const [, folder] = /([\w-]+)[\\/]page\.tsx$/.exec(file) ?? [];
  const prefix = /@shikijs[\\/]langs[\\/]/.test(file) ? "language-" : "";
  return `${prefix}${folder ?? "[name]"}-[hash].js`;
};

/** @param directory has the page's sources */
const bundle = async (directory: string): Promise<PageBundle> => {
  const result = await build({
    configFile: false,
    envDir: false,
    publicDir: false,
    root: directory,
    base: "./",
    logLevel: "error",
    plugins: [ownDocument(directory)],
    // Elements are made by the page's own function, which guards their text and links.
    oxc: { jsx: { runtime: "automatic", importSource: "#ui" } },
    resolve: { alias: { "#ui/jsx-runtime": path.join(directory, "ui/jsx-runtime.ts") } },
    build: {
      write: false,
      target: "esnext",
      // A browser asks for all parts of a page at once, not for each when it has read the one before. All browsers that we support can do it.
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: [SCRIPT, STYLES].map((name) => path.join(directory, name)),
        output: {
          entryFileNames: "[name]-[hash].js",
          chunkFileNames: chunkName,
          assetFileNames: "[name]-[hash][extname]",
          // The notices of the libraries' licenses stay.
          comments: { legal: true, annotation: false, jsdoc: false },
          // What all remade pages need: a browser keeps it when a page changes.
          codeSplitting: {
            groups: [
              { name: "react", test: /node_modules[\\/](?:react|react-dom|scheduler|@tanstack)[\\/]/ },
              // Small parts that several pages share come as one: each file is a request, and a browser makes six at once.
              {
                name: "shared",
                test: /\.tsx$|dashboard[\\/](?:code|composer|conversation|diff)[\\/]/,
                minShareCount: 3,
                includeDependenciesRecursively: false,
              },
            ],
          },
        },
      },
    },
  });
  const [{ output }] = [result].flat() as [Rolldown.RolldownOutput];
  const script = output.find((file) => file.type === "chunk" && file.facadeModuleId?.endsWith(SCRIPT));
  const styles = output.find((file) => file.type === "asset" && file.names.includes(STYLES));
  if (script?.type !== "chunk" || styles === undefined) throw new Error("The page's build lacks an entry.");
  return {
    files: output.map(toContent),
    entries: { [SCRIPT]: script.fileName, [STYLES]: styles.fileName },
    parts: script.imports,
  };
};

process.stdout.write(encodeBundle(await bundle(path.resolve(process.argv[2] ?? ""))));
