/** Uses at most a share of one processor. */
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { GitProcess } from "./repository.ts";

/** How long a program of git runs and stands still, ms in all. */
const PERIOD_MS = 200;
/** Shorter pauses are put together. */
const PAUSE_MIN_MS = 5;

export class Pace {
  readonly #share: number;
  readonly #sinceMs = performance.now();
  readonly #usedUs = process.cpuUsage();

  /** @param share from 0 to 1. 1: no limit */
  constructor(share: number) {
    this.#share = Math.min(1, Math.max(0.01, share));
    if (this.#share < 1) setPriority(constants.priority.PRIORITY_LOW);
  }

  /** Waits until what was used is no more than the share. */
  async rest(): Promise<void> {
    if (this.#share === 1) return;
    const { user, system } = process.cpuUsage(this.#usedUs);
    const dueMs = (user + system) / 1000 / this.#share - (performance.now() - this.#sinceMs);
    if (dueMs > PAUSE_MIN_MS) await sleep(dueMs);
  }

  /** Lets another program run for its share of the time. @returns a function to call at its end */
  hold(child: GitProcess): () => void {
    if (this.#share === 1) return () => undefined;
    let timer: NodeJS.Timeout;
    const next = (isRunning: boolean): void => {
      child.kill(isRunning ? "SIGCONT" : "SIGSTOP");
      const part = isRunning ? this.#share : 1 - this.#share;
      // oxlint-disable-next-line no-restricted-globals -- this program has no Effect
      timer = setTimeout(() => next(!isRunning), PERIOD_MS * part);
    };
    next(true);
    return () => {
      clearTimeout(timer);
      child.kill("SIGCONT");
    };
  }
}
