/** What this machine holds of an installation's sandboxes: processes, directories, mounts, control groups. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** The remaining parts of one sandbox. */
export interface Remains {
  readonly id: string;
  /** From its record; null where it has none. */
  readonly sessionId: string | null;
  /** Processes that see its files, or whose command line names it. */
  readonly pids: readonly number[];
  readonly hasDirectory: boolean;
  /** Mounts of this machine's own below its directory. */
  readonly mounts: number;
  readonly groups: number;
}

export interface Machine {
  readonly sandboxes: readonly Remains[];
}

const read = (file: string): string => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // It ended while it was looked at.
  }
};

const ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";

/** Ids that the text names below the run directory, on any file system. */
const named = (text: string, runDir: string): readonly string[] => [
  ...new Set(
    [...text.matchAll(new RegExp(`${path.basename(runDir)}/s/(${ID})`, "g"))].map(([, id = ""]) => id),
  ),
];

interface Recorded {
  readonly sessionId: string;
  readonly cgroups?: readonly string[];
}

const recordOf = (directory: string): Recorded | null => {
  const text = read(path.join(directory, "record.json"));
  return text === "" ? null : (JSON.parse(text) as Recorded);
};

const entries = (directory: string): readonly string[] =>
  existsSync(directory) ? readdirSync(directory) : [];

/**
 * Looks once at the whole machine.
 *
 * @param groupPlaces where control groups of sandboxes were seen before: added to by each look.
 */
export const readMachine = (runDir: string, groupPlaces: Set<string>): Machine => {
  const own = read("/proc/self/mountinfo")
    .split("\n")
    .flatMap((line) => named(line, runDir));
  const mounts = Map.groupBy(own, (id) => id);
  const pids = new Map<string, number[]>();
  for (const pid of readdirSync("/proc").map(Number).filter(Number.isInteger)) {
    if (pid === process.pid) continue;
    // Mounts of the machine itself are in every process's list, and say nothing of one process.
    const inside = named(read(`/proc/${pid}/mountinfo`), runDir).filter((id) => !mounts.has(id));
    for (const id of new Set([...inside, ...named(read(`/proc/${pid}/cmdline`), runDir)]))
      pids.set(id, [...(pids.get(id) ?? []), pid]);
  }
  const below = path.join(runDir, "s");
  const directories = entries(below);
  const records = new Map(directories.map((id) => [id, recordOf(path.join(below, id))]));
  for (const record of records.values())
    for (const group of record?.cgroups ?? []) groupPlaces.add(path.dirname(group));
  const groups = Map.groupBy(
    [...groupPlaces].flatMap(entries).filter((name) => new RegExp(`^${ID}$`).test(name)),
    (id) => id,
  );
  const ids = new Set([...pids.keys(), ...mounts.keys(), ...groups.keys(), ...directories]);
  return {
    sandboxes: [...ids].map((id) => ({
      id,
      sessionId: records.get(id)?.sessionId ?? null,
      pids: pids.get(id) ?? [],
      hasDirectory: directories.includes(id),
      mounts: mounts.get(id)?.length ?? 0,
      groups: groups.get(id)?.length ?? 0,
    })),
  };
};
