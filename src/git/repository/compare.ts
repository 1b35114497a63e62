/**
 * Comparisons for change requests, computed in a bare repository without a work tree (api.md 6). Both sides are full
 * commit ids that the caller has resolved.
 */
import * as Effect from "effect/Effect";
import { patternOfBrokenName } from "../../domain/repository/broken-name.ts";
import { cutLine } from "../../domain/repository/diff-cut.ts";
import {
  type CommitSummary,
  type Comparison,
  type DiffRequest,
  type FileChange,
  GitError,
  isTreePath,
} from "../port.ts";
import { emptyTree, withAttributes } from "./attributes.ts";
import { runGit } from "../run.ts";

/** How many commits and files one comparison lists. `commitsTotal` and `filesTotal` give the total numbers. */
export const maxCommits = 250;
export const maxFiles = 3000;

interface Sides {
  readonly path: string;
  readonly base: string;
  readonly head: string;
}

const fields = (output: Buffer): string[] => output.toString("utf8").split("\0").slice(0, -1);

/** Git's seconds. An old tool's commit may have none, or more than a date holds. */
const toInstant = (seconds: string): string => {
  const date = new Date(Number(seconds) * 1000);
  return (Number.isNaN(date.getTime()) ? new Date(0) : date).toISOString();
};

/** The best common ancestor. Null if the histories have none. */
export const findMergeBase = ({ path, base, head }: Sides): Effect.Effect<string | null, GitError> =>
  Effect.map(
    runGit({ repository: path, args: ["merge-base", base, head], expect: [0, 1] }),
    ({ exitCode, stdout }) => (exitCode === 0 ? stdout.toString("utf8").trim() : null),
  );

const readCommits = ({ path, base, head }: Sides): Effect.Effect<readonly CommitSummary[], GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["log", "-z", `--max-count=${maxCommits + 1}`, "--format=%H%n%an%n%ct%n%s", `${base}..${head}`],
    }),
    ({ stdout }) =>
      `${stdout.toString("utf8")}\0`
        .split("\0")
        .filter((record) => record !== "")
        .map((record) => {
          const [sha = "", authorName = "", committedAt = "", subject = ""] = record.split("\n");
          return { sha, subject, authorName, committedAt: toInstant(committedAt) };
        }),
  );

const commitCount = ({ path, base, head }: Sides): Effect.Effect<number, GitError> =>
  Effect.map(runGit({ repository: path, args: ["rev-list", "--count", `${base}..${head}`] }), ({ stdout }) =>
    Number(stdout.toString("utf8").trim()),
  );

/**
 * What a raw record says beside the path: `:mode mode id id status`. A file that is new or gone has the mode 000000 on one
 * side, and has not changed it.
 */
const newMode = (record: string): Pick<FileChange, "mode"> => {
  const [before = "", mode = ""] = record.slice(1).split(" ");
  const isChange = before !== mode && ![before, mode].includes("000000");
  return isChange ? { mode } : {};
};

/**
 * First the raw records, each with one path, or two if it was renamed. Then those of `numstat`: `added TAB deleted TAB
 * path`; for a rename an empty path, then the old and the new one. All end with NUL, and both lists have the same order.
 */
const readFiles = (
  path: string,
  from: string,
  head: string,
): Effect.Effect<readonly FileChange[], GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: [
        "diff-tree",
        "-r",
        "-M",
        "-z",
        "--raw",
        "--numstat",
        "--no-ext-diff",
        "--no-textconv",
        from,
        head,
      ],
    }),
    ({ stdout }) => {
      const files: FileChange[] = [];
      const modes: Pick<FileChange, "mode">[] = [];
      const parts = fields(stdout)[Symbol.iterator]();
      for (const record of parts) {
        if (record.startsWith(":")) {
          parts.next();
          if (/ [RC]\d*$/.test(record)) parts.next();
          modes.push(newMode(record));
          continue;
        }
        const [added, deleted, ...name] = record.split("\t");
        let file = name.join("\t");
        let renamedFrom: string | undefined;
        if (file === "") {
          renamedFrom = parts.next().value ?? "";
          file = parts.next().value ?? "";
        }
        files.push({
          path: file,
          additions: Number(added) || 0,
          deletions: Number(deleted) || 0,
          // It has no lines.
          ...(added === "-" && { binary: true as const }),
          ...(renamedFrom !== undefined && { renamedFrom }),
          ...modes[files.length],
        });
      }
      return files;
    },
  );

interface MergedTrees {
  /** Null if git could not merge automatically. */
  readonly tree: string | null;
  readonly conflicts: readonly string[];
}

/** How many paths one call to git gets: a path has up to 4 KiB, and a command line up to 2 MiB. */
const pathsAtOnce = 200;

/** The paths among these that exist in the commit. */
const pathsIn = (
  { path, base, head }: Sides,
  candidates: readonly string[],
): Effect.Effect<ReadonlySet<string>, GitError> => {
  const chunks = Array.from({ length: Math.ceil(candidates.length / pathsAtOnce) }, (_, n) =>
    candidates.slice(n * pathsAtOnce, (n + 1) * pathsAtOnce),
  );
  const listings = [base, head].flatMap((commit) =>
    chunks.map((chunk) =>
      runGit({ repository: path, args: ["ls-tree", "-z", "--name-only", commit, "--", ...chunk] }),
    ),
  );
  return Effect.map(
    Effect.all(listings),
    (outputs) => new Set(outputs.flatMap(({ stdout }) => fields(stdout))),
  );
};

