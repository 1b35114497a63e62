/**
 * Limits by the kernel: control groups of version 1 or 2, where this user may make them. Which ones really work is
 * found by making one; nothing is concluded from a version. The kernel waits for its own readers on each change (some 10 ms for
 * moving a process), so that nothing that is done for a sandbox is done synchronously: the event loop would stand still.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export interface GroupLimits {
  readonly memoryBytes: number;
  readonly processes: number;
}

/** What one control group hierarchy can limit here, and below which directory. */
export interface GroupParent {
  readonly version: 1 | 2;
  readonly directory: string;
  readonly controls: readonly ("memory" | "processes")[];
}

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

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

/** Our own group in a hierarchy: `controller` of version 1, the empty string for version 2. */
const ownGroup = (controller: string): string => {
  for (const line of read("/proc/self/cgroup").split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controller === "" ? controllers === "" && path !== "" : controllers.split(",").includes(controller)) {
      return path;
    }
  }
  return "/";
};

const limitFiles = (
  version: 1 | 2,
  limits: GroupLimits,
): Record<"memory" | "processes", [string, number]> => ({
  memory: [version === 1 ? "memory.limit_in_bytes" : "memory.max", limits.memoryBytes],
  processes: ["pids.max", limits.processes],
});

/** Makes a group below `parent` and sets what it controls. @throws when this machine does not let us */
const makeGroup = async (parent: GroupParent, name: string, limits: GroupLimits): Promise<void> => {
  const directory = join(parent.directory, name);
  await mkdir(directory, { recursive: true });
  const settings = parent.controls.map((control) => limitFiles(parent.version, limits)[control]);
  // Opened without creating: a missing file means that the controller is not there.
  for (const [file, value] of settings) {
    // eslint-disable-next-line no-await-in-loop -- one or two
    await writeFile(join(directory, file), String(value), { flag: "r+" });
  }
  if (parent.controls.includes("memory")) await preferEndingOverSwapping(parent.version, directory, limits);
};

/** Swap counts against the limit where the kernel accounts it, and an exhausted group ends as one. */
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
  for (const [file, value] of wishes) {
    // eslint-disable-next-line no-await-in-loop -- one or two
    if (existsSync(join(directory, file))) await writeFile(join(directory, file), value, { flag: "r+" });
  }
};

const works = async (parent: GroupParent): Promise<boolean> => {
  const trial = `trial-${process.pid}`;
  try {
    await makeGroup(parent, trial, { memoryBytes: 64 * 1024 * 1024, processes: 16 });
    return true;
  } catch {
    return false;
  } finally {
    await removeGroup(join(parent.directory, trial));
  }
};

/** Version 2 hands controllers down only where asked to. */
const enableControllers = (directory: string): void => {
  for (const controller of ["+memory", "+pids"]) {
    try {
      writeFileSync(join(directory, "cgroup.subtree_control"), controller);
    } catch {
      // refused, or handed down already: the trial tells
    }
  }
};

const candidates = (point: string, own: string): string[] => {
  const here = join(point, own);
  return [...new Set([here, dirname(here).startsWith(point) ? dirname(here) : point, point])];
};

/** Makes the parent of all our groups in one hierarchy, in the first place that works. */
const openParent = async (
  mount: Mount,
  name: string,
  controls: readonly ("memory" | "processes")[],
): Promise<GroupParent | null> => {
  const version = mount.type === "cgroup2" ? 2 : 1;
  const controller = version === 2 ? "" : controls[0] === "memory" ? "memory" : "pids";
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
    if (await works(parent)) return parent;
    // eslint-disable-next-line no-await-in-loop
    await removeGroup(directory);
  }
  return null;
};

/**
 * Finds what can be limited by control groups here.
 * @param name of the directory that holds all groups of this owner, e.g. `platform-1a2b3c4d`
 */
export const findGroupParents = async (name: string): Promise<GroupParent[]> => {
  const mounts = groupMounts();
  const found: GroupParent[] = [];
  for (const control of ["memory", "processes"] as const) {
    const controller = control === "memory" ? "memory" : "pids";
    const mount = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
    // eslint-disable-next-line no-await-in-loop -- two, at the start
    const parent = mount === undefined ? null : await openParent(mount, name, [control]);
    if (parent !== null) found.push(parent);
  }
  const unified = mounts.find(({ type }) => type === "cgroup2");
  if (found.length > 0 || unified === undefined) return found;
  const parent = await openParent(unified, name, ["memory", "processes"]);
  return parent === null ? [] : [parent];
};

/** Where a sandbox's groups are to be, for `joinGroups` and `removeGroup`. */
export const groupDirectories = (parents: readonly GroupParent[], id: string): string[] =>
  parents.map(({ directory }) => join(directory, id));

/** Makes a sandbox's groups with their limits. */
export const makeGroups = async (
  parents: readonly GroupParent[],
  id: string,
  limits: GroupLimits,
): Promise<void> => {
  await Promise.all(parents.map((parent) => makeGroup(parent, id, limits)));
};

/** Puts a process, and all it will start, into the groups. The kernel takes some 10 ms for each: nothing here waits for it. */
export const joinGroups = async (directories: readonly string[], pid: number): Promise<void> => {
  await Promise.all(directories.map((directory) => writeFile(join(directory, "cgroup.procs"), String(pid))));
};

/** How often the kernel ended a process of the group because its memory was exhausted. */
export const memoryKills = (directories: readonly string[]): number => {
  let kills = 0;
  for (const directory of directories) {
    for (const file of ["memory.events", "memory.oom_control"]) {
      kills += Number(/^oom_kill (\d+)$/m.exec(read(join(directory, file)))?.[1] ?? 0);
    }
  }
  return kills;
};

/** Removes an empty group. @returns whether it is gone; false while a process is still being buried */
export const removeGroup = async (directory: string): Promise<boolean> => {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
};

/** The same at the end of a service, when nothing else is to be done. */
export const removeGroupNow = (directory: string): void => {
  try {
    rmdirSync(directory);
  } catch {
    // A sandbox goes on in it, or it is gone.
  }
};

/** Which limits the kernel keeps through these groups. */
export const groupControls = (parents: readonly GroupParent[]): ReadonlySet<"memory" | "processes"> =>
  new Set(parents.flatMap((parent) => parent.controls));
