/**
 * Makes the one file that a sandbox's Node runs as `platform-agent`.
 *
 * CommonJS, although the sources are modules: Node starts it in about 10 ms less, and a file without an extension,
 * as the sandbox layout names it, is CommonJS to Node without looking inside.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export interface Bundle {
  readonly path: string;
  /** Lower-case hex SHA-256 of the file. */
  readonly hash: string;
}

/**
 * Bundles the daemon into `outFile`, minified, with nothing of this machine's paths in it.
 *
 * @param entry source file to start from, with `run` and `warmUp`; the daemon's own unless a test brings another.
 */
export const bundleDaemon = async (
  outFile: string,
  entry: string = fileURLToPath(new URL("main.ts", import.meta.url)),
): Promise<Bundle> => {
  await build({
    entryPoints: [entry],
    outfile: outFile,
    bundle: true,
    minify: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    legalComments: "none",
    logLevel: "error",
    // Run as a file it is the daemon; what loads it decides itself when to `run`.
    footer: { js: "if (require.main === module) module.exports.run();" },
  });
  const hash = createHash("sha256")
    .update(await readFile(outFile))
    .digest("hex");
  return { path: outFile, hash };
};
