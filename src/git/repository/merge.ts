/**
 * Merging in a bare repository, without a work tree (api.md 6: by compare-and-swap on the branch's tip).
 *
 * Everything a merge makes before the ref moves is loose objects that nothing points to: whoever dies before has changed
 * nothing, and the swap of one ref is all or nothing. What was worked out for a tip that is no longer the tip is thrown
 * away and worked out again.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { isCommitId } from "../../domain/git-ref.ts";
import { mergeBaseOf, mergeTrees } from "./compare.ts";
import { platformIdentity } from "../identity.ts";
import { GitError, type Merge, type MergeRequest } from "../port.ts";
import { branchTip, isCommit, unknownRef } from "./refs.ts";
import { runGit } from "../run.ts";

/** Moves the branch. @returns false where it was not at `from` any more. */
export type Swap = (
  branch: string,
  move: { readonly from: string; readonly to: string },
) => Effect.Effect<boolean, GitError>;

/** The swap of a branch of the repository's own. */
export const swapIn = (path: string): Swap =>
  Effect.fnUntraced(function* (branch, { from, to }) {
    const swapped = yield* Effect.result(
      runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, to, from] }),
    );
    if (Result.isSuccess(swapped)) return true;
    // What git says of it is not what it did: the ref itself is asked (threats.md G12).
    const tip = yield* branchTip(path, branch);
    if (tip === from) return yield* swapped.failure;
    return tip === to;
  });

/** The commit the branch goes to: the head itself where the branch has nothing of its own, else a new one over both. */
const mergedCommit = Effect.fnUntraced(function* (
  path: string,
  sides: { readonly mergeBase: string; readonly base: string; readonly head: string },
  { message, at }: MergeRequest,
) {
  const { mergeBase, base, head } = sides;
  if (mergeBase === base) return { commit: head, conflicts: [] };
  const { tree, conflicts } = yield* mergeTrees({ path, base, head });
  if (tree === null) return { commit: null, conflicts };
  const { stdout } = yield* runGit({
    repository: path,
    args: ["commit-tree", tree, "-p", base, "-p", head, "-F", "-"],
    stdin: message,
    environment: platformIdentity(at),
  });
  return { commit: stdout.toString("utf8").trim(), conflicts };
});

/** One try against the tip as it is now. @returns null where the tip moved meanwhile. */
const attempt = Effect.fnUntraced(function* (path: string, request: MergeRequest, swap: Swap) {
  const { branch, head } = request;
  const base = yield* branchTip(path, branch);
  if (base === null) return yield* unknownRef(`Branch ${branch} not found.`);
  const mergeBase = yield* mergeBaseOf({ path, base, head });
  if (mergeBase === head) return { outcome: "contained", base } satisfies Merge;
  if (mergeBase === null) return { outcome: "conflict", base, paths: [] } satisfies Merge;
  const { commit, conflicts } = yield* mergedCommit(path, { mergeBase, base, head }, request);
  if (commit === null) return { outcome: "conflict", base, paths: conflicts } satisfies Merge;
  return (yield* swap(branch, { from: base, to: commit }))
    ? ({ outcome: "merged", base, commit } satisfies Merge)
    : null;
});

interface Merging {
  readonly attempts: number;
  readonly swap: Swap;
  /** Run before each attempt: after it the branch's tip is as it is now. */
  readonly refresh?: Effect.Effect<unknown, GitError>;
}

/** See `GitBackend.merge`. */
export const mergeInto = Effect.fnUntraced(function* (
  path: string,
  request: MergeRequest,
  { attempts, swap, refresh = Effect.void }: Merging,
): Effect.fn.Return<Merge, GitError> {
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
