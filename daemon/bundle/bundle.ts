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

const WORKSPACE_PROGRAM = fileURLToPath(new URL("../saving/program.ts", import.meta.url));

const OPTIONS = {
  metafile: true,
  bundle: true,
  minify: true,
  platform: "node",
  format: "cjs",
  target: "node24",
  legalComments: "none",
  logLevel: "error",
} as const;

/**
 * Bundles the daemon, and in it the workspace program (saving/program.ts), into `outFile`, minified, without any
 * path of this machine.
 *
 * @param entry the source file with `run` and `warmUp`: the daemon's own, or a test's.
 */
export const bundleDaemon = async (
  outFile: string,
  entry: string = fileURLToPath(new URL("../main.ts", import.meta.url)),
): Promise<Bundle> => {
  const { build } = await import("esbuild");
  const program = await build({ ...OPTIONS, entryPoints: [WORKSPACE_PROGRAM], write: false });
  const { metafile } = await build({
    ...OPTIONS,
    entryPoints: [entry],
    outfile: outFile,
    define: { WORKSPACE_PROGRAM_TEXT: JSON.stringify(program.outputFiles[0]?.text) },
    // Executed as a file, it is the daemon. A program that loads it calls `run` itself.
    footer: { js: "if (require.main === module) module.exports.run();" },
  });
  const hash = createHash("sha256")
    .update(await readFile(outFile))
    .digest("hex");
  const inputs = [metafile, program.metafile].flatMap((metadata) => Object.keys(metadata.inputs));
  return { path: outFile, hash, inputs: [...new Set(inputs)].map((file) => resolve(file)) };
};
