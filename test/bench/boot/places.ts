/** Where sandboxes are on this machine, and whether they are gone. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { groupMemory } from "../../../src/sandbox/machine/cgroup.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { WAIT_MS } from "../../support/patience.ts";
import type { Life } from "../../support/service/process-service.ts";

const AGAIN_MS = 20;

const sandboxesBelow = (runDirectory: string): readonly string[] => {
  try {
    return readdirSync(path.join(runDirectory, "s"));
  } catch {
    return []; // It has none, or is of another kind.
  }
};

/** The run directory that has this sandbox (src/sandbox/machine/run-directory.ts). */
const runDirectoryWith = (sandboxId: string): string => {
  const found = readdirSync(tmpdir())
    .filter((name) => /^platform-[0-9a-f]{12}$/.test(name))
    .map((name) => path.join(tmpdir(), name))
    .find((directory) => existsSync(path.join(directory, "s", sandboxId)));
  if (found === undefined) throw new Error(`the sandbox ${sandboxId} has no directory`);
  return found;
};

/** One sandbox of a running session. */
export interface Place {
  readonly sandboxId: string;
  readonly runDirectory: string;
}

export const placeOf = (sandboxId: string): Place => ({
  sandboxId,
  runDirectory: runDirectoryWith(sandboxId),
});

/** All sandboxes of a run directory, those that wait for a session included. */
export const sandboxesIn = ({ runDirectory }: Pick<Place, "runDirectory">): readonly string[] =>
  sandboxesBelow(runDirectory);

/** Stops the session, and returns when nothing of its sandbox is left: no directory, and no process. */
export const stopWhole = async (life: Life, target: string, place: Place): Promise<void> => {
  await life.call("POST", `${target}/stop`);
  await untilGone(place);
};

export const untilGone = async ({ sandboxId, runDirectory }: Place): Promise<void> => {
  const until = performance.now() + WAIT_MS;
  while (existsSync(path.join(runDirectory, "s", sandboxId)) || processesOfSandbox(sandboxId).length > 0) {
    if (performance.now() > until) throw new Error(`the sandbox ${sandboxId} is not gone`);
    await delay(AGAIN_MS);
  }
};

interface Recorded {
  readonly cgroups: readonly string[];
  readonly container?: { readonly cgroups: readonly string[] };
}

const proportional = (pid: number): number => {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
  } catch {
    return 0; // It ended during the look.
  }
};

/** What a sandbox holds: each process's share of its pages (PSS), and what its control group counts, in bytes. */
export const memoryOf = ({ sandboxId, runDirectory }: Place) => {
  const file = path.join(runDirectory, "s", sandboxId, "record.json");
  const { cgroups, container } = JSON.parse(readFileSync(file, "utf8")) as Recorded;
  const pids = processesOfSandbox(sandboxId);
  return {
    processes: pids.length,
    pss: pids.reduce((sum, pid) => sum + proportional(pid), 0),
    /** Null: no group counts memory here. */
    group: groupMemory([...cgroups, ...(container?.cgroups ?? [])]),
  };
};
