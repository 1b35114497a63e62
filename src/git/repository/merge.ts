/**
 * Merging in a bare repository, without a work tree (api.md 6: by compare-and-swap on the branch's tip).
 *
 * Before the ref moves, a merge only writes loose objects that nothing points to: a crash before that changes nothing,
 * and the swap of one ref is atomic. If the tip moved meanwhile, the merge is discarded and computed again.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { isCommitId } from "../../domain/repository/git-ref.ts";
import { findMergeBase, mergeTrees } from "./compare.ts";
import { authoredIdentity, PLATFORM, platformIdentity } from "../identity.ts";
import { GitError, type MergeResult, type MergeRequest } from "../port.ts";
import { branchTip, isCommit, unknownRef } from "./refs.ts";
import { runGit } from "../run.ts";

/** Moves the branch. @returns false if it was no longer at `from`. */
export type Swap = (
  branch: string,
  move: { readonly from: string; readonly to: string },
) => Effect.Effect<boolean, GitError>;

/** Swaps a branch of the repository itself. */
export const swapIn = (path: string): Swap =>
  Effect.fnUntraced(function* (branch, { from, to }) {
    const update = yield* Effect.result(
      runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, to, from] }),
    );
    if (Result.isSuccess(update)) return true;
    // Git's answer may differ from the effect, so the ref itself is read (threats.md G12).
    const tip = yield* branchTip(path, branch);
    if (tip === from) return yield* update.failure;
    return tip === to;
  });

const readTree = (path: string, commit: string): Effect.Effect<string, GitError> =>
  Effect.map(runGit({ repository: path, args: ["rev-parse", `${commit}^{tree}`] }), ({ stdout }) =>
    stdout.toString("utf8").trim(),
  );

const readAuthor = Effect.fnUntraced(function* (path: string, commit: string) {
  const { stdout } = yield* runGit({ repository: path, args: ["show", "-s", "--format=%an%x00%ae", commit] });
  const [name = "", email = ""] = stdout.toString("utf8").trimEnd().split("\0");
  return name === "" ? PLATFORM : { name, email };
});

/**
 * The branch's new commit: the head itself if the branch has no commits of its own, otherwise a new merge commit. With `squash` always
 * a new one, on the branch alone. The tip itself if that would change nothing.
 */
const mergedCommit = Effect.fnUntraced(function* (
  path: string,
  sides: { readonly mergeBase: string; readonly base: string; readonly head: string },
  { message, at, squash }: MergeRequest,
) {
  const { mergeBase, base, head } = sides;
  if (mergeBase === base && squash !== true) return { commit: head, conflicts: [] };
  const { tree, conflicts } = yield* mergeTrees({ path, base, head });
  if (tree === null) return { commit: null, conflicts };
  if (squash === true && tree === (yield* readTree(path, base))) return { commit: base, conflicts };
  const { stdout } = yield* runGit({
    repository: path,
    args: ["commit-tree", tree, "-p", base, ...(squash === true ? [] : ["-p", head]), "-F", "-"],
    stdin: message,
    environment: squash === true ? authoredIdentity(yield* readAuthor(path, head), at) : platformIdentity(at),
  });
  return { commit: stdout.toString("utf8").trim(), conflicts };
});

/** See `GitBackend.hasChanges`. */
export const hasChanges = Effect.fnUntraced(function* (
  path: string,
  { branch, head }: Pick<MergeRequest, "branch" | "head">,
): Effect.fn.Return<string | null, GitError> {
  const base = yield* branchTip(path, branch);
  if (base === null || !isCommitId(head) || !(yield* isCommit(path, head))) return null;
  if ((yield* findMergeBase({ path, base, head })) === null) return null;
  const { tree } = yield* mergeTrees({ path, base, head });
  return tree !== null && tree === (yield* readTree(path, base)) ? base : null;
});

/** One attempt at the current tip. @returns null if the tip moved meanwhile. */
const attempt = Effect.fnUntraced(function* (path: string, request: MergeRequest, swap: Swap) {
  const { branch, head } = request;
  const base = yield* branchTip(path, branch);
  if (base === null) return yield* unknownRef(`Branch ${branch} not found.`);
  const mergeBase = yield* findMergeBase({ path, base, head });
  if (mergeBase === head) return { outcome: "contained", base } satisfies MergeResult;
  if (mergeBase === null) return { outcome: "conflict", base, paths: [] } satisfies MergeResult;
  const { commit, conflicts } = yield* mergedCommit(path, { mergeBase, base, head }, request);
  if (commit === null) return { outcome: "conflict", base, paths: conflicts } satisfies MergeResult;
  if (commit === base) return { outcome: "contained", base } satisfies MergeResult;
  return (yield* swap(branch, { from: base, to: commit }))
    ? ({ outcome: "merged", base, commit } satisfies MergeResult)
    : null;
});

interface Merging {
  readonly attempts: number;
  readonly swap: Swap;
  /** Runs before each attempt and updates the branch's tip. */
  readonly refresh?: Effect.Effect<unknown, GitError>;
}

/** See `GitBackend.merge`. */
export const mergeInto = Effect.fnUntraced(function* (
  path: string,
  request: MergeRequest,
  { attempts, swap, refresh = Effect.void }: Merging,
): Effect.fn.Return<MergeResult, GitError> {
  const { branch, head } = request;
  yield* refresh;
  if (!isCommitId(head) || !(yield* isCommit(path, head))) {
    return yield* unknownRef(`Commit ${head} not found.`);
  }
  for (let left = attempts; left > 0; left -= 1) {
    const merge = yield* attempt(path, request, swap);
    if (merge !== null) return merge;
    yield* refresh;
  }
  return yield* new GitError({
    code: "ref_moved",
    message: `${branch} changed ${attempts} times during the merge. Try again.`,
  });
});
