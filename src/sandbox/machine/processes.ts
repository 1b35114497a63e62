/**
 * Facts from /proc about this machine's processes: which are alive, their ancestors, and which see a sandbox's mounts.
 * Reads are synchronous: /proc answers from memory, and one consistent pass matters more than the 20 µs for each
 * process.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Identifies a process uniquely, even after its pid is reused or the machine reboots. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat. */
  readonly startTime: string;
  readonly bootId: string;
}

export interface ProcessSample {
  readonly pid: number;
  readonly parent: number;
  /** Its pids from our pid namespace inwards. The last one is its pid in its own namespace. */
  readonly namespacePids: readonly number[];
  readonly threads: number;
  /** Anonymous, shared and swapped memory: the process's cost without files that can be read again. */
  readonly memoryBytes: number;
}

/** A file of the kernel. Null if it is gone, or is hidden from this user. */
export const readIfThere = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
};

const bootId = (readIfThere("/proc/sys/kernel/random/boot_id") ?? "unknown").trim();

/** State letter and start time of a process. Null if it does not exist, or only its exit code is left. */
const readStart = (pid: number): string | null => {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the command in parentheses. The command may contain blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields[0];
  return state === "Z" || state === "X" ? null : (fields[19] ?? null);
};

/** The identity of a running process. Null if it has ended. */
export const identify = (pid: number): ProcessIdentity | null => {
  const startTime = readStart(pid);
  return startTime === null ? null : { pid, startTime, bootId };
};

/** Whether this same process still runs. */
export const isAlive = (identity: ProcessIdentity): boolean =>
  identity.bootId === bootId && readStart(identity.pid) === identity.startTime;

const pids = (): number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

const statusNumber = (status: string, name: string): number => {
  const match = new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status);
  return match === null ? 0 : Number(match[1]);
};

/** Null if it has ended. */
const readSample = (pid: number): ProcessSample | null => {
  const status = readIfThere(`/proc/${pid}/status`);
  if (status === null || /^State:\s+[ZX]/m.test(status)) return null;
  return {
    pid,
    parent: statusNumber(status, "PPid"),
    namespacePids: (/^NSpid:\s+(.*)$/m.exec(status)?.[1] ?? String(pid)).split(/\s+/).map(Number),
    threads: statusNumber(status, "Threads"),
    memoryBytes:
      (statusNumber(status, "RssAnon") + statusNumber(status, "RssShmem") + statusNumber(status, "VmSwap")) *
      1024,
  };
};

const readSamples = (ids: readonly number[]): ProcessSample[] => ids.flatMap((pid) => readSample(pid) ?? []);

/** Every process of this machine that we can see. */
export const sampleProcesses = (): ProcessSample[] => readSamples(pids());

/** The processes below `root`, without `root` itself. */
export const descendants = (samples: readonly ProcessSample[], root: number): ProcessSample[] => {
  const children = Map.groupBy(samples, (sample) => sample.parent);
  const below: ProcessSample[] = [];
  const open = [...(children.get(root) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    below.push(next);
    open.push(...(children.get(next.pid) ?? []));
  }
  return below;
};

/** Whether this kernel lists a process's children (CONFIG_PROC_CHILDREN). */
const listsChildren = readIfThere(`/proc/self/task/${process.pid}/children`) !== null;

const readChildren = (pid: number): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      (readIfThere(`/proc/${pid}/task/${thread}/children`) ?? "").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return []; // it ended meanwhile
  }
};

/** A process and those below it, parents first. Without a pass over all processes, where the kernel allows that. */
function* family(root: number): Generator<ProcessSample> {
  if (!listsChildren) {
    const all = sampleProcesses();
    yield* all.filter(({ pid }) => pid === root);
    return yield* descendants(all, root);
  }
  for (let level = [root]; level.length > 0; level = level.flatMap(readChildren)) yield* readSamples(level);
}

/** PID 1 of a pid namespace just below our own: this process or one below it. Null while it does not exist. */
export const initAtOrBelow = (root: number): number | null => {
  const depth = (readSample(process.pid)?.namespacePids.length ?? 1) + 1;
  for (const { pid, namespacePids } of family(root))
    if (namespacePids.length === depth && namespacePids.at(-1) === 1) return pid;
  return null;
};

/** The location of a directory: its file system, and its path in it. It is the same in every mount namespace. */
interface FileSystemPlace {
  /** `major:minor`. */
  readonly device: string;
  readonly path: string;
}

/** A path as mountinfo writes it, with blanks, tabs, newlines and backslashes as octal numbers. */
const escapePath = (path: string): string =>
  path.replaceAll(/[ \t\n\\]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`);

const isBelow = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);

/** The path without symbolic links, as far as it exists. */
const withoutLinks = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path === dirname(path) ? path : join(withoutLinks(dirname(path)), basename(path));
  }
};

/** @param directory may have been removed. */
const findPlace = (directory: string): FileSystemPlace => {
  const path = escapePath(withoutLinks(directory));
  let mount = { device: "", root: "/", point: "" };
  for (const line of (readIfThere("/proc/self/mountinfo") ?? "").split("\n")) {
    const [, , device = "", root = "", point = ""] = line.split(" ");
    // The longest mount point wins. If two mounts share a point, the later one covers the earlier.
    if (point !== "" && isBelow(path, point) && point.length >= mount.point.length)
      mount = { device, root, point };
  }
  const rest = mount.point === "/" ? path : path.slice(mount.point.length);
  return { device: mount.device, path: mount.root === "/" ? rest : `${mount.root}${rest}` };
};

/** The mount namespace and the root of a process. Null if this user may not know them. */
const readView = (pid: number): string | null => {
  try {
    return `${readlinkSync(`/proc/${pid}/ns/mnt`)} ${readlinkSync(`/proc/${pid}/root`)}`;
  } catch {
    return null;
  }
};

/**
 * Processes whose mount namespace contains something below `directory`: everything in the sandbox of that directory,
 * even if it nested its namespaces or changed its parents. This process is left out. The whole location is compared,
 * because another installation may have a sandbox with the same id in its own run directory.
 */
export const processesSeeing = (directory: string): number[] => {
  const place = findPlace(directory);
  const sees = (line: string): boolean => {
    const [, , device, root = ""] = line.split(" ");
    return device === place.device && root.startsWith(`${place.path}/`);
  };
  const look = (pid: number): boolean => {
    const mounts = readIfThere(`/proc/${pid}/mountinfo`);
    return mounts?.includes(`${place.path}/`) === true && mounts.split("\n").some(sees);
  };
  // Processes of one mount namespace with one root see the same mounts, and most do not see the sandbox. Names of
  // namespaces are used again, so that a process is found by its own mounts only.
  const blind = new Set<string>();
  return pids().filter((pid) => {
    if (pid === process.pid) return false;
    const view = readView(pid);
    if (view !== null && blind.has(view)) return false;
    const isUser = look(pid);
    if (view !== null && !isUser) blind.add(view);
    return isUser;
  });
};

/** Sends a signal. An ended process is not an error. */
export const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
};
