/**
 * The port to a project's repository, wherever it is kept: a bare repository in the data directory (`hosted`), any git
 * server, or a code host with an API. One backend serves one kind; `git/backends.ts` selects it by the project's
 * repository kind.
 *
 * Invariants of every backend (test/conformance/git/git.ts):
 *  G1 A session branch is created at exactly the resolved commit. If it exists at the same tip, that is success; at
 *     another tip, it is `branch_conflict` (threats.md G11).
 *  G2 Names come from `domain/repository/git-ref.ts` and never reach git as an option (G01).
 *  G3 Reading files follows no symlink, enters no submodule, and stops at `maxBytes` (M14 to M16).
 *  G4 A merge moves one branch, from the tip for which it was computed to a commit that contains both sides, or it
 *     moves nothing.
 *  G5 No credential appears in an argument, an error or a file of the repository (G04, G05).
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { GIT_FAILURE_CODES } from "../domain/repository/git-failure.ts";
import type { Upstream } from "../domain/repository/repository-credential.ts";

/** An error of a repository, as people see it: without credentials, and without paths of this machine. */
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

export interface FileChange {
  readonly path: string;
  /** Lines. 0 for a binary file. */
  readonly additions: number;
  readonly deletions: number;
  readonly binary?: true;
  /** The path that it had. */
  readonly renamedFrom?: string;
  /** The new mode of a file that has another one since, such as `100755`. */
  readonly mode?: string;
}

/** A change request's comparison, computed without a work tree. */
export interface Comparison {
  readonly base: string;
  readonly head: string;
  readonly mergeBase: string | null;
  /** The total numbers. `commits` and `filesChanged` list only the first ones. */
  readonly commitsTotal: number;
  readonly filesTotal: number;
  /** Of all files. */
  readonly linesTotal: { readonly additions: number; readonly deletions: number };
  readonly commits: readonly CommitSummary[];
  readonly filesChanged: readonly FileChange[];
  readonly mergeable: boolean;
  readonly conflicts: readonly string[];
}

export interface MergeRequest {
  /** The branch that receives the work. */
  readonly branch: string;
  /** The work: a full commit id, so that the reviewed commit is the one that is merged. */
  readonly head: string;
  /** The message of the merge commit, if one is needed. */
  readonly message: string;
  /** The date of the merge commit, ms since the epoch. */
  readonly at: number;
  /** The branch gets one commit with all changes, by the author of the head, in place of the work's own commits. */
  readonly squash?: true;
}

/** The result of a merge. `base` is the branch's tip before it. Only `merged` moved the branch. */
export type MergeResult =
  | {
      readonly outcome: "merged";
      readonly base: string;
      /** The branch's new tip: the head itself for a fast-forward, otherwise a merge commit. */
      readonly commit: string;
    }
  /** The branch already contains every commit of the head, or with `squash` every change: it was merged before, or has nothing to merge. */
  | { readonly outcome: "contained"; readonly base: string }
  /** Paths as on one of the two sides. Empty if the histories have no common commit. */
  | { readonly outcome: "conflict"; readonly base: string; readonly paths: readonly string[] };

/** A new branch with one new commit: a file at the repository's root, written over `parent`. */
export interface FileCommit {
  /** Must not exist. */
  readonly branch: string;
  /** A full commit id. All its other files stay. */
  readonly parent: string;
  /** A name without `/`. */
  readonly file: string;
  readonly content: string;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  /** ms since the epoch. */
  readonly at: number;
}

/** A file below a directory at a commit, as git stores it: no filter or attribute changed it. */
export interface TreeFile {
  /** Relative to the directory. */
  readonly path: string;
  readonly kind: "file" | "executable" | "link";
  /** The length of the content. */
  readonly size: number;
  /** Of a link: where it points. */
  readonly content: Uint8Array;
}

/** A page of the files below a directory. */
export interface TreePage {
  /** Ordered by the bytes of their paths. */
  readonly entries: readonly TreeFile[];
  /** The last path, if more files follow. Otherwise null. */
  readonly next: string | null;
}

export interface TreeRequest {
  /** A full commit id. */
  readonly commit: string;
  /** The directory. `""` and `"."` are the root. */
  readonly path: string;
  /** Continues behind this path, a page's `next`. If null, it begins with the first file. */
  readonly after: string | null;
  /** How many bytes the contents of a page may have together. At most 32 MiB: a page must fit a message between nodes. */
  readonly maxBytes: number;
}

export interface DiffRequest {
  /** Each side is a branch or a full commit id. */
  readonly base: string;
  readonly head: string;
  readonly maxBytes: number;
  /** A path as `Comparison.filesChanged` has it. Absent: all files. */
  readonly path?: string;
}

export interface ObjectIdsRequest {
  /** A full commit id. */
  readonly commit: string;
  readonly paths: readonly string[];
  /** A file that does not count. A directory, a submodule and a path without a file change nothing. Absent: none. */
  readonly without?: string;
}

export interface PathsRequest {
  /** A full commit id. */
  readonly commit: string;
  /** How many paths are named, at most. */
  readonly limit: number;
}

export interface PathList {
  readonly paths: readonly string[];
  /** How many there are. */
  readonly total: number;
}

/** A page has at most so many files, however small they are. */
export const TREE_PAGE_FILES = 4096;

/** Whether a path can name an entry of a tree: relative, and without parts that git never stores. */
export const isTreePath = (path: string): boolean =>
  path.isWellFormed() &&
  !path.includes("\0") &&
  path.split("/").every((part) => part !== "" && part !== "." && part !== "..");

/** Whether a path means the root of a tree. */
export const isRootPath = (path: string): boolean => path === "" || path === ".";

