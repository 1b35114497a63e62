/**
 * The content of a work tree, from the output of git and find: which paths a save includes, which it leaves out, and
 * why. Paths are bytes, held as latin1 text, one character a byte: names may contain line ends and need not be UTF-8.
 */
import { DEFAULT_CONFIG_DIR } from "../../src/domain/config-dir.ts";
import type { SkipReason } from "./skipped.ts";

/** Larger files are left out, in bytes (api.md 7: 10 MiB). */
export const LARGE_BYTES = 10 * 1024 * 1024;

export interface IndexListing {
  /** Commits. Null: none. */
  readonly head: string | null;
  readonly branch: string | null;
  /** The ref that HEAD names. Null if HEAD is detached. */
  readonly headRef: string | null;
  /** Entries that git was told not to check in the work tree. */
  readonly hidden: readonly string[];
  /** Entries of paths in conflict. */
  readonly unmerged: readonly UnmergedEntry[];
}

export interface UnmergedEntry {
  readonly mode: string;
  readonly object: string;
  /** 1: the common ancestor, 2: ours, 3: theirs. */
  readonly stage: string;
  readonly path: string;
}

export interface WorkTree {
  /** Tracked but no longer present. */
  readonly removed: readonly string[];
  /** Changed or new. */
  readonly added: readonly string[];
  readonly skipped: readonly (readonly [path: string, reason: SkipReason])[];
  /** Paths that must not be stored with their present content, changed or not. */
  readonly left: ReadonlyMap<string, SkipReason>;
}

/**
 * Lists changed files, untracked ones and ignored ones (whole directories as one). Then find lists, in one pass over
 * everything: nested repositories, large files, unreadable entries, and entries that are neither files nor links. An
 * empty record ends each list.
 */
export const LIST_SCRIPT = `
git diff-files -z --name-status --no-renames --ignore-submodules=all
printf '\\0'
git ls-files -z --others --exclude-standard
printf '\\0'
git ls-files -z --others --ignored --exclude-standard --directory
printf '\\0'
find . -name .git -prune -printf 'N%P\\0' \\
  -o -type f -size +${LARGE_BYTES}c -printf 'L%P\\0' \\
  -o -type f ! -readable -printf 'U%P\\0' \\
  -o -type d ! \\( -readable -executable \\) -printf 'D%P\\0' \\
  -o ! -type f ! -type d ! -type l -printf 'S%P\\0' 2> /dev/null || :
printf '\\0'
`;

/** Records up to each empty one. */
export const sections = (listing: Buffer): string[][] => {
  const found: string[][] = [[]];
  for (const record of listing.toString("latin1").split("\0")) {
    if (record === "") found.push([]);
    else found.at(-1)?.push(record);
  }
  return found;
};

const commitOf = (text: string | undefined): string | null =>
  text !== undefined && /^[0-9a-f]{40}$/.test(text) ? text : null;

/** Reads the output of the script that opens a work tree. */
export const readIndex = (listing: Buffer): IndexListing => {
  const [[head, branch, headRef = ""] = [], entries = []] = sections(listing);
  const read = entries.flatMap((entry) => {
    const [, tag = "", mode = "", object = "", stage = "", path = ""] =
      /^(\S) (\d+) ([0-9a-f]+) (\d)\t([^]*)$/.exec(entry) ?? [];
    return path === "" ? [] : [{ tag, mode, object, stage, path }];
  });
  return {
    head: commitOf(head),
    branch: commitOf(branch),
    headRef: headRef.startsWith("refs/") ? headRef : null,
    hidden: read.filter(({ tag }) => tag === "S").map(({ path }) => path),
    unmerged: read.filter(({ stage }) => stage !== "0"),
  };
};

const FOUND: Readonly<Record<string, SkipReason>> = { L: "too_large", U: "unreadable", S: "special" };

/** Directories in which the agent runtime installs what it needs. It hides that by a .gitignore that hides itself. */
const RUNTIME_DIRS = [DEFAULT_CONFIG_DIR, ".opencode"];
const RUNTIME_FILES = [".gitignore", "node_modules/", "package.json", "package-lock.json", "bun.lock"];

