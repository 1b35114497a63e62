/** Builds the one file that is `platform` in a sandbox. It starts a few milliseconds slower than Node itself. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Bundles the command line into `outFile`, minified, executable, without any path of this machine.
 *
 * @returns the files that it was made of, as absolute paths
 */
export const bundleCommandLine = async (outFile: string): Promise<readonly string[]> => {
  const { build } = await import("esbuild");
  const { metafile } = await build({
    metafile: true,
    entryPoints: [fileURLToPath(new URL("../platform.ts", import.meta.url))],
    outfile: outFile,
    bundle: true,
    minify: true,
    platform: "node",
    // As in daemon/bundle/bundle.ts: Node treats a file without an extension as CommonJS.
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
  });
  return Object.keys(metafile.inputs).map((file) => resolve(file));
};
