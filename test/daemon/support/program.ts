/**
 * The programs of a sandbox as it has them: the daemon is one bundled file with its code cache, and the runtime is JavaScript. The
 * daemon starts in a quarter of the CPU time that the sources take, the runtime in half, and the tests start each more than a
 * hundred times. The first test file that needs them makes them for the whole run.
 */
import { build } from "esbuild";
import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleDaemon } from "../../../daemon/bundle/bundle.ts";
import { writeCodeCache } from "../../../daemon/bundle/code-cache.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const source = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** What Node gets, in front of each program's own arguments. */
export interface Programs {
  readonly daemon: readonly string[];
  readonly runtime: string;
}

const write = async (directory: string): Promise<void> => {
  const program = join(directory, "daemon");
  await bundleDaemon(program, source("entry.ts"));
  await writeCodeCache(process.execPath, program, `${program}.cache`);
  copyFileSync(source("../../../daemon/programs/launcher.cjs"), join(directory, "launcher.cjs"));
  await build({
    entryPoints: [source("runtime.ts")],
    outfile: join(directory, "runtime.mjs"),
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "error",
  });
};

let ownDirectory: string | null = null;

/** A directory that is removed at the run's end. Vitest's global set-up names it (temporary-files.ts), or the process has its own. */
export const runDirectory = (): string =>
  process.env["TEST_RUN_DIRECTORY"] ?? (ownDirectory ??= guardedDirectory("daemon-tests-").directory);

const make = async (): Promise<Programs> => {
  const run = runDirectory();
  const directory = join(run, "daemon-programs");
  if (!existsSync(directory)) {
    const draft = join(run, randomUUID());
    mkdirSync(draft, { mode: 0o755 });
    await write(draft);
    try {
      renameSync(draft, directory);
    } catch {
      // Files that begin at the same time each make them. The first one's stay.
    }
  }
  return {
    daemon: [join(directory, "launcher.cjs"), join(directory, "daemon")],
    runtime: join(directory, "runtime.mjs"),
  };
};

let made: Promise<Programs> | null = null;

/** Makes the programs if they are missing. */
export const daemonPrograms = (): Promise<Programs> => (made ??= make());
