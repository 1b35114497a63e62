/**
 * Resource limits by control groups of version 1 or 2, if this user may create them. Creating one shows which limits
 * work; a version number proves nothing. On each change the kernel waits for its own readers (some 10 ms to move a
 * process). So all work for a sandbox is asynchronous: otherwise the event loop would block.
 */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { poll } from "../../../ground/poll.ts";
import { readIfThere } from "../processes.ts";

/** What control groups can limit. */
export type Control = "memory" | "processes" | "cpu";

export interface GroupLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  /** Processors. Absent: a fair share of all, whenever groups compete. */
  readonly cpus?: number;
}

/** The limits that one control group hierarchy offers here, and the directory for our groups. */
export interface GroupParent {
  readonly version: 1 | 2;
  readonly directory: string;
  readonly controls: readonly Control[];
}

const read = (path: string): string => readIfThere(path) ?? "";

interface Mount {
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

const groupMounts = (): Mount[] =>
  read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" "))
    .flatMap(([, point = "", type = "", options = ""]) =>
      type === "cgroup" || type === "cgroup2" ? [{ point, type, options: options.split(",") }] : [],
    );

/** The service's own group in a hierarchy: `controller` for version 1, the empty string for version 2. */
const ownGroup = (controller: string): string => {
  for (const line of read("/proc/self/cgroup").split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controller === "" ? controllers === "" && path !== "" : controllers.split(",").includes(controller)) {
      return path;
    }
  }
  return "/";
};

/** Microseconds in which a group may use its share of the processors: the kernel's default. */
const CPU_PERIOD = 100_000;

/** How much all sandboxes together weigh, beside the service's own group with the kernel's usual weight. */
const WEIGHT = 0.25;

/**
 * Lets the service come first where processors are short (docs/decisions/0007). An idle processor is the sandboxes' in full.
 * Inside of the service's own group the weight is the usual one: there all sandboxes together already weigh as much as one
 * thread of the service, or of any other program in that group. With less, one busy program would starve them.
 * @param place the group in which the parent of our groups is. The parent may be from an earlier start, with another weight
 */
const putServiceFirst = async (
  { version, directory, controls }: GroupParent,
  place: string,
): Promise<void> => {
  if (!controls.includes("cpu")) return;
  const isInside = await hasProcess(place, process.pid);
  const [file, usual] = version === 1 ? ["cpu.shares", 1024] : ["cpu.weight", 100];
  await writeIfThere(join(directory, file), String(isInside ? usual : usual * WEIGHT));
};

const hasProcess = async (group: string, pid: number): Promise<boolean> =>
  (await readFile(join(group, "cgroup.procs"), "utf8")).split("\n").includes(String(pid));

/** The file of each limit, and what is written to it. */
const limitFiles = (
  version: 1 | 2,
  { memoryBytes, processes, cpus }: GroupLimits,
): Record<Control, [string, string]> => {
  const quota = cpus === undefined ? null : cpus * CPU_PERIOD;
  return {
    memory: [version === 1 ? "memory.limit_in_bytes" : "memory.max", String(memoryBytes)],
    processes: ["pids.max", String(processes)],
    cpu:
      version === 1
        ? ["cpu.cfs_quota_us", String(quota ?? -1)]
        : ["cpu.max", `${quota ?? "max"} ${CPU_PERIOD}`],
  };
};

/** Creates a group below `parent` and sets its limits. @throws if this machine does not allow it */
const makeGroup = async (parent: GroupParent, name: string, limits: GroupLimits): Promise<void> => {
  const directory = join(parent.directory, name);
  await mkdir(directory, { recursive: true });
  const settings = parent.controls.map((control) => limitFiles(parent.version, limits)[control]);
  // Opened without creating: a missing file means that the controller is missing.
  await Promise.all(settings.map(([file, value]) => writeFile(join(directory, file), value, { flag: "r+" })));
  if (parent.controls.includes("memory")) await preferEndingOverSwapping(parent.version, directory, limits);
};

/** Swap counts against the limit if the kernel accounts it, and a group without memory is killed as a whole. */
const preferEndingOverSwapping = async (
  version: 1 | 2,
  directory: string,
  limits: GroupLimits,
): Promise<void> => {
  const wishes: [string, string][] =
    version === 1
      ? [["memory.memsw.limit_in_bytes", String(limits.memoryBytes)]]
      : [
          ["memory.swap.max", "0"],
          ["memory.oom.group", "1"],
        ];
  await Promise.all(wishes.map(([file, value]) => writeIfThere(join(directory, file), value)));
};

