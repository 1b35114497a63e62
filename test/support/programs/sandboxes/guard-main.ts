/**
 * The guard of guard.ts: reads `guard <directory>` and `release <directory>`, one a line. At the end of its input it ends the
 * services, databases, engines and sandboxes of the directories that are still guarded, and removes them.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { WAIT_MS } from "../../patience.ts";
import { unmountBelow } from "../../machine/mounts-below.ts";
import { processesIn, programOf } from "../../machine/processes-in.ts";

const AGAIN_MS = 50;
/** How long an engine may take to end. Its containers have ten seconds. */
const ENGINE_MS = 30_000;

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
    import("../../../../src/installation/operator/orphans.ts"),
    import("effect/Effect"),
  ]);
  const found = await Promise.all(
    homesIn(directory).map((of) => runPromise(findOrphans({ end: true, of, engine: null, cluster: null }))),
  );
  return found.flat().length === 0;
};

/** The directory either is a data directory, or contains one with this name (process-service.ts). */
const homesIn = (directory: string): readonly string[] => [directory, path.join(directory, "data")];

/** Where services build images and look into them (src/assembly/adapters.ts). */
const BUILDERS = ["b", "o"];

/** Removes what the builders of a killed service leave. There is no sandbox in it. */
const removeBuilders = async (directory: string): Promise<void> => {
  const { runDirectoryPath: runDirectoryOf } =
    await import("../../../../src/sandbox/machine/disk/run-directory.ts");
  const files = homesIn(directory).map((home) => path.join(home, "installation-id"));
  for (const file of files.filter((name) => existsSync(name)))
    for (const builder of BUILDERS) {
      const left = `${runDirectoryOf(readFileSync(file, "utf8").trim())}-${builder}`;
      rmSync(left, { recursive: true, force: true });
    }
};

/** @returns whether nothing was left to clear. */
const clear = async (directory: string): Promise<boolean> => {
  kill(processesIn(directory).filter((pid) => programOf(pid) !== "postgres"));
  const hasNone = await endOrphans(directory);
  const rest = processesIn(directory);
  kill(rest);
  const isGone = !existsSync(directory);
  await removeBuilders(directory);
  unmountBelow(directory);
  rmSync(directory, { recursive: true, force: true });
  return hasNone && rest.length === 0 && isGone;
};

/** A container engine that is asked to end ends its containers, and removes their mounts and groups. */
const askEngines = async (directory: string): Promise<void> => {
  const engines = (): readonly number[] =>
    processesIn(directory).filter((pid) => programOf(pid) === "dockerd");
  for (const pid of engines()) process.kill(pid, "SIGTERM");
  const until = performance.now() + ENGINE_MS;
  while (performance.now() < until && engines().length > 0) await delay(AGAIN_MS);
};

/** Until it is done: a process that was just killed may still write, or own its data directory. */
const clearWhole = async (directory: string): Promise<void> => {
  const until = performance.now() + WAIT_MS;
  const isDone = () => clear(directory).catch(() => false);
  while (performance.now() < until && !(await isDone())) await delay(AGAIN_MS);
};

const guarded = new Set<string>();
for await (const line of createInterface({ input: process.stdin })) {
  const [word, directory = ""] = line.split(/ (.*)/);
  if (word === "guard") guarded.add(directory);
  else guarded.delete(directory);
}
// Engines first: while a container still ends, the directory of its sandbox cannot be removed.
await Promise.all([...guarded].map((directory) => askEngines(directory).catch(() => undefined)));
await Promise.all([...guarded].map(clearWhole));
