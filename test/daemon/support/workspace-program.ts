/** The workspace program as a sandbox has it, as one file, and ways to run it. */
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runDirectory } from "./program.ts";
import { programCommand } from "../../../daemon/saving/workspace-program.ts";

const SOURCE = fileURLToPath(new URL("../../../daemon/saving/program.ts", import.meta.url));
const OUTPUT_BYTES = 256 * 1024 * 1024;

const make = async (directory: string): Promise<string> => {
  const file = join(directory, "workspace-program.cjs");
  if (existsSync(file)) return file;
  const draft = join(directory, randomUUID());
  await build({
    entryPoints: [SOURCE],
    outfile: draft,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    logLevel: "error",
  });
  renameSync(draft, file);
  return file;
};

interface Way {
  /** In front of the program. */
  readonly prefix?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Where the program is put. Absent: where other users cannot read it. */
  readonly directory?: string;
}

/** @returns a function that runs the program once, with that input, and gives its output */
export const workspaceRunner =
  ({ prefix = [], env = {}, directory = runDirectory() }: Way = {}) =>
  async (input: Buffer): Promise<Buffer> => {
    const file = await make(directory);
    const [program = "", ...args] = [...prefix, ...programCommand(file)];
    const options = {
      encoding: "buffer" as const,
      maxBuffer: OUTPUT_BYTES,
      env: { ...process.env, GIT_OPTIONAL_LOCKS: "0", ...env },
    };
    return await new Promise((done, fail) => {
      const child = execFile(program, args, options, (error, stdout, stderr) =>
        error === null ? done(stdout) : fail(new Error(stderr.toString("utf8") || error.message)),
      );
      child.stdin?.end(input);
    });
  };