const writeIfThere = async (file: string, value: string): Promise<void> => {
  try {
    await writeFile(file, value, { flag: "r+" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
};

const works = async (parent: GroupParent): Promise<boolean> => {
  const trial = `trial-${process.pid}`;
  try {
    await makeGroup(parent, trial, { memoryBytes: 64 * 1024 * 1024, processes: 16, cpus: 1 });
    return true;
  } catch {
    return false;
  } finally {
    await removeGroup(join(parent.directory, trial));
  }
};

/** Version 2 delegates a controller only on request. */
const enableControllers = (directory: string): void => {
  for (const controller of ["+memory", "+pids", "+cpu"]) {
    try {
      writeFileSync(join(directory, "cgroup.subtree_control"), controller);
    } catch {
      // refused, or already delegated: the trial shows which
    }
  }
};

const candidates = (point: string, own: string): string[] => {
  const here = join(point, own);
  return [...new Set([here, dirname(here).startsWith(point) ? dirname(here) : point, point])];
};

/** Version 1 has a hierarchy for each. */
const CONTROLLERS = { memory: "memory", processes: "pids", cpu: "cpu" } as const;

/** Creates the parent of all our groups in one hierarchy, at the first place that works. */
const openParent = async (
  mount: Mount,
  name: string,
  controls: readonly Control[],
): Promise<GroupParent | null> => {
  const version = mount.type === "cgroup2" ? 2 : 1;
  const [first = "memory"] = controls;
  const controller = version === 2 ? "" : CONTROLLERS[first];
  for (const place of candidates(mount.point, ownGroup(controller))) {
    const directory = join(place, name);
    try {
      mkdirSync(directory, { recursive: true });
      if (version === 2) for (const level of [place, directory]) enableControllers(level);
    } catch {
      continue;
    }
    const parent: GroupParent = { version, directory, controls };
    // eslint-disable-next-line no-await-in-loop -- the next place is tried only where this one does not work
    if (await works(parent)) {
      // eslint-disable-next-line no-await-in-loop
      await putServiceFirst(parent, place);
      return parent;
    }
    // eslint-disable-next-line no-await-in-loop
    await removeGroup(directory);
  }
  return null;
};

/**
 * Finds the limits that control groups can enforce here.
 * @param name of the directory for all groups of this owner, e.g. `platform-1a2b3c4d`
 */
export const findGroupParents = async (name: string): Promise<GroupParent[]> => {
  const mounts = groupMounts();
  const parents: GroupParent[] = [];
  for (const control of ["memory", "processes", "cpu"] as const) {
    const controller = CONTROLLERS[control];
    const mount = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
    // eslint-disable-next-line no-await-in-loop -- three, at the start
    const parent = mount === undefined ? null : await openParent(mount, name, [control]);
    if (parent !== null) parents.push(parent);
  }
  const unifiedMount = mounts.find(({ type }) => type === "cgroup2");
  if (parents.length > 0 || unifiedMount === undefined) return parents;
  // A machine may keep the controller of processors to itself.
  const parent =
    (await openParent(unifiedMount, name, ["memory", "processes", "cpu"])) ??
    (await openParent(unifiedMount, name, ["memory", "processes"]));
  return parent === null ? [] : [parent];
};

/** The directories of a sandbox's groups, for `joinGroups` and `removeGroup`. */
export const groupDirectories = (parents: readonly GroupParent[], id: string): string[] =>
  parents.map(({ directory }) => join(directory, id));

/** Creates a sandbox's groups with their limits. */
export const makeGroups = async (
  parents: readonly GroupParent[],
  id: string,
  limits: GroupLimits,
): Promise<void> => {
  await Promise.all(parents.map((parent) => makeGroup(parent, id, limits)));
};

/**
 * Moves a process, with all its future children, into the groups. The kernel takes some 10 ms for each, so this is
 * asynchronous.
 */
export const joinGroups = async (directories: readonly string[], pid: number): Promise<void> => {
  await Promise.all(directories.map((directory) => writeFile(join(directory, "cgroup.procs"), String(pid))));
};

/** The directories of the groups that a process is in, in the hierarchies of our limits. */
export const groupsOfProcess = (pid: number): string[] => {
  const memberships = read(`/proc/${pid}/cgroup`).split("\n");
  return groupMounts().flatMap(({ point, type, options }) => {
    const line = memberships
      .map((text) => /^\d+:([^:]*):(.*)$/.exec(text))
      .find((match) =>
        type === "cgroup2"
          ? match?.[1] === ""
          : match?.[1]
              ?.split(",")
              .some((name) => options.includes(name) && Object.values<string>(CONTROLLERS).includes(name)),
      );
    // The hierarchy's root has no limits.
    return line?.[2] === undefined || line[2] === "/" ? [] : [join(point, line[2])];
  });
};

/** How often the kernel killed a process of the group because its memory was exhausted. */
export const memoryKills = (directories: readonly string[]): number => {
  let kills = 0;
  for (const directory of directories) {
    for (const file of ["memory.events", "memory.oom_control"]) {
      kills += Number(/^oom_kill (\d+)$/m.exec(read(join(directory, file)))?.[1] ?? 0);
    }
  }
  return kills;
};

/** The memory of the group, in bytes. Null if no group counts it here. */
export const groupMemory = (directories: readonly string[]): number | null => {
  for (const directory of directories) {
    for (const file of ["memory.current", "memory.usage_in_bytes"]) {
      const text = read(join(directory, file));
      if (text !== "") return Number(text);
    }
  }
  return null;
};

/** How often the kernel refused the group another process or thread. */
export const processRefusals = (directories: readonly string[]): number =>
  directories.reduce(
    (sum, directory) => sum + Number(/^max (\d+)$/m.exec(read(join(directory, "pids.events")))?.[1] ?? 0),
    0,
  );

/** Removes an empty group. @returns whether it is gone; false while the kernel still cleans up a process */
export const removeGroup = async (directory: string): Promise<boolean> => {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
};

/** Milliseconds that the kernel may need to clean up killed processes, and how often we look. */
const CLEAN_UP_MS = 10_000;
const CLEAN_UP_POLL_MS = 10;

/** Removes groups whose processes were killed. The kernel counts a killed process for a while; this waits at most 10 s. */
export const removeGroups = async (directories: readonly string[]): Promise<void> => {
  const areRemoved = async () => (await Promise.all(directories.map(removeGroup))).every(Boolean);
  await poll(areRemoved, { everyMs: CLEAN_UP_POLL_MS, withinMs: CLEAN_UP_MS });
};

/** The same for one group, synchronously and without waiting, at the end of a service. */
export const removeGroupNow = (directory: string): void => {
  try {
    rmdirSync(directory);
  } catch {
    // A sandbox still runs in it, or it is already gone.
  }
};

/** The limits that the kernel enforces through these groups. */
export const groupControls = (parents: readonly GroupParent[]): ReadonlySet<Control> =>
  new Set(parents.flatMap((parent) => parent.controls));
