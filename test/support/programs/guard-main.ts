/**
 * The guard of guard.ts: reads `guard <directory>` and `release <directory>`, one a line. At the end of its input it
 * ends the services, databases and sandboxes of the directories that are still guarded, and removes the directories.
 */
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { WAIT_MS } from "../patience.ts";
import { processesIn, programOf } from "../machine/processes-in.ts";

const AGAIN_MS = 50;

const kill = (pids: readonly number[]): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended together with another one.
    }
  }
};

/**
 * Ends the leftovers of a killed service: its database, which is stopped cleanly, its sandboxes and their run
 * directory.
 */
const endOrphans = async (directory: string): Promise<boolean> => {
  // Loaded only now, because most guards have nothing to do.
  const [{ findOrphans }, { runPromise }] = await Promise.all([
    import("../../../src/cli/operator/orphans.ts"),
    import("effect/Effect"),
  ]);
  // The directory either is a data directory, or contains one with this name (process-service.ts).
  const homes = [directory, path.join(directory, "data")];
  const found = await Promise.all(
    homes.map((of) => runPromise(findOrphans({ end: true, of, engine: null, cluster: null }))),
  );
  return found.flat().length === 0;
};

/** @returns whether nothing was left to clear. */
const clear = async (directory: string): Promise<boolean> => {
  kill(processesIn(directory).filter((pid) => programOf(pid) !== "postgres"));
  const hasNone = await endOrphans(directory);
  const rest = processesIn(directory);
  kill(rest);
  const isGone = !existsSync(directory);
  rmSync(directory, { recursive: true, force: true });
  return hasNone && rest.length === 0 && isGone;
};

const clearWhole = async (directory: string): Promise<void> => {
  const until = performance.now() + WAIT_MS;
  // A process that was just killed may still write, and may still own its data directory.
  while (performance.now() < until && !(await clear(directory).catch(() => false))) await delay(AGAIN_MS);
};

const guarded = new Set<string>();
for await (const line of createInterface({ input: process.stdin })) {
  const [word, directory = ""] = line.split(/ (.*)/);
  if (word === "guard") guarded.add(directory);
  else guarded.delete(directory);
}
await Promise.all([...guarded].map(clearWhole));