type Operation<Request extends readonly unknown[], A> = (
  repository: Repository,
  ...request: Request
) => Effect.Effect<A, GitError>;

export class GitBackend extends Context.Service<
  GitBackend,
  {
    /**
     * Creates the repository. With `importFrom` (a real path that the caller has checked, or an https URL) it gets that
     * repository's branches and tags. Without, it has one empty commit on `defaultBranch`. With `upstream` it is that
     * server's existing repository. Idempotent.
     * @returns the default branch (the requested one, otherwise the HEAD of the source, otherwise `main`), and the
     * repository's node, if its kind has one.
     */
    readonly create: (request: {
      readonly projectId: string;
      readonly importFrom: string | null;
      readonly defaultBranch: string | null;
      readonly upstream?: Upstream;
    }) => Effect.Effect<{ readonly defaultBranch: string; readonly nodeId?: string }, GitError>;
    /**
     * Asks a repository's server whether it accepts this credential, as `create` would, and changes nothing. Fails with
     * `refused` if it does not, and with `unavailable` if it cannot be reached.
     */
    readonly checkUpstream: (upstream: Upstream) => Effect.Effect<void, GitError>;
    /**
     * Makes an existing branch the one that a plain clone checks out. `unknown_ref` if the branch does not exist,
     * `reserved_branch` for a session's branch, which `create` refuses as a default too.
     */
    readonly setDefaultBranch: Operation<[branch: string], void>;
    /** Removes the repository. Idempotent. */
    readonly remove: Operation<[], void>;
    /**
     * The commit of a branch, otherwise of a tag (peeled), otherwise a full 40-hex commit reachable from a branch.
     * Anything else, including a malformed name, is `unknown_ref` (callers that distinguish 400 from 422 call
     * `parseBaseRef` first).
     */
    readonly resolveBase: Operation<[ref: string], string>;
    /** The branch's tip. Null if the branch does not exist. */
    readonly branchTip: Operation<[branch: string], string | null>;
    /**
     * Deletes what an earlier version saved of a session as `refs/wip/<session>`, here and at the repository's server. Idempotent.
     * `refused` if the server keeps it.
     */
    readonly removeOldSave: Operation<[sessionId: string], void>;
    /** The branch's tip if it has every change of the head, as after a merge with `squash`. Null if it lacks some. */
    readonly hasChanges: Operation<[request: Pick<MergeRequest, "branch" | "head">], string | null>;
    /** Names of branches in the order of their bytes, at most `limit`. Branches of sessions are left out. */
    readonly branches: Operation<[request: { readonly limit: number }], readonly string[]>;
    /** Creates the branch at exactly that commit, create-only: G1. A missing commit is `unknown_ref`. */
    readonly createBranch: Operation<[request: { readonly branch: string; readonly commit: string }], void>;
    /**
     * Makes a commit of a person on a new branch. Nothing but that branch moves. `branch_conflict` if it exists.
     * @returns the commit.
     */
    readonly commitFile: Operation<[request: FileCommit], string>;
    /**
     * The file's bytes at a full commit id. Null if the path does not exist. `not_a_file` for a directory, a symbolic
     * link and a submodule, `file_too_large` beyond `maxBytes`.
     */
    readonly readFile: Operation<
      [request: { readonly commit: string; readonly path: string; readonly maxBytes: number }],
      Uint8Array | null
    >;
    /**
     * The commit with its whole history, as one git pack. Null if it has more than `maxBytes`. `unknown_ref` if there is no
     * such commit.
     */
    readonly pack: Operation<
      [request: { readonly commit: string; readonly maxBytes: number }],
      Uint8Array | null
    >;
    /**
     * The git object id of each path at a full commit id: of a file or link its blob, of a directory its tree, of `""` and
     * `"."` the root tree. A tree's id changes with the content, mode or name of any file below it. Null for a path that
     * does not exist, is a submodule, or has an empty part, `.`, `..` or NUL. `unknown_ref` if there is no such commit.
     * With `without`, the ids are those of the commit without that file, as git would compute them.
     */
    readonly objectIds: Operation<[request: ObjectIdsRequest], readonly (string | null)[]>;
    /**
     * A page of the files below a directory at a full commit id. Submodules are left out, links are not followed. A page
     * ends before its contents exceed `maxBytes`; a larger file is `file_too_large`. `not_a_file` if a file's path is not
     * UTF-8. Null if the path is not a directory. `unknown_ref` if there is no such commit.
     */
    readonly readTree: Operation<[request: TreeRequest], TreePage | null>;
    /**
     * The paths of all files at a full commit id, in the order of their bytes. Submodules and paths that are not UTF-8 are
     * left out. `unknown_ref` if there is no such commit.
     */
    readonly paths: Operation<[request: PathsRequest], PathList>;
    /** Either side is a branch or a full commit id. */
    readonly compare: Operation<[request: { readonly base: string; readonly head: string }], Comparison>;
    /**
     * The unified diff from merge base to head, cut at `maxBytes` with a line that says so. With `path`, of this file
     * alone, by its path in the head; of a renamed file it has the rename. Empty if the path did not change.
     */
    readonly diff: Operation<[request: DiffRequest], string>;
    /**
     * Fast-forwards the branch to the head, otherwise moves it to a merge commit by the platform: G4. If the branch
     * moves meanwhile, the merge is computed again for its new tip. `ref_moved` if that happens too often,
     * `unknown_ref` if branch or commit does not exist.
     */
    readonly merge: Operation<[request: MergeRequest], MergeResult>;
  }
>()("platform/git/GitBackend") {}
