/** The values that a merge is made of. */
import type { GitFailureCode } from "./git-failure.ts";

/** The two commits that a merge brings together. */
export interface MergeSides {
  readonly base: string;
  readonly head: string;
}

/** Why a merge was refused. */
export type MergeRefusal =
  /** The base branch has every commit of the head branch. */
  | { readonly because: "no_changes" }
  /** Both sides changed these paths; none where the histories have no commit in common. */
  | { readonly because: "conflict"; readonly paths: readonly string[] }
  | { readonly because: "git"; readonly code: GitFailureCode; readonly message: string };
