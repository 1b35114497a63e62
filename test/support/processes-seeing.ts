/** Processes by what is mounted for them: a coarser look than the provider's own, so that it tells what that one misses. */
import { readdirSync, readFileSync } from "node:fs";

const mounts = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8");
  } catch {
    return ""; // It ended while it was looked at.
  }
};

/** @param sandboxId of any installation of this machine */
export const processesOfSandbox = (sandboxId: string): number[] =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid)
    .filter((pid) => mounts(pid).includes(`/s/${sandboxId}/`));
