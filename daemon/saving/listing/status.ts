/** Reads what git prints of a work tree. Paths are latin1 text, one character a byte. */
import type { ListedItem } from "../../../src/domain/save/listing.ts";

export interface Version {
  readonly mode: string;
  readonly object: string;
}

/** A tracked path that differs from the index, or whose entry in the index differs from HEAD. */
export interface Change {
  readonly path: string;
  /** Null if HEAD does not have it. */
  readonly head: Version | null;
  /** Null if the index does not have it, or it does not differ from HEAD. */
  readonly index: Version | null;
  /** Whether the index differs from HEAD. */
  readonly isStaged: boolean;
  /** Versions of a path in conflict: stages 1 to 3. */
  readonly stages: readonly (Version & { readonly stage: 1 | 2 | 3 })[];
  /** Mode in the work tree. `160000`: a repository of its own. */
  readonly mode: string;
}

export interface Status {
  /** Where HEAD is, as a listing has it. */
  readonly head: { readonly ref: string | null; readonly commit: string | null };
  readonly changes: readonly Change[];
  /** A trailing slash: a repository of its own. */
  readonly untracked: readonly string[];
  readonly ignored: readonly string[];
}

const ABSENT = "000000";
export const GITLINK = "160000";

const version = (mode = ABSENT, object = ""): Version | null => (mode === ABSENT ? null : { mode, object });

const CHANGED = /^1 (.)(.) \S{4} (\d{6}) (\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([^]*)$/;
const UNMERGED = /^u .. \S{4} (\d{6}) (\d{6}) (\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ([^]*)$/;

const readChange = (record: string): Change | null => {
  const [, x, , headMode, indexMode, mode = ABSENT, headObject, indexObject, path = ""] =
    CHANGED.exec(record) ?? [];
  if (path === "") return null;
  return {
    path,
    head: version(headMode, headObject),
    index: version(indexMode, indexObject),
    isStaged: x !== ".",
    stages: [],
    mode,
  };
};

const readUnmerged = (record: string): Change | null => {
  const [, m1, m2, m3, mode = ABSENT, h1, h2, h3, path = ""] = UNMERGED.exec(record) ?? [];
  if (path === "") return null;
  const stages = [version(m1, h1), version(m2, h2), version(m3, h3)].flatMap((one, at) =>
    one === null ? [] : [{ ...one, stage: (at + 1) as 1 | 2 | 3 }],
  );
  // HEAD has our side.
  return { path, head: version(m2, h2), index: null, isStaged: true, stages, mode };
};

/** Reads `git status --porcelain=v2 -z --branch`. */
export const readStatus = (output: Buffer): Status => {
  const changes: Change[] = [];
  const untracked: string[] = [];
  const ignored: string[] = [];
  let [commit, branch]: (string | null)[] = [null, null];
  for (const record of output.toString("latin1").split("\0")) {
    const kind = record[0];
    if (kind === "?") untracked.push(record.slice(2));
    else if (kind === "!") ignored.push(record.slice(2));
    else if (kind === "#") {
      commit = /^# branch\.oid ([0-9a-f]{40})$/.exec(record)?.[1] ?? commit;
      branch = /^# branch\.head ([^]+)$/.exec(record)?.[1] ?? branch;
    } else {
      const change = kind === "1" ? readChange(record) : kind === "u" ? readUnmerged(record) : null;
      if (change !== null) changes.push(change);
    }
  }
  const isDetached = branch === null || branch === "(detached)";
  return {
    head: { ref: isDetached ? null : `refs/heads/${branch}`, commit: commit ?? null },
    changes,
    untracked,
    ignored,
  };
};

/** One path that differs between two trees. */
export interface Difference {
  readonly path: string;
  readonly before: Version | null;
  readonly after: Version | null;
}

/** Reads the records of `git diff-tree -r -z --raw --no-renames --no-abbrev`. */
export const readDifferences = (records: readonly string[]): Difference[] => {
  const differences: Difference[] = [];
  for (let at = 0; at + 1 < records.length; at += 2) {
    const [, modeBefore, modeAfter, before, after] =
      /^:(\d{6}) (\d{6}) ([0-9a-f]{40}) ([0-9a-f]{40}) /.exec(records[at] ?? "") ?? [];
    if (modeBefore === undefined) continue;
    differences.push({
      path: records[at + 1] ?? "",
      before: version(modeBefore, before),
      after: version(modeAfter, after),
    });
  }
  return differences;
};

/** Directories that git could not read, from its warnings. */
export const unreadableDirectories = (warnings: string): string[] =>
  [...warnings.matchAll(/^warning: could not open directory '(.*?)\/?': /gm)].map(([, path = ""]) => path);

/** The form of a mode in a listing. Null if a listing cannot have it. */
export const listedMode = (mode: string): ListedItem["mode"] | null =>
  mode === "120000" ? "120000" : mode.startsWith("100") ? (mode === "100755" ? "100755" : "100644") : null;
