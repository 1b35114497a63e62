/**
 * Measures running sandboxes once a second: what the kernel does not limit here is limited by this, and an exhausted
 * sandbox gets its reason. A measurement costs little where nothing changes: one pass over /proc for all sandboxes,
 * and a walk over a sandbox's files only after the disk lost space or a while went by.
 */
import { execFile } from "node:child_process";
import { open, rename, stat, statfs, truncate, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { memoryKills } from "./cgroup.ts";
import type { LocalLimits } from "./installation.ts";
import type { SandboxExit } from "../port.ts";
import { type ProcessSample, descendants } from "./processes.ts";
import type { SandboxPaths, SandboxRecord } from "./run-directory.ts";

/** Of a sandbox's output, the newest bytes kept (port.ts `logs`). */
export const LOG_KEPT_BYTES = 1024 * 1024;
/** The files are walked at least this often, and at once when the disk lost this much since the last walk. */
const DISK_WALK_SECONDS = 15;
const DISK_LOSS_BYTES = 128 * 1024 * 1024;
/** A walk may take this share of the time until the next: large trees are walked less often. */
const DISK_WALK_SHARE = 0.1;

/** What the watcher remembers of one sandbox between two looks. */
export interface Watched {
  readonly paths: SandboxPaths;
  readonly record: SandboxRecord;
  disk: { readonly atMs: number; readonly freeBytes: number; readonly nextMs: number } | null;
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

const run = promisify(execFile);

/** Bytes of the blocks below a directory. Files that vanish meanwhile make `du` fail after a good answer. */
const usedBytes = async (directory: string): Promise<number> => {
  const { stdout } = await run("du", ["-skx", directory], { maxBuffer: 1024 * 1024 * 16 }).catch(
    (error: unknown) => error as { stdout: string },
  );
  return Number.parseInt(stdout, 10) * 1024;
};

/** Whether the sandbox's files have outgrown their limit. @param nowMs the present instant */
export const measureDisk = async (
  watched: Watched,
  rules: WatchRules,
  nowMs: number,
): Promise<SandboxExit | null> => {
  const { bavail, bsize } = await statfs(watched.paths.disk);
  const freeBytes = bavail * bsize;
  const last = watched.disk;
  if (last !== null && nowMs < last.nextMs && last.freeBytes - freeBytes < DISK_LOSS_BYTES) return null;
  if (last !== null && nowMs - last.atMs < 1000) return null;
  const startedMs = performance.now();
  const used = await usedBytes(watched.paths.disk);
  const tookMs = performance.now() - startedMs;
  const restMs = Math.max(DISK_WALK_SECONDS * 1000, tookMs / DISK_WALK_SHARE);
  watched.disk = { atMs: nowMs, freeBytes, nextMs: nowMs + restMs };
  return used > rules.limits.diskBytes
    ? {
        code: "disk_exceeded",
        message: `the sandbox used more than its ${mebibytes(rules.limits.diskBytes)} of disk`,
      }
    : null;
};

/**
 * Keeps the log bounded: once it outgrew the kept size, its newest part moves to the old file and it starts anew. The
 * sandbox holds the file open for appending and goes on at its new end.
 */
export const trimLog = async ({ paths }: Watched, limits: LocalLimits): Promise<void> => {
  const { size } = await stat(paths.log);
  const kept = Math.min(LOG_KEPT_BYTES, limits.logBytesPerSecond);
  if (size <= kept) return;
  const file = await open(paths.log, "r");
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(kept), position: size - kept });
    const dropped = Buffer.from(size > kept * 2 ? `[${size - kept} bytes of output left out]\n` : "");
    const next = `${paths.oldLog}.next`;
    await writeFile(next, Buffer.concat([dropped, buffer.subarray(0, bytesRead)]), { mode: 0o600 });
    await rename(next, paths.oldLog);
    await truncate(paths.log, 0);
  } finally {
    await file.close();
  }
};
