/**
 * Measures running sandboxes once a second: what the kernel does not limit here is limited by this, and an exhausted
 * sandbox gets its reason. A measurement costs little where nothing changes: one pass over /proc for all sandboxes,
 * and a walk over a sandbox's files only after the disk lost space or a while went by.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, open, rename, stat, statfs, truncate, writeFile } from "node:fs/promises";
import { memoryKills } from "./cgroup.ts";
import type { LocalLimits } from "./installation.ts";
import type { SandboxExit } from "../port.ts";
import { type ProcessSample, descendants } from "./processes.ts";
import type { SandboxPaths, SandboxRecord } from "./run-directory.ts";

/** Of a sandbox's output, the newest bytes kept (port.ts `logs`). */
export const LOG_KEPT_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
/** The files are walked at least this often, and at once when the disk lost this much since the last walk. */
const DISK_WALK_SECONDS = 15;
const DISK_LOSS_BYTES = 128 * 1024 * 1024;
const DISK_LOSS_FILES = 50_000;
/** A walk may take this share of the time until the next: large trees are walked less often. */
const DISK_WALK_SHARE = 0.1;

/** What the watcher remembers of one sandbox between two looks. */
export interface Watched {
  readonly paths: SandboxPaths;
  readonly record: SandboxRecord;
  disk: DiskWalk | null;
}

/** The last walk over a sandbox's files, and what the file system had left then. */
interface DiskWalk {
  readonly atMs: number;
  readonly nextMs: number;
  readonly freeBytes: number;
  readonly freeFiles: number;
}

/** What is watched, and what the kernel keeps by itself. */
export interface WatchRules {
  readonly limits: LocalLimits;
  readonly kernelMemory: boolean;
  readonly kernelProcesses: boolean;
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;

export const memoryExceeded = (limit: number): SandboxExit => ({
  code: "memory_exceeded",
  message: `the sandbox used more than its ${mebibytes(limit)} of memory`,
});

/** Whether the kernel ended something in the sandbox because its memory was exhausted. */
export const kernelVerdict = (record: SandboxRecord, limits: LocalLimits): SandboxExit | null =>
  memoryKills(record.cgroups) > 0 ? memoryExceeded(limits.memoryBytes) : null;

/** Memory and processes from one pass over /proc. */
export const measureProcesses = (
  watched: Watched,
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

/**
 * The total that `du` counts below a directory. What vanishes or is locked makes it complain and fail after a good
 * answer; without an answer nothing is known.
 */
const total = async (unit: "--block-size=1" | "--inodes", directory: string): Promise<number> => {
  const child = spawn("du", ["-sx", unit, "--", directory], { stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child, "close");
  let answer = "";
  child.stdout.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  await closed;
  const counted = Number.parseInt(answer, 10);
  if (Number.isNaN(counted)) throw new Error("the files of a sandbox cannot be counted: du gave no answer");
  return counted;
};

/** Whether the sandbox's files have outgrown their limits. @param nowMs the present instant */
export const measureDisk = async (
  watched: Watched,
  { limits }: WatchRules,
  nowMs: number,
): Promise<SandboxExit | null> => {
  const { bavail, bsize, ffree: freeFiles } = await statfs(watched.paths.disk);
  const freeBytes = bavail * bsize;
  const last = watched.disk;
  const lost =
    last !== null &&
    (last.freeBytes - freeBytes >= DISK_LOSS_BYTES || last.freeFiles - freeFiles >= DISK_LOSS_FILES);
  if (last !== null && nowMs < last.nextMs && !lost) return null;
  if (last !== null && nowMs - last.atMs < 1000) return null;
  const startedMs = performance.now();
  const bytes = await total("--block-size=1", watched.paths.disk);
  const files = await total("--inodes", watched.paths.disk);
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

/** The newest whole lines of a text, at most so many bytes of them. */
export const newestLines = (text: string, bytes: number): string => {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return text;
  const newest = whole.subarray(-bytes);
  // Where the cut is an end of line, the line after it is whole.
  if (whole[whole.length - bytes - 1] === NEWLINE) return newest.toString("utf8");
  return newest.subarray(newest.indexOf(NEWLINE) + 1).toString("utf8");
};

/**
 * Keeps the log bounded: once it outgrew the kept size, its newest part moves to the old file and it starts anew. The
 * sandbox holds the file open for appending and goes on at its new end. While no service watches, the daemon itself
 * begins its log anew when that is some times larger (daemon/start.ts).
 */
export const trimLog = async ({ paths }: Watched, limits: LocalLimits): Promise<void> => {
  const { size } = await stat(paths.log);
  const kept = Math.min(LOG_KEPT_BYTES, limits.logBytesPerSecond);
  if (size <= kept) return;
  const file = await open(paths.log, "r");
  try {
    const newest = await file.read({ buffer: Buffer.alloc(kept), position: size - kept });
    // It shrank under the look: its daemon has begun it anew.
    if (newest.bytesRead < kept) return;
    const dropped = size > kept * 2 ? `[${size - kept} bytes of output left out]\n` : "";
    const next = `${paths.oldLog}.next`;
    const text = newest.buffer.toString("utf8", newest.buffer.indexOf(NEWLINE) + 1);
    await writeFile(next, dropped + text, { mode: 0o600 });
    // What came meanwhile is moved too; what comes between this and the truncation is lost, and its numbers tell.
    const rest = await file.read({ buffer: Buffer.alloc(kept), position: size });
    await appendFile(next, rest.buffer.subarray(0, rest.bytesRead));
    await rename(next, paths.oldLog);
    await truncate(paths.log, 0);
  } finally {
    await file.close();
  }
};
