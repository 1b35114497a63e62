/**
 * Measures running sandboxes once a second. It enforces the limits that the kernel does not enforce here, and provides
 * the reason for an exhausted sandbox. A measurement is cheap if nothing changes: one pass over /proc for all
 * sandboxes. It walks a sandbox's files only after the disk lost space or some time has passed.
 */
import { appendFile, open, rename, stat, statfs, truncate, writeFile } from "node:fs/promises";
import { engineAt } from "../../containers/engine.ts";
import { runShort } from "../../../starter/short.ts";
import { groupMemory, memoryKills } from "./cgroup.ts";
import type { SandboxLimits } from "../options.ts";
import type { SandboxExit } from "../../port.ts";
import { type ProcessSample, descendants, sampleProcesses } from "../processes.ts";
import type { SandboxPaths, SandboxRecord } from "../disk/run-directory.ts";
import { processesInGroups, unlinkedSpace } from "./unlinked.ts";

/** How many of the newest bytes of a sandbox's output are kept (port.ts `logs`). */
export const LOG_KEPT_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
/** The files are walked at least this often, and at once if the disk lost this much since the last walk. */
const DISK_WALK_SECONDS = 15;
const DISK_LOSS_BYTES = 128 * 1024 * 1024;
const DISK_LOSS_FILES = 50_000;
/** The largest share of time that walks may take: large trees are walked less often. */
const DISK_WALK_SHARE = 0.1;

/** The watcher's state of one sandbox between two looks. */
export interface SandboxWatch {
  readonly paths: SandboxPaths;
  readonly record: SandboxRecord;
  disk: DiskWalk | null;
}

/** The last walk over a sandbox's files, with the free space at that time. */
interface DiskWalk {
  readonly atMs: number;
  readonly nextMs: number;
  readonly freeBytes: number;
  readonly freeFiles: number;
}

/** The limits to watch, and those that the kernel enforces itself. */
export interface WatchRules {
  readonly limits: SandboxLimits;
  readonly kernelMemory: boolean;
  readonly kernelProcesses: boolean;
}

export const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;

export const memoryExceeded = (limit: number): SandboxExit => ({
  code: "memory_exceeded",
  message: `the sandbox used more than its ${mebibytes(limit)} of memory`,
});

/** The control groups that bound a sandbox: the service's, or an engine's. */
const recordGroups = ({ cgroups, container }: SandboxRecord): readonly string[] =>
  container?.cgroups ?? cgroups;

/** The exit if the kernel killed a process of the sandbox because its memory was exhausted. */
export const kernelVerdict = (record: SandboxRecord, limits: SandboxLimits): SandboxExit | null =>
  memoryKills(recordGroups(record)) > 0 ? memoryExceeded(limits.memoryBytes) : null;

/** The same for a sandbox that has ended. An engine's control groups are gone by then, and the engine knows. */
export const finalVerdict = async (
  record: SandboxRecord,
  limits: SandboxLimits,
): Promise<SandboxExit | null> => {
  const { container } = record;
  if (container === undefined) return kernelVerdict(record, limits);
  const state = await engineAt(container.socket)
    .state(container.name)
    .catch(() => null);
  return state?.outOfMemory === true ? memoryExceeded(limits.memoryBytes) : null;
};

/** Memory and processes from one pass over /proc. */
export const measureProcesses = (
  watched: SandboxWatch,
  samples: readonly ProcessSample[],
  rules: WatchRules,
): SandboxExit | null => {
  const { launcher } = watched.record;
  if (launcher === null) return null;
  const inside = descendants(samples, launcher.pid);
  const memory = inside.reduce((sum, sample) => sum + sample.memoryBytes, 0);
  if (!rules.kernelMemory && memory > rules.limits.memoryBytes)
    return memoryExceeded(rules.limits.memoryBytes);
  const threads = inside.reduce((sum, sample) => sum + sample.threads, 0);
  if (!rules.kernelProcesses && threads > rules.limits.processes) {
    return {
      code: "processes_exceeded",
      message: `the sandbox ran more than its ${rules.limits.processes} processes`,
    };
  }
  return null;
};

/** The memory of running sandboxes together, in bytes: from their control groups, otherwise from one pass over /proc. */
export const memoryUsed = (
  running: readonly { readonly record: SandboxRecord }[],
  sample: () => readonly ProcessSample[],
): number => {
  let samples: readonly ProcessSample[] | null = null;
  return running.reduce((sum, { record }) => {
    const { launcher } = record;
    const memory = groupMemory(recordGroups(record));
    if (memory !== null || launcher === null) return sum + (memory ?? 0);
    samples ??= sample();
    return sum + descendants(samples, launcher.pid).reduce((bytes, one) => bytes + one.memoryBytes, 0);
  }, 0);
};

