/** Makes the one file that is `platform` in a sandbox: it starts in a few milliseconds more than Node itself. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bundles the command line into `outFile`, minified, executable, with nothing of this machine's paths in it. */
export const bundleCommandLine = async (outFile: string): Promise<void> => {
  await build({
    entryPoints: [fileURLToPath(new URL("main.ts", import.meta.url))],
    outfile: outFile,
    bundle: true,
    minify: true,
    platform: "node",
    // As daemon/bundle.ts: a file without an extension is CommonJS to Node.
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
  });
};
