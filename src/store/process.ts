/** Distinguishes a process from a later one with the same pid (Linux's /proc). */
import { readFile } from "node:fs/promises";

/**
 * When a process began, as a text that no later process with its pid shares: boot id and ticks since boot.
 *
 * @returns null if the process does not exist, or is a zombie.
 */
export const processStartedAt = async (pid: number): Promise<string | null> => {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    ]);
    // The second field is the program's name in parentheses. The name may contain blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, ticks] = [fields[0], fields[19]];
    return state === "Z" || ticks === undefined ? null : `${boot.trim()}:${ticks}`;
  } catch {
    return null;
  }
};