/** The ignored paths without those that the runtime made for itself. */
const withoutRuntimes = (ignored: readonly string[]): readonly string[] => {
  const own = new Set<string>();
  for (const directory of RUNTIME_DIRS) {
    // Otherwise the repository itself ignores the directory, and git does not say what else is in it.
    if (!ignored.includes(`${directory}/.gitignore`)) continue;
    for (const name of RUNTIME_FILES) own.add(`${directory}/${name}`);
    // Git names each parent that has only ignored content, and then that content.
    for (let end = directory.length; end !== -1; end = directory.lastIndexOf("/", end - 1))
      own.add(`${directory.slice(0, end)}/`);
  }
  return ignored.filter((path) => !own.has(path));
};

/** Reads the output of `LIST_SCRIPT`. */
export const readWorkTree = (listing: Buffer, { hidden }: Pick<IndexListing, "hidden">): WorkTree => {
  const [changes = [], untracked = [], ignored = [], found = []] = sections(listing);
  const left = new Map<string, SkipReason>();
  const closed: (readonly [string, SkipReason])[] = [];
  for (const record of found) {
    const [kind = "", path] = [record[0], record.slice(1)];
    const reason = FOUND[kind];
    if (reason !== undefined) left.set(path, reason);
    else if (kind === "D") closed.push([`${path}/`, "unreadable"]);
    else if (path.endsWith("/.git")) closed.push([path.slice(0, -".git".length), "nested_repository"]);
  }
  const { removed, changed } = readChanges(changes, new Set(hidden));
  // A directory among them is a nested repository.
  const candidates = [...new Set([...changed, ...untracked])].filter((path) => !path.endsWith("/"));
  const isIgnored = within(new Set(ignored));
  return {
    removed,
    added: candidates.filter((path) => !left.has(path)),
    skipped: [
      ...candidates.flatMap((path) => {
        const reason = left.get(path);
        return reason === undefined ? [] : [[path, reason] as const];
      }),
      ...closed.filter(([path]) => !isIgnored(path)),
      ...withoutRuntimes(ignored).map((path) => [path, "ignored"] as const),
    ],
    left,
  };
};

/** Status and path alternate. */
const readChanges = (records: readonly string[], hidden: ReadonlySet<string>) => {
  const removed: string[] = [];
  const changed: string[] = [];
  for (let at = 0; at + 1 < records.length; at += 2) {
    const [status, path = ""] = [records[at], records[at + 1]];
    if (status !== "D") changed.push(path);
    // A hidden entry may be absent: a sparse checkout has only some of its files.
    else if (!hidden.has(path)) removed.push(path);
  }
  return { removed, changed };
};

/** Whether a directory, written with a trailing slash, is one of these or lies inside one. */
const within =
  (directories: ReadonlySet<string>) =>
  (path: string): boolean => {
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
      if (directories.has(path.slice(0, end + 1))) return true;
    }
    return false;
  };

/**
 * Entries of the index that must be reset to the commit's version, because their files were left out.
 *
 * @param differing entries that differ between the index and the commit.
 * @returns the paths, and the input for `git update-index --index-info`.
 */
export const restoration = (
  differing: readonly Difference[],
  left: ReadonlyMap<string, SkipReason>,
): { readonly paths: readonly string[]; readonly input: Buffer } => {
  const paths: string[] = [];
  let lines = "";
  for (const { path, before } of differing) {
    if (!left.has(path)) continue;
    paths.push(path);
    lines += `${before.mode === ABSENT_MODE ? "0" : before.mode} ${before.object} 0\t${path}\0`;
  }
  return { paths, input: Buffer.from(lines, "latin1") };
};

const ABSENT_MODE = "000000";

interface Entry {
  readonly mode: string;
  readonly object: string;
}

/** One path that differs between an index and a commit. */
export interface Difference {
  readonly path: string;
  readonly before: Entry;
  readonly after: Entry;
}

/** Reads the records of a raw `git diff-index`. */
export const readDifferences = (records: readonly string[]): Difference[] => {
  const differences: Difference[] = [];
  for (let at = 0; at + 1 < records.length; at += 2) {
    const [, modeBefore, modeAfter, before, after] =
      /^:(\d{6}) (\d{6}) ([0-9a-f]{40}) ([0-9a-f]{40}) /.exec(records[at] ?? "") ?? [];
    if (modeBefore === undefined || modeAfter === undefined || before === undefined || after === undefined)
      continue;
    differences.push({
      path: records[at + 1] ?? "",
      before: { mode: modeBefore, object: before },
      after: { mode: modeAfter, object: after },
    });
  }
  return differences;
};
