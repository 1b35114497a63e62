/**
 * Builds the one file that a sandbox's Node runs as `platform-agent`.
 *
 * It is CommonJS, although the sources are modules: Node starts it about 10 ms faster. Also, Node treats a file without
 * an extension, as the sandbox layout names it, as CommonJS without parsing it.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface Bundle {
  readonly path: string;
  /** Lower-case hex SHA-256 of the file. */
  readonly hash: string;
  /** The files that it was made of, as absolute paths. */
  readonly inputs: readonly string[];
}

/**
 * Bundles the daemon into `outFile`, minified, without any path of this machine.
 *
 * @param entry the source file with `run` and `warmUp`: the daemon's own, or a test's.
 */
export const bundleDaemon = async (
  outFile: string,
  entry: string = fileURLToPath(new URL("main.ts", import.meta.url)),
): Promise<Bundle> => {
  const { build } = await import("esbuild");
  const { metafile } = await build({
    entryPoints: [entry],
    metafile: true,
    outfile: outFile,
    bundle: true,
    minify: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
    // Executed as a file, it is the daemon. A program that loads it calls `run` itself.
    footer: { js: "if (require.main === module) module.exports.run();" },
  });
  const hash = createHash("sha256")
    .update(await readFile(outFile))
    .digest("hex");
  return { path: outFile, hash, inputs: Object.keys(metafile.inputs).map((file) => resolve(file)) };
};
