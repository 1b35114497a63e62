/** The values that a merge is made of. */
import type { GitFailureCode } from "./git-failure.ts";

/** The two commits that a merge brings together. */
export interface MergeSides {
  readonly base: string;
  readonly head: string;
}

/** How many people's approval a project may demand before a merge. */
export const APPROVALS_MAX = 10;

/** Why a merge was refused. */
export type MergeRefusal =
  /** The base branch has every commit of the head branch. */
  | { readonly because: "no_changes" }
  /** Both sides changed these paths; none where the histories have no commit in common. */
  | { readonly because: "conflict"; readonly paths: readonly string[] }
  /** Fewer people approved this head than the project demands. */
  | { readonly because: "approvals"; readonly required: number; readonly given: number }
  | { readonly because: "git"; readonly code: GitFailureCode; readonly message: string };
