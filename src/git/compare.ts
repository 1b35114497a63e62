/**
 * What a change request shows, computed in a bare repository without a work tree (api.md 6). Both sides are full commit
 * ids that the caller has resolved.
 */
import * as Effect from "effect/Effect";
import { type CommitSummary, type Comparison, GitError } from "./port.ts";
import { runGit } from "./run.ts";

/** Commits and files one comparison lists; `truncated` says that there are more. */
const maxCommits = 250;
const maxFiles = 3000;

const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

interface Sides {
  readonly path: string;
  readonly base: string;
  readonly head: string;
}

const fields = (output: Buffer): string[] => output.toString("utf8").split("\0").slice(0, -1);

/** The best common ancestor; null where the histories have none. */
export const mergeBaseOf = ({ path, base, head }: Sides): Effect.Effect<string | null, GitError> =>
  Effect.map(
    runGit({ repository: path, args: ["merge-base", base, head], expect: [0, 1] }),
    ({ exitCode, stdout }) => (exitCode === 0 ? stdout.toString("utf8").trim() : null),
  );

const commitsOf = ({ path, base, head }: Sides): Effect.Effect<readonly CommitSummary[], GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["log", "-z", `--max-count=${maxCommits + 1}`, "--format=%H%n%an%n%cI%n%s", `${base}..${head}`],
    }),
    ({ stdout }) =>
      `${stdout.toString("utf8")}\0`
        .split("\0")
        .filter((record) => record !== "")
        .map((record) => {
          const [sha = "", authorName = "", committedAt = "", subject = ""] = record.split("\n");
          return { sha, subject, authorName, committedAt: new Date(committedAt).toISOString() };
        }),
  );

/** `numstat -z`: `added TAB deleted TAB path NUL`, and for a rename an empty path, then the old and the new one. */
const filesOf = (
  path: string,
  from: string,
  head: string,
): Effect.Effect<Comparison["filesChanged"], GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["diff-tree", "-r", "-M", "-z", "--numstat", "--no-ext-diff", "--no-textconv", from, head],
    }),
    ({ stdout }) => {
      const files: Comparison["filesChanged"][number][] = [];
      const parts = fields(stdout)[Symbol.iterator]();
      for (const record of parts) {
        const [added, deleted, ...name] = record.split("\t");
        let file = name.join("\t");
        if (file === "") {
          parts.next();
          file = parts.next().value ?? "";
        }
        // A binary file is written as `-`: it has no lines.
        files.push({ path: file, additions: Number(added) || 0, deletions: Number(deleted) || 0 });
      }
      return files;
    },
  );

interface MergedTrees {
  /** Null where git could not merge alone. It may then name no path: a directory that was renamed to two places has none. */
  readonly tree: string | null;
  readonly conflicts: readonly string[];
}

/**
 * Merges two commits' trees. The objects git writes on the way are the same ones for the same commits, so asking again
 * adds nothing; git's own housekeeping removes what no merge took up.
 */
export const mergeTrees = ({ path, base, head }: Sides): Effect.Effect<MergedTrees, GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head],
      expect: [0, 1],
    }),
    ({ exitCode, stdout, truncated }) => {
      const [tree = "", ...paths] = fields(stdout);
      // Git that was stopped in the middle of its list has no exit code of its own.
      const isClean = exitCode === 0 && !truncated;
      return { tree: isClean ? tree : null, conflicts: [...new Set(paths)] };
    },
  );

/** Commits, files and mergeability of `head` against `base`; see `Comparison`. */
export const compareCommits = Effect.fnUntraced(function* (sides: Sides) {
  const mergeBase = yield* mergeBaseOf(sides);
  const [commits, files, { tree, conflicts }] = yield* Effect.all(
    [
      commitsOf(sides),
      filesOf(sides.path, mergeBase ?? emptyTree, sides.head),
      mergeBase === null ? Effect.succeed({ tree: null, conflicts: [] }) : mergeTrees(sides),
    ],
    { concurrency: 3 },
  );
  const comparison: Comparison = {
    base: sides.base,
    head: sides.head,
    mergeBase,
    commits: commits.slice(0, maxCommits),
    filesChanged: files.slice(0, maxFiles),
    truncated: commits.length > maxCommits || files.length > maxFiles,
    mergeable: tree !== null,
    conflicts,
  };
  return comparison;
});

/** The unified diff from the merge base to `head`, cut at the last whole line within `maxBytes`. */
export const diffCommits = Effect.fnUntraced(function* (sides: Sides, maxBytes: number) {
  const mergeBase = yield* mergeBaseOf(sides);
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
      mergeBase ?? emptyTree,
      sides.head,
    ],
    maxOutputBytes: maxBytes,
  });
  if (!truncated) return stdout.toString("utf8");
  const whole = stdout.subarray(0, stdout.lastIndexOf(0x0a) + 1).toString("utf8");
  return `${whole}[The diff is longer than ${maxBytes} bytes and was cut here.]\n`;
});
