/**
 * Watches one build twice a second: its time, its disk, and what the kernel says about its memory and processes. A
 * build over a limit is ended, and the limit is the reason that is reported.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statfs } from "node:fs/promises";
import { memoryKills, processRefusals } from "../../sandbox/machine/limits/cgroup.ts";
import { descendants, sampleProcesses } from "../../sandbox/machine/processes.ts";
import type { BuildFailure } from "../../domain/environment/build-failure.ts";
import type { BuildLimits } from "../port.ts";

/** Milliseconds between two looks. */
export const LOOK_MS = 500;
/** Files are walked at least this often, and at the next look if the disk lost this much since the last walk. */
const WALK_MS = 15_000;
const LOSS_BYTES = 64 * 1024 * 1024;
const LOSS_SHARE = 1 / 8;
const LOSS_FILES = 20_000;
/** The largest share of time that walks may take. */
const WALK_SHARE = 0.2;
/** Files of an image are on disk up to four times: in the context, a layer, a container and the result. */
const COPIES = 4;

export interface Size {
  readonly bytes: number;
  readonly files: number;
}

/** The last line of `du --total`. */
const total = async (
  unit: "--block-size=1" | "--inodes",
  directories: readonly string[],
): Promise<number> => {
  const child = spawn("du", ["-scx", unit, "--", ...directories], { stdio: ["ignore", "pipe", "ignore"] });
  let answer = "";
  // Lines before the last have a directory each.
  child.stdout.on("data", (chunk: Buffer) => (answer = (answer + chunk.toString("latin1")).slice(-4096)));
  await once(child, "close");
  const bytes = Number.parseInt(answer.trimEnd().split("\n").at(-1) ?? "", 10);
  if (Number.isNaN(bytes)) throw new Error("the files of a build cannot be counted: du gave no answer");
  return bytes;
};

/** The disk space and the number of files below directories. Files that vanish meanwhile may count or not. */
export const measureSize = async (directories: readonly string[]): Promise<Size> => ({
  bytes: await total("--block-size=1", directories),
  files: await total("--inodes", directories),
});

/** The build that is watched, and its limits. */
export interface WatchedBuild {
  readonly limits: BuildLimits;
  /** Control groups of the build. */
  readonly groups: readonly string[];
  /** Limits that the kernel does not enforce here. */
  readonly unenforced: ReadonlySet<"memory" | "processes">;
  /** All directories that the build writes. */
  readonly directories: readonly string[];
  /** Their size before the build. */
  readonly before: Size;
  /** The instant of the build's start, in milliseconds. */
  readonly startedMs: number;
  /** The outermost process. Null between two. */
  readonly launcher: () => number | null;
}

interface Walk {
  /** Before this instant, there is no other walk at all. */
  readonly soonestMs: number;
  /** At this instant, there is another one in any case. */
  readonly nextMs: number;
  readonly freeBytes: number;
  readonly freeFiles: number;
}

export class LimitWatch {
  readonly #watched: WatchedBuild;
  #walk: Walk | null = null;

  constructor(watched: WatchedBuild) {
    this.#watched = watched;
  }

  /** What the kernel reports: cheap, and true also after the processes ended. */
  kernelVerdict(): BuildFailure | null {
    const { groups, limits } = this.#watched;
    if (memoryKills(groups) > 0) return { code: "out_of_memory", limit: limits.memoryBytes };
    if (processRefusals(groups) > 0) return { code: "too_large", what: "processes", limit: limits.processes };
    return null;
  }

  /** One look. @param nowMs the present instant */
  async look(nowMs: number): Promise<BuildFailure | null> {
    const { limits, startedMs } = this.#watched;
    if (nowMs - startedMs >= limits.seconds * 1000) return { code: "timeout", seconds: limits.seconds };
    return this.kernelVerdict() ?? this.#processes() ?? (await this.#disk(nowMs));
  }

  #processes(): BuildFailure | null {
    const { unenforced, limits, launcher } = this.#watched;
    const root = launcher();
    if (unenforced.size === 0 || root === null) return null;
    const inside = descendants(sampleProcesses(), root);
    const memory = inside.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
    if (unenforced.has("memory") && memory > limits.memoryBytes)
      return { code: "out_of_memory", limit: limits.memoryBytes };
    const threads = inside.reduce((sum, sample) => sum + sample.threads, 0);
    return unenforced.has("processes") && threads > limits.processes
      ? { code: "too_large", what: "processes", limit: limits.processes }
      : null;
  }

  async #disk(nowMs: number): Promise<BuildFailure | null> {
    const { limits, directories, before } = this.#watched;
    const [place = "/"] = directories;
    const { bavail, bsize, ffree: freeFiles } = await statfs(place);
    const freeBytes = bavail * bsize;
    const last = this.#walk;
    const isLost =
      last !== null &&
      (last.freeBytes - freeBytes >= Math.min(LOSS_BYTES, limits.diskBytes * LOSS_SHARE) ||
        last.freeFiles - freeFiles >= Math.min(LOSS_FILES, limits.imageFiles * LOSS_SHARE));
    if (last !== null && nowMs < (isLost ? last.soonestMs : last.nextMs)) return null;
    const startedMs = performance.now();
    const { bytes, files } = await measureSize(directories);
    const tookMs = performance.now() - startedMs;
    const soonestMs = nowMs + tookMs / WALK_SHARE;
    this.#walk = { soonestMs, nextMs: Math.max(soonestMs, nowMs + WALK_MS), freeBytes, freeFiles };
    if (bytes - before.bytes > limits.diskBytes)
      return { code: "too_large", what: "disk", limit: limits.diskBytes };
    const filesMax = limits.imageFiles * COPIES;
    return files - before.files > filesMax
      ? { code: "too_large", what: "files", limit: limits.imageFiles }
      : null;
  }
}
