/**
 * Temporary directories that do not outlive this process. A process that is killed runs no clean-up of its own. So a second
 * process, the guard (guard-main.ts), reads a pipe from this one. When the pipe closes, the guard ends all processes that
 * work in the directories, and removes them.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

const GUARD = path.join(import.meta.dirname, "../programs/sandboxes/guard-main.ts");

let pipe: Socket | null = null;

const openPipe = (): Socket => {
  // In a session of its own: Ctrl-C and a kill of the process group do not reach it.
  const guard = spawn(process.execPath, [GUARD], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.once("exit", (code, signal) => {
    pipe = null;
    process.stderr.write(`The guard of temporary directories ended early (${code ?? signal}).\n`);
  });
  guard.unref();
  const { stdin } = guard;
  if (!(stdin instanceof Socket)) throw new Error("the guard's input is a pipe");
  stdin.unref();
  // Without a guard, the process itself still removes its directories.
  stdin.on("error", () => undefined);
  return stdin;
};

export interface Guarded {
  readonly directory: string;
  /** Removes it and ends its guarding. */
  readonly remove: () => void;
}

/** Creates a temporary directory. If this process ends first, the guard ends the processes in it and removes it. */
export const guardedDirectory = (prefix: string, parent = tmpdir()): Guarded => {
  const directory = realpathSync(mkdtempSync(path.join(parent, prefix)));
  pipe ??= openPipe();
  pipe.write(`guard ${directory}\n`);
  return {
    directory,
    remove: () => {
      rmSync(directory, { recursive: true, force: true });
      pipe?.write(`release ${directory}\n`);
    },
  };
};