/** After the tree, `merge-tree -z` prints paths, an empty field, and messages, which also name paths. */
const conflictPaths = (lines: readonly string[], { base, head }: Sides): readonly string[] => {
  const end = lines.indexOf("");
  const paths = end === -1 ? [...lines] : lines.slice(0, end);
  const messages = end === -1 ? [] : lines.slice(end + 1);
  for (let at = 0; at < messages.length;) {
    // A message is: the number of paths, the paths, the kind, the sentence.
    const kindAt = at + 1 + Number(messages[at]);
    if (messages[kindAt]?.startsWith("CONFLICT") === true) paths.push(...messages.slice(at + 1, kindAt));
    at = kindAt + 2;
  }
  // If a file cannot stay at its path, git puts it beside it, under a name with the branch's commit id.
  const aside = new RegExp(`~(?:${base}|${head})(?:_\\d+)?$`);
  return [...new Set(paths.map((name) => name.replace(aside, "")))];
};

/**
 * Merges two commits' trees. The same commits always produce the same objects, so repeating this adds nothing. Git's
 * own housekeeping removes objects of merges that were not used. Conflicts are named by paths of the two commits.
 */
export const mergeTrees = Effect.fnUntraced(function* (
  sides: Sides,
): Effect.fn.Return<MergedTrees, GitError> {
  const { exitCode, stdout, truncated } = yield* withAttributes(sides.path, sides.base, (options) =>
    runGit({
      repository: sides.path,
      ...options,
      args: [...options.args, "merge-tree", "--write-tree", "--name-only", "-z", sides.base, sides.head],
      expect: [0, 1],
    }),
  );
  const [tree = "", ...printed] = fields(stdout);
  // If git was stopped in the middle of its list, its exit code is meaningless.
  if (exitCode === 0 && !truncated) return { tree, conflicts: [] };
  const candidates = conflictPaths(printed, sides);
  const present = yield* pathsIn(sides, candidates);
  const conflicts = candidates.filter((name) => present.has(name));
  return { tree: null, conflicts: conflicts.length > 0 ? conflicts : candidates };
});

/** Commits, files and mergeability of `head` against `base`; see `Comparison`. */
export const compareCommits = Effect.fnUntraced(function* (sides: Sides) {
  const mergeBase = yield* findMergeBase(sides);
  const [commits, files, { tree, conflicts }] = yield* Effect.all(
    [
      readCommits(sides),
      readFiles(sides.path, mergeBase ?? emptyTree, sides.head),
      mergeBase === null ? Effect.succeed({ tree: null, conflicts: [] }) : mergeTrees(sides),
    ],
    { concurrency: 3 },
  );
  const commitsTotal = commits.length > maxCommits ? yield* commitCount(sides) : commits.length;
  const comparison: Comparison = {
    base: sides.base,
    head: sides.head,
    mergeBase,
    commitsTotal,
    filesTotal: files.length,
    linesTotal: {
      additions: files.reduce((sum, { additions }) => sum + additions, 0),
      deletions: files.reduce((sum, { deletions }) => sum + deletions, 0),
    },
    commits: commits.slice(0, maxCommits),
    filesChanged: files.slice(0, maxFiles),
    mergeable: tree !== null,
    conflicts,
  };
  return comparison;
});

/** The path that a renamed file had. Null if the file was not renamed. `name-status -z`: `R<similarity> NUL old NUL new`. */
const renamedFrom = (path: string, { from, head }: { from: string; head: string }, file: string) =>
  Effect.map(
    runGit({
      repository: path,
      args: ["diff-tree", "-r", "-M", "-z", "--name-status", "--diff-filter=R", from, head],
    }),
    ({ stdout }) => {
      const parts = fields(stdout);
      const at = parts.findIndex((name, index) => index % 3 === 2 && name === file);
      return at === -1 ? null : (parts[at - 1] ?? null);
    },
  );

/** As `GitBackend.diff` without its sides: how much, and of which file. */
type DiffPart = Pick<DiffRequest, "maxBytes" | "path">;

/** The unified diff from the merge base to `head`, cut at the last whole line within `maxBytes`. */
export const diffCommits = Effect.fnUntraced(function* (sides: Sides, { maxBytes, path: file }: DiffPart) {
  if (file !== undefined && !isTreePath(file)) return "";
  const from = (yield* findMergeBase(sides)) ?? emptyTree;
  const pattern = file === undefined ? null : patternOfBrokenName(file);
  const before =
    file === undefined || pattern !== null
      ? null
      : yield* renamedFrom(sides.path, { from, head: sides.head }, file);
  const { stdout, truncated } = yield* runGit({
    repository: sides.path,
    args: [
      "diff-tree",
      "-p",
      "-r",
      "-M",
      "--no-color",
      "--no-ext-diff",
      "--no-textconv",
      from,
      sides.head,
      // They are literal: see run.ts.
      ...(file === undefined ? [] : ["--", pattern ?? file]),
      ...(before === null ? [] : [before]),
    ],
    ...(pattern !== null && { environment: { GIT_LITERAL_PATHSPECS: "0" } }),
    maxOutputBytes: maxBytes,
  });
  if (!truncated) return stdout.toString("utf8");
  const whole = stdout.subarray(0, stdout.lastIndexOf(0x0a) + 1).toString("utf8");
  return `${whole}${cutLine(maxBytes)}\n`;
});
