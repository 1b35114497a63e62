/** The port to pull requests: a code host's counterparts of our change requests (api.md 2, `pull_requests`). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { GitError, type Repository } from "./port.ts";

/** A pull request as the code host reports it. */
export interface PullRequest {
  readonly number: number;
  /** The address of its page. */
  readonly url: string;
  readonly status: "open" | "merged" | "closed";
  /** The tip of its head branch. After it has ended, the tip at that time. */
  readonly head: string;
  readonly baseRef: string;
  readonly body: string;
  /** The commit through which the base branch contains it. Null if it does not. */
  readonly mergeCommit: string | null;
}

export interface PullRequestsPort {
  /** The pull requests of a head branch, with any status, newest first. */
  readonly ofHead: (
    repository: Repository,
    headRef: string,
  ) => Effect.Effect<readonly PullRequest[], GitError>;
  /** The open pull requests, a few hundred at most. Free of cost if nothing changed. */
  readonly open: (repository: Repository) => Effect.Effect<readonly PullRequest[], GitError>;
  /** A pull request by its number. Null if it does not exist. */
  readonly get: (repository: Repository, number: number) => Effect.Effect<PullRequest | null, GitError>;
  /** Opens a pull request. Null if the host creates none: the head has one already, or contains no changes. */
  readonly create: (
    repository: Repository,
    request: {
      readonly headRef: string;
      readonly baseRef: string;
      readonly title: string;
      readonly body: string;
    },
  ) => Effect.Effect<PullRequest | null, GitError>;
  /** Closes it if it is open. @returns its state after that. */
  readonly close: (repository: Repository, number: number) => Effect.Effect<PullRequest | null, GitError>;
  /** The tip of the base branch before a merge by the host. */
  readonly firstParent: (
    repository: Repository,
    mergeCommit: string,
  ) => Effect.Effect<string | null, GitError>;
}

const none = Effect.fail(
  new GitError({ code: "unknown_repository", message: "This repository is not on a code host." }),
);

/** Without a code host the list is always empty. */
export const PullRequests = Context.Reference<PullRequestsPort>("platform/git/PullRequests", {
  defaultValue: () => ({
    ofHead: () => none,
    open: () => none,
    get: () => none,
    create: () => none,
    close: () => none,
    firstParent: () => none,
  }),
});
