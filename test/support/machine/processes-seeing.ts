/**
 * Finds processes by their mounts. It is coarser than the provider's own search, so that it finds what the provider
 * misses.
 */
import { readdirSync, readFileSync } from "node:fs";

const mounts = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8");
  } catch {
    return ""; // It ended during the look.
  }
};

/** @param sandboxId of any installation on this machine */
export const processesOfSandbox = (sandboxId: string): number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid)
    .filter((pid) => mounts(pid).includes(`/s/${sandboxId}/`));

/** Kills a sandbox, as a machine without memory does. */
export const killSandbox = (sandboxId: string): void => {
  for (const pid of processesOfSandbox(sandboxId)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with the one before it.
    }
  }
};
