/**
 * Files without a name that processes have open or in their memory: they use a disk like any other file, and a walk over directories
 * cannot see them. /proc shows them. Reads are synchronous, as in processes.ts.
 */
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { readIfThere } from "../processes.ts";

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
    ...(readIfThere(join(group, "cgroup.procs")) ?? "").split("\n").filter(Boolean).map(Number),
    ...processesInGroups(
      (attempt(() => readdirSync(group, { withFileTypes: true })) ?? [])
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => join(group, name)),
    ),
  ]);

/** Reads the places with pauses: a sandbox may have hundreds of processes with a thousand open files each. */
const READS_AT_A_TIME = 2_000;

/** Where the open files of a process stand. A thread may have descriptors of its own. */
const listDescriptors = (pid: number): readonly string[] =>
  (attempt(() => readdirSync(`/proc/${pid}/task`)) ?? []).flatMap((thread) => {
    const place = `/proc/${pid}/task/${thread}/fd`;
    return (attempt(() => readdirSync(place)) ?? []).map((name) => join(place, name));
  });

/** `7f00-7f40 r--s 00001000 fe:00 1234 /x (deleted)`: addresses, rights, offset, device, inode, name. */
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) .* \(deleted\)$/;

interface Mapping {
  readonly addresses: string;
  readonly inode: number;
  /** In a form of one's own: devices are compared. */
  readonly device: string;
  /** How far into the file it reaches, bytes. */
  readonly end: number;
}

/** A process keeps a removed file by a part of its memory, too, after it has closed it. */
const listMappings = (pid: number): readonly Mapping[] =>
  (readIfThere(`/proc/${pid}/maps`) ?? "").split("\n").flatMap((line) => {
    const [, from, to, offset, major, minor, inode] = MAPPING.exec(line) ?? [];
    if (from === undefined || to === undefined || offset === undefined) return [];
    const end = Number.parseInt(offset, 16) + Number.parseInt(to, 16) - Number.parseInt(from, 16);
    const device = `${Number.parseInt(major ?? "", 16)}:${Number.parseInt(minor ?? "", 16)}`;
    // `map_files` names them without zeros in front.
    const addresses = [from, to].map((one) => Number.parseInt(one, 16).toString(16)).join("-");
    return [{ addresses, inode: Number(inode), device, end }];
  });

/** Linux' own numbers of a device. */
const toDevice = (dev: number): string => {
  const number = BigInt(dev);
  const major = ((number >> 8n) & 0xfffn) | ((number >> 32n) & ~0xfffn);
  const minor = (number & 0xffn) | ((number >> 12n) & ~0xffn & 0xffffffffn);
  return `${major}:${minor}`;
};

/**
 * The space of the unnamed files that these processes have open or in their memory, on the file system of `directory`. Each file counts once.
 * Descriptors on their way through a socket are not seen; the limit of open files bounds them.
 */
export const unlinkedSpace = async (pids: Iterable<number>, directory: string): Promise<Space> => {
  const { dev } = statSync(directory);
  /** Bytes by inode. */
  const sizes = new Map<number, number>();
  const note = (place: string): boolean => {
    const file = attempt(() => statSync(place));
    if (file !== null && file.nlink === 0 && file.dev === dev) sizes.set(file.ino, file.blocks * BLOCK_BYTES);
    return file !== null;
  };
  let reads = 0;
  const pause = async (): Promise<void> => {
    reads += 1;
    if (reads % READS_AT_A_TIME === 0) await setImmediate();
  };
  for (const pid of pids) {
    for (const place of listDescriptors(pid)) {
      if (attempt(() => readlinkSync(place))?.endsWith(DELETED) === true) note(place);
      // oxlint-disable-next-line no-await-in-loop -- the event loop goes on
      await pause();
    }
    for (const { addresses, inode, device, end } of listMappings(pid)) {
      // oxlint-disable-next-line no-await-in-loop -- the event loop goes on
      await pause();
      if (device !== toDevice(dev) || note(`/proc/${pid}/map_files/${addresses}`)) continue;
      // Only root may look at the file itself. Otherwise as much counts as is mapped.
      sizes.set(inode, Math.max(end, sizes.get(inode) ?? 0));
    }
  }
  const bytes = [...sizes.values()].reduce((all, one) => all + one, 0);
  return { bytes, files: sizes.size };
};
