/** Queries on a bare repository's refs and objects. The caller has checked the path. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isCommitId, isSessionBranch, parseBranchName } from "../../domain/repository/git-ref.ts";
import { GitError } from "../port.ts";
import { runGit } from "../run.ts";

export const unknownRef = (message: string): GitError => new GitError({ code: "unknown_ref", message });

/** The object to which a full ref name points, tags peeled. Null if the ref does not exist. */
export const refTarget = (path: string, ref: string): Effect.Effect<string | null, GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["show-ref", "--verify", "--dereference", "--", ref],
      expect: [0, 1, 128],
    }),
    ({ exitCode, stdout }) =>
      exitCode === 0 ? (stdout.toString("utf8").trimEnd().split("\n").at(-1)?.slice(0, 40) ?? null) : null,
  );

/** The ref of what an earlier version saved of a session. */
export const oldSaveRef = (sessionId: string): string => `refs/wip/${sessionId}`;

/** Deletes a ref. Idempotent. */
export const deleteRef = (path: string, ref: string): Effect.Effect<void, GitError> =>
  Effect.asVoid(runGit({ repository: path, args: ["update-ref", "-d", ref] }));

export const isCommit = (path: string, object: string): Effect.Effect<boolean, GitError> =>
  Effect.map(
    runGit({ repository: path, args: ["cat-file", "-t", object], expect: [0, 128] }),
    ({ stdout }) => stdout.toString("utf8").trim() === "commit",
  );

/**
 * The branch's tip. Null if the branch does not exist, or the name is not valid. Git replaces a branch's file in one rename, so the
 * file is either absent or whole. Reading it takes no process. Git answers for branches without a file, which are packed or absent.
 */
export const branchTip = Effect.fnUntraced(function* (path: string, branch: string) {
  if (Result.isFailure(parseBranchName(branch))) return null;
  const ref = `refs/heads/${branch}`;
  const file = yield* Effect.promise(() => readFile(join(path, ref), "utf8").catch(() => ""));
  const tip = file.trimEnd();
  return isCommitId(tip) ? tip : yield* refTarget(path, ref);
});

/** The first of the sorted names that can be asked for and are not a session's. */
export const firstBranches = (names: readonly string[], limit: number): readonly string[] =>
  names.filter((name) => Result.isSuccess(parseBranchName(name)) && !isSessionBranch(name)).slice(0, limit);

/** `branches` of git/port.ts. */
export const branchNames = (path: string, limit: number): Effect.Effect<readonly string[], GitError> =>
  Effect.map(
    runGit({ repository: path, args: ["for-each-ref", "--format=%(refname:strip=2)", "refs/heads/"] }),
    ({ stdout }) => firstBranches(stdout.toString("utf8").split("\n"), limit),
  );

/** Fails unless a branch can have this name and begin at this commit. */
export const checkNewBranch = Effect.fnUntraced(function* (branch: string, commit: string) {
  const name = parseBranchName(branch);
  if (Result.isFailure(name)) return yield* unknownRef(name.failure.message);
  if (!isCommitId(commit)) return yield* unknownRef("A branch must start at a full commit id.");
});

export const branchTaken = (branch: string, tip: string): GitError =>
  new GitError({
    code: "branch_conflict",
    message: `The branch ${branch} already exists at another commit (${tip.slice(0, 12)}).`,
  });
