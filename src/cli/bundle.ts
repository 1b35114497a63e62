/** Builds the one file that is `platform` in a sandbox. It starts a few milliseconds slower than Node itself. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bundles the command line into `outFile`, minified, executable, without any path of this machine. */
export const bundleCommandLine = async (outFile: string): Promise<void> => {
  await build({
    entryPoints: [fileURLToPath(new URL("main.ts", import.meta.url))],
    outfile: outFile,
    bundle: true,
    minify: true,
    platform: "node",
    // As in daemon/bundle.ts: Node treats a file without an extension as CommonJS.
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
  });
};
