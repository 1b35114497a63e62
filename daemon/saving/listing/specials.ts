/** Files that git does not see: devices, pipes and sockets. */
import { readdirSync, type Dirent } from "node:fs";
import { absolute, below } from "../content.ts";
import type { Left } from "../left.ts";

/** How many entries are looked at. A large workspace is not searched whole, because that takes as long as git's own search. */
const ENTRIES_MAX = 10_000;

const specialKind = (entry: Dirent): string | null => {
  if (entry.isFIFO()) return "fifo";
  if (entry.isSocket()) return "socket";
  return entry.isBlockDevice() || entry.isCharacterDevice() ? "device" : null;
};

/** @param ignoredPaths paths that are not searched; directories end with a slash */
export const countSpecials = (root: string, ignoredPaths: readonly string[], left: Left): void => {
  const skippedPaths = new Set(ignoredPaths);
  const waiting = [""];
  let entries = 0;
  for (let directory = waiting.shift(); directory !== undefined; directory = waiting.shift()) {
    for (const entry of readEntries(root, directory)) {
      entries += 1;
      if (entries > ENTRIES_MAX) return;
      // Nearly all entries are files, which need no path.
      if (entry.isFile()) continue;
      const path = below(directory, entry.name);
      const kind = specialKind(entry);
      if (kind !== null) left.count(path, kind);
      else if (entry.isDirectory() && entry.name !== ".git" && !skippedPaths.has(`${path}/`))
        waiting.push(path);
    }
  }
};

const readEntries = (root: string, directory: string): readonly Dirent[] => {
  try {
    return readdirSync(absolute(root, directory), { withFileTypes: true, encoding: "latin1" });
  } catch {
    // Git has said that it cannot be read.
    return [];
  }
};
