/**
 * Files without a name that processes have open: they use a disk like any other file, and a walk over directories cannot
 * see them. /proc shows them behind the descriptors. Reads are synchronous, as in processes.ts.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";

export interface Space {
  readonly bytes: number;
  readonly files: number;
}

/** How the kernel ends the name of an open file that was removed. */
const DELETED = " (deleted)";
/** The unit of `st_blocks`. */
const BLOCK_BYTES = 512;

const attempt = <A>(read: () => A): A | null => {
  try {
    return read();
  } catch {
    return null; // the process or its file is gone, or hidden from this user
  }
};

/** Every process in control groups and in those below them. */
export const processesInGroups = (groups: readonly string[]): number[] =>
  groups.flatMap((group) => [
    ...(attempt(() => readFileSync(join(group, "cgroup.procs"), "utf8")) ?? "")
      .split("\n")
      .filter(Boolean)
      .map(Number),
    ...processesInGroups(
      (attempt(() => readdirSync(group, { withFileTypes: true })) ?? [])
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => join(group, name)),
    ),
  ]);

/** What the unnamed open files of these processes use of the file system of `directory`. Each file counts once. */
export const unlinkedSpace = (pids: Iterable<number>, directory: string): Space => {
  const { dev } = statSync(directory);
  const blocks = new Map<number, number>();
  for (const pid of pids) {
    const place = `/proc/${pid}/fd`;
    for (const name of attempt(() => readdirSync(place)) ?? []) {
      const fd = join(place, name);
      if (attempt(() => readlinkSync(fd))?.endsWith(DELETED) !== true) continue;
      const file = attempt(() => statSync(fd));
      if (file !== null && file.nlink === 0 && file.dev === dev) blocks.set(file.ino, file.blocks);
    }
  }
  const sum = [...blocks.values()].reduce((all, one) => all + one, 0);
  return { bytes: sum * BLOCK_BYTES, files: blocks.size };
};
