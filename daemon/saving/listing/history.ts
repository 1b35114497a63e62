/** Finds the files of the runtime's own record of the conversation (src/domain/runtimes/history.ts). No link is followed. */
import { readdirSync } from "node:fs";
import {
  HISTORY_BYTES_MAX,
  HISTORY_FILES_MAX,
  historyPatterns,
  type NamePattern,
} from "../../../src/domain/runtimes/history.ts";
import type { ListedHistory, ListedItem } from "../../../src/domain/save/listing.ts";
import type { HistoryPlace } from "../command.ts";
import { absolute, below, digest, Tree } from "../content.ts";
import type { Left } from "../left.ts";

/** The files of a pattern below one directory. */
const matchFiles = (home: string, directory: string, pattern: readonly NamePattern[]): readonly string[] => {
  const [first, ...rest] = pattern;
  if (first === undefined) return [];
  const entries = readdirSync(absolute(home, directory), { encoding: "latin1", withFileTypes: true });
  return entries
    .filter(
      (entry) => (rest.length === 0 ? entry.isFile() : entry.isDirectory()) && first.matches(entry.name),
    )
    .flatMap(({ name }) => {
      const path = below(directory, name);
      return rest.length === 0 ? [path] : matchFiles(home, path, rest);
    });
};

/** The same, for directories that may change or be missing. */
const findFiles = (home: string, patterns: readonly (readonly NamePattern[])[]): readonly string[] => {
  try {
    return [...new Set(patterns.flatMap((pattern) => matchFiles(home, "", pattern)))];
  } catch {
    return [];
  }
};

/** @returns null without a record. One that is too large is named. */
export const listHistory = ({ home, runtime, files, id }: HistoryPlace, left: Left): ListedHistory | null => {
  const patterns = id === null ? null : historyPatterns(files, id);
  const paths = patterns === null ? [] : findFiles(home, patterns);
  const [first] = paths;
  if (id === null || first === undefined) return null;
  const tree = new Tree(home);
  const items: ListedItem[] = [];
  let bytes = 0;
  for (const path of paths) {
    const there = tree.look(path);
    if (typeof there === "string" || !there.stats.isFile()) return null;
    bytes += Number(there.stats.size);
    if (bytes > HISTORY_BYTES_MAX || paths.length > HISTORY_FILES_MAX) {
      left.name(`~/${first}`, "history_too_large");
      return null;
    }
    const read = digest(tree, path);
    if (typeof read === "string" || read.mode === "120000") return null;
    const { mode, size, object } = read;
    items.push({ kind: "history", path, mode, size, object });
  }
  return { runtime, id, items };
};
