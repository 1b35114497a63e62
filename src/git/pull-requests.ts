/** The port to pull requests: what a code host shows beside our change requests (api.md 2, `pull_requests`). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { GitError, type Repository } from "./port.ts";

/** A pull request as the code host has it. */
export interface PullRequest {
  readonly number: number;
  /** Where a person finds it. */
  readonly url: string;
  readonly status: "open" | "merged" | "closed";
  /** The tip of its head branch; of an ended one as it was then. */
  readonly head: string;
  readonly baseRef: string;
  readonly body: string;
  /** The commit by which the base branch has it; null where it has not. */
  readonly mergeCommit: string | null;
}

export interface PullRequestsPort {
  /** Those of a head branch, whatever became of them, newest first. */
  readonly ofHead: (
    repository: Repository,
    headRef: string,
  ) => Effect.Effect<readonly PullRequest[], GitError>;
  /** Those that are open, a few hundred at most; it costs nothing where nothing changed. */
  readonly open: (repository: Repository) => Effect.Effect<readonly PullRequest[], GitError>;
  /** One by number; null where there is none. */
  readonly get: (repository: Repository, number: number) => Effect.Effect<PullRequest | null, GitError>;
  /** Opens one. Null where the host makes none: it has one of this head already, or there is nothing in it. */
  readonly create: (
    repository: Repository,
    request: {
      readonly headRef: string;
      readonly baseRef: string;
      readonly title: string;
      readonly body: string;
    },
  ) => Effect.Effect<PullRequest | null, GitError>;
  /** Closes it, where it is open. @returns it as it is then. */
  readonly close: (repository: Repository, number: number) => Effect.Effect<PullRequest | null, GitError>;
  /** What the base branch had before a merge by the host. */
  readonly baseOf: (repository: Repository, mergeCommit: string) => Effect.Effect<string | null, GitError>;
}

const none = Effect.fail(
  new GitError({ code: "unknown_repository", message: "This repository is not on a code host." }),
);

/** Without a code host there are none. */
export const PullRequests = Context.Reference<PullRequestsPort>("platform/git/PullRequests", {
  defaultValue: () => ({
    ofHead: () => none,
    open: () => none,
    get: () => none,
    create: () => none,
    close: () => none,
    baseOf: () => none,
  }),
});