/**
 * The total that `du` counts below a directory. If files vanish or are locked, `du` fails but still prints a valid
 * total. Without a total, the size is unknown.
 */
const total = async (unit: "--block-size=1" | "--inodes", directory: string): Promise<number> => {
  const { text } = await runShort(["du", "-sx", unit, "--", directory], { stream: 1, bytesMax: 65_536 });
  const bytes = Number.parseInt(text, 10);
  if (Number.isNaN(bytes)) throw new Error("the files of a sandbox cannot be counted: du gave no answer");
  return bytes;
};

/** The processes of a sandbox. Those of a container are not below its launcher, but in its control groups. */
const listProcesses = ({ record }: SandboxWatch): ReadonlySet<number> => {
  const below = record.launcher === null ? [] : descendants(sampleProcesses(), record.launcher.pid);
  return new Set([...below.map(({ pid }) => pid), ...processesInGroups(recordGroups(record))]);
};

/** Whether the sandbox's files exceed their limits, including removed ones that its processes have open. @param nowMs the present instant */
export const measureDisk = async (
  watched: SandboxWatch,
  { limits }: WatchRules,
  nowMs: number,
): Promise<SandboxExit | null> => {
  const { bavail, bsize, ffree: freeFiles } = await statfs(watched.paths.disk);
  const freeBytes = bavail * bsize;
  const last = watched.disk;
  const isLost =
    last !== null &&
    (last.freeBytes - freeBytes >= DISK_LOSS_BYTES || last.freeFiles - freeFiles >= DISK_LOSS_FILES);
  if (last !== null && nowMs < last.nextMs && !isLost) return null;
  if (last !== null && nowMs - last.atMs < 1000) return null;
  const startedMs = performance.now();
  const unlinkedFiles = await unlinkedSpace(listProcesses(watched), watched.paths.disk);
  const bytes = unlinkedFiles.bytes + (await total("--block-size=1", watched.paths.disk));
  const files = unlinkedFiles.files + (await total("--inodes", watched.paths.disk));
  const tookMs = performance.now() - startedMs;
  const restMs = Math.max(DISK_WALK_SECONDS * 1000, tookMs / DISK_WALK_SHARE);
  watched.disk = { atMs: nowMs, nextMs: nowMs + restMs, freeBytes, freeFiles };
  if (bytes > limits.diskBytes) {
    const message = `the sandbox used more than its ${mebibytes(limits.diskBytes)} of disk`;
    return { code: "disk_exceeded", message };
  }
  if (files > limits.diskFiles) {
    const message = `the sandbox made more than its ${limits.diskFiles} files and directories`;
    return { code: "disk_exceeded", message };
  }
  return null;
};

/** The newest whole lines of a text within a number of bytes. */
export const newestLines = (text: string, bytes: number): string => {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return text;
  const newest = whole.subarray(-bytes);
  // If the cut follows the end of a line, the next line is whole.
  if (whole[whole.length - bytes - 1] === NEWLINE) return newest.toString("utf8");
  return newest.subarray(newest.indexOf(NEWLINE) + 1).toString("utf8");
};

/**
 * Bounds the log: once it exceeds the kept size, its newest part moves to the old file, and the log starts again. The
 * sandbox has the file open for appending and continues at its new end. While no service watches, the daemon itself
 * truncates a log that is several times larger (daemon/start.ts).
 */
export const trimLog = async ({ paths }: SandboxWatch, limits: SandboxLimits): Promise<void> => {
  const { size } = await stat(paths.log);
  const keptBytes = Math.min(LOG_KEPT_BYTES, limits.logBytesPerSecond);
  if (size <= keptBytes) return;
  const file = await open(paths.log, "r");
  try {
    const newest = await file.read({ buffer: Buffer.alloc(keptBytes), position: size - keptBytes });
    // It shrank during the look: its daemon has truncated it.
    if (newest.bytesRead < keptBytes) return;
    const notice = size > keptBytes * 2 ? `[${size - keptBytes} bytes of output left out]\n` : "";
    const next = `${paths.oldLog}.next`;
    const text = newest.buffer.toString("utf8", newest.buffer.indexOf(NEWLINE) + 1);
    await writeFile(next, notice + text, { mode: 0o600 });
    // Output that came meanwhile is moved too. Output between this and the truncation is lost, and the line numbers
    // show the gap.
    const rest = await file.read({ buffer: Buffer.alloc(keptBytes), position: size });
    await appendFile(next, rest.buffer.subarray(0, rest.bytesRead));
    await rename(next, paths.oldLog);
    await truncate(paths.log, 0);
  } finally {
    await file.close();
  }
};
