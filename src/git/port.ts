/**
 * The port to a project's repository, whatever keeps it: a bare repository in the data directory (`hosted`), any git
 * server, a code host's API. One backend serves one kind; `git/backends.ts` picks by the project's repository kind.
 *
 * Invariants every backend keeps (test/conformance/git.ts):
 *  G1 a session branch is made from exactly the commit that was resolved; the same tip again is success, another is
 *     `branch_conflict` (threats.md G11).
 *  G2 names come from `domain/git-ref.ts` and never reach git as an option (G01).
 *  G3 reading a file follows no symlink and enters no submodule, and stops at `maxBytes` (M14 to M16).
 *  G4 a merge moves one branch, from the tip it was worked out for and to a commit that has both sides, or nothing.
 *  G5 no credential occurs in an argument, an error or a file of the repository (G04, G05).
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { GIT_FAILURE_CODES } from "../domain/git-failure.ts";
import type { Upstream } from "../domain/repository-credential.ts";

/** What went wrong with a repository, as a person is told it: no credential, no path of this machine. */
export class GitError extends Schema.TaggedError<GitError>()("GitError", {
  code: Schema.Literals(GIT_FAILURE_CODES),
  message: Schema.String,
}) {}

export interface Repository {
  readonly projectId: string;
}

export interface CommitSummary {
  readonly sha: string;
  readonly subject: string;
  readonly authorName: string;
  readonly committedAt: string;
}

/** What a change request shows, computed without a work tree. */
export interface Comparison {
  readonly base: string;
  readonly head: string;
  readonly mergeBase: string | null;
  /** How many there are: `commits` and `filesChanged` list the first of them. */
  readonly commitsTotal: number;
  readonly filesTotal: number;
  readonly commits: readonly CommitSummary[];
  readonly filesChanged: readonly {
    readonly path: string;
    readonly additions: number;
    readonly deletions: number;
  }[];
  readonly mergeable: boolean;
  readonly conflicts: readonly string[];
}

export interface MergeRequest {
  /** The branch that is to have the work. */
  readonly branch: string;
  /** The work: a full commit id, so that what was looked at is what is merged. */
  readonly head: string;
  /** Message of the merge commit, if one is needed. */
  readonly message: string;
  /** Date of the merge commit, ms since the epoch. */
  readonly at: number;
}

/** What became of a merge; `base` is the branch's tip before it. Only `merged` moved anything. */
export type Merge =
  | {
      readonly outcome: "merged";
      readonly base: string;
      /** The branch's new tip: the head itself where the branch could be taken forward, else a commit over both. */
      readonly commit: string;
    }
  /** The branch has every commit of the head's: there is nothing to merge, or it was merged before. */
  | { readonly outcome: "contained"; readonly base: string }
  /** Paths as they are on one of the two sides; none where the histories have no commit in common. */
  | { readonly outcome: "conflict"; readonly base: string; readonly paths: readonly string[] };

export class GitBackend extends Context.Service<
  GitBackend,
  {
    /**
     * Makes the repository. With `importFrom` (a real path already checked by the caller, or an https URL) it takes
     * that repository's branches and tags; without, it has one empty commit on `defaultBranch`. With `upstream` it is
     * that server's repository, as it is. Idempotent.
     * @returns the default branch: the asked one, else the HEAD of where it comes from, else `main`; and the node that has
     *   the repository, where that matters.
     */
    readonly create: (request: {
      readonly projectId: string;
      readonly importFrom: string | null;
      readonly defaultBranch: string | null;
      readonly upstream?: Upstream;
    }) => Effect.Effect<{ readonly defaultBranch: string; readonly nodeId?: string }, GitError>;
    /**
     * Asks a repository's server whether it lets this credential in, as `create` would, and changes nothing: `refused` where
     * it does not, `unavailable` where it cannot be asked.
     */
    readonly checkUpstream: (upstream: Upstream) => Effect.Effect<void, GitError>;
    /**
     * Makes an existing branch the one a plain clone checks out; `unknown_ref` where there is none of that name,
     * `reserved_branch` for a session's, of which `create` makes no default branch either.
     */
    readonly setDefaultBranch: (repository: Repository, branch: string) => Effect.Effect<void, GitError>;
    /** Removes the repository; one that is not there is no error. */
    readonly remove: (repository: Repository) => Effect.Effect<void, GitError>;
    /**
     * A branch, else a tag (peeled), else a full 40-hex commit reachable from a branch → its commit; else, and for a
     * malformed name, `unknown_ref` (callers that tell 400 from 422 ask `parseBaseRef` first).
     */
    readonly resolveBase: (repository: Repository, ref: string) => Effect.Effect<string, GitError>;
    /** The branch's tip, null when there is none. */
    readonly branchTip: (repository: Repository, branch: string) => Effect.Effect<string | null, GitError>;
    /** Makes the branch at exactly that commit, create-only: G1. A commit that is not there is `unknown_ref`. */
    readonly createBranch: (
      repository: Repository,
      request: { readonly branch: string; readonly commit: string },
    ) => Effect.Effect<void, GitError>;
    /**
     * The file's bytes at a full commit id; null when there is no such path. `not_a_file` for a directory, a symbolic
     * link and a submodule, `file_too_large` beyond `maxBytes`.
     */
    readonly readFile: (
      repository: Repository,
      request: { readonly commit: string; readonly path: string; readonly maxBytes: number },
    ) => Effect.Effect<Uint8Array | null, GitError>;
    /** Either side is a branch or a full commit id. */
    readonly compare: (
      repository: Repository,
      request: { readonly base: string; readonly head: string },
    ) => Effect.Effect<Comparison, GitError>;
    /** Unified diff from merge base to head, cut at `maxBytes` with a line that says so. */
    readonly diff: (
      repository: Repository,
      request: { readonly base: string; readonly head: string; readonly maxBytes: number },
    ) => Effect.Effect<string, GitError>;
    /**
     * Takes the branch forward to the head, else to a commit of the platform's over both: G4. Where the branch moves
     * meanwhile the merge is worked out again for its new tip; `ref_moved` when it does so without end, `unknown_ref`
     * where branch or commit is not there.
     */
    readonly merge: (repository: Repository, request: MergeRequest) => Effect.Effect<Merge, GitError>;
  }
>()("platform/git/GitBackend") {}
