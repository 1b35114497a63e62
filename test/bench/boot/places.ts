/** Where sandboxes are on this machine, and whether they are gone. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { groupMemory } from "../../../src/sandbox/machine/limits/cgroup.ts";
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

/** The run directory that has this sandbox (src/sandbox/machine/disk/run-directory.ts). */
const runDirectoryWith = (sandboxId: string): string => {
  const found = readdirSync(tmpdir())
    .filter((name) => /^platform-[0-9a-f]{12}$/.test(name))
    .map((name) => path.join(tmpdir(), name))
    .find((directory) => existsSync(path.join(directory, "s", sandboxId)));
  if (found === undefined) throw new Error(`the sandbox ${sandboxId} has no directory`);
  return found;
};

interface Recorded {
  readonly cgroups: readonly string[];
  readonly container?: { readonly cgroups: readonly string[] };
}

/** One sandbox. */
export interface Place {
  readonly sandboxId: string;
  readonly runDirectory: string;
  /** The directories of its control groups. */
  readonly groups: readonly string[];
}

export const placeIn = (runDirectory: string, sandboxId: string): Place => {
  const record = readFileSync(path.join(runDirectory, "s", sandboxId, "record.json"), "utf8");
  const { cgroups, container } = JSON.parse(record) as Recorded;
  return { sandboxId, runDirectory, groups: [...cgroups, ...(container?.cgroups ?? [])] };
};

export const placeOf = (sandboxId: string): Place => placeIn(runDirectoryWith(sandboxId), sandboxId);

/** All sandboxes of a run directory, those that wait for a session included. */
export const sandboxesIn = ({ runDirectory }: Pick<Place, "runDirectory">): readonly string[] =>
  sandboxesBelow(runDirectory);

const inGroup = (group: string): readonly number[] => {
  try {
    return readFileSync(path.join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return []; // It is gone, or has no such file.
  }
};

/** By its mounts, and by its groups: gVisor's own processes do not see its mounts. */
const processesOf = ({ sandboxId, groups }: Place): readonly number[] => [
  ...new Set([...processesOfSandbox(sandboxId), ...groups.flatMap(inGroup)]),
];

const isThere = (place: Place): boolean =>
  existsSync(path.join(place.runDirectory, "s", place.sandboxId)) ||
  place.groups.some((group) => existsSync(group)) ||
  processesOf(place).length > 0;

/** Returns when a sandbox that is being removed is gone: its directory, its control groups, its processes. */
export const untilGone = async (place: Place): Promise<void> => {
  const until = performance.now() + WAIT_MS;
  while (isThere(place)) {
    if (performance.now() > until) throw new Error(`the sandbox ${place.sandboxId} is not gone`);
    await delay(AGAIN_MS);
  }
};

/** Stops the session, and returns when its sandbox is gone. */
export const stopWhole = async (life: Life, target: string, place: Place): Promise<void> => {
  await life.call("POST", `${target}/stop`);
  await untilGone(place);
};

const read = (pid: number, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; // It ended during the look.
  }
};

const proportional = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB$/m.exec(read(pid, "smaps_rollup"))?.[1] ?? 0) * 1024;

/** One process of each address space: those that gVisor makes for the threads of a program share one. */
const spacesOf = (pids: readonly number[]): readonly number[] => [
  ...new Map(pids.map((pid) => [read(pid, "maps"), pid])).values(),
];

/** What a sandbox holds: each process's share of its pages (PSS), and what its control group counts, in bytes. */
export const memoryOf = (place: Place) => {
  const pids = processesOf(place);
  return {
    processes: pids.length,
    pss: spacesOf(pids).reduce((sum, pid) => sum + proportional(pid), 0),
    /** Null: no group counts memory here. */
    group: groupMemory(place.groups),
  };
};
