/**
 * The operator's removal of session branches that are merged into a given branch (api.md 6, `platform branches prune
 * --merged`). The service itself never removes a session branch. This works on hosted repositories, beside a running
 * service: a ref changes by git's own compare-and-swap.
 *
 *  B1 A branch is removed only if the other branch contains its tip, or if exactly this tip was merged as one commit. It is
 *     removed only at that tip: later pushes stay, and no work is lost.
 */
import * as Effect from "effect/Effect";
import { GitError, type Repository } from "../port.ts";
import { branchTip } from "./refs.ts";
import { existingRepository } from "./repository-path.ts";
import { runGit } from "../run.ts";

export interface MergedBranch {
  readonly branch: string;
  /** The branch that must contain all of its commits. */
  readonly into: string;
  /** The head of its merged change request. After a squash the other branch has its changes and not its commits. */
  readonly mergedHead: string | null;
  /** Report what would be removed, and change nothing. */
  readonly isDryRun: boolean;
}

/** `unmerged`: it has a commit that the other branch lacks. */
export type Removal = "removed" | "absent" | "unmerged";

/** @param directory of the hosted repositories */
export const removeMergedBranch = Effect.fnUntraced(function* (
  directory: string,
  repository: Repository,
  { branch, into, mergedHead, isDryRun }: MergedBranch,
): Effect.fn.Return<Removal, GitError> {
  const path = yield* existingRepository(directory, repository);
  const tip = yield* branchTip(path, branch);
  if (tip === null) return "absent";
  const target = yield* branchTip(path, into);
  if (target === null) return "unmerged";
  const output = yield* runGit({
    repository: path,
    args: ["merge-base", "--is-ancestor", tip, target],
    expect: [0, 1],
  });
  if (output.exitCode !== 0 && tip !== mergedHead) return "unmerged";
  if (!isDryRun) yield* runGit({ repository: path, args: ["update-ref", "-d", `refs/heads/${branch}`, tip] });
  return "removed";
});
