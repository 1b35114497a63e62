/** Finds processes by their working directory. */
import { readdirSync, readlinkSync } from "node:fs";
import path from "node:path";

const link = (pid: string, name: string): string => {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return ""; // It ended during the look, or belongs to another user.
  }
};

export const programOf = (pid: number): string => path.basename(link(String(pid), "exe"));

/**
 * Processes that work in the directory or below it: those of a service and of its Postgres. `initdb` works in `/` and
 * has its directory open.
 *
 * @param directory its real path; it may have been removed.
 */
export const processesIn = (directory: string): readonly number[] => {
  const isWithin = (place: string) => place === directory || place.startsWith(`${directory}${path.sep}`);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter(
      (pid) =>
        isWithin(link(pid, "cwd").replace(/ \(deleted\)$/, "")) ||
        (programOf(Number(pid)) === "initdb" && isWithin(link(pid, "fd/3"))),
    )
    .map(Number);
};
