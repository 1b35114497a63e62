/**
 * The daemon's program as a sandbox has it: one bundled file. It starts in a third of the CPU time that the sources take, and
 * the tests start it more than a hundred times. The first test file that needs it makes it for the whole run.
 */
import { randomUUID } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleDaemon } from "../../../daemon/bundle.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const ENTRY = fileURLToPath(new URL("entry.ts", import.meta.url));

const make = async (): Promise<string> => {
  // Vitest's global set-up names it (temporary-files.ts). Without it each process has its own.
  const directory = process.env["TEST_RUN_DIRECTORY"] ?? guardedDirectory("daemon-program-").directory;
  const program = join(directory, "daemon-program.cjs");
  if (existsSync(program)) return program;
  const draft = join(directory, `${randomUUID()}.cjs`);
  await bundleDaemon(draft, ENTRY);
  // Files that begin at the same time each make it. The rename never shows half a file.
  renameSync(draft, program);
  return program;
};

let made: Promise<string> | null = null;

/** @returns the path of the program. */
export const daemonProgram = (): Promise<string> => (made ??= make());
