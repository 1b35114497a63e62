/** The twin of a code host's pull requests, in memory, over any backend that has the branches. */
import * as Effect from "effect/Effect";
import { GitBackend, GitError, type Repository } from "../../../src/git/port.ts";
import type { PullRequest, PullRequestsPort } from "../../../src/git/pull-requests.ts";

/** Actions of people on the host's page. */
export interface SimulatedPulls extends PullRequestsPort {
  readonly mergeThere: (repository: Repository, number: number) => Effect.Effect<void, GitError>;
  readonly closeThere: (repository: Repository, number: number) => Effect.Effect<void, GitError>;
}

interface Pull extends PullRequest {
  readonly headRef: string;
}

export const simulatedPulls = Effect.gen(function* (): Effect.fn.Return<SimulatedPulls, never, GitBackend> {
  const git = yield* GitBackend;
  const kept = new Map<string, Map<number, Pull>>();
  const before = new Map<string, string>();

  /** Applies pushes to an open one: its head moved on, or the base now contains it. */
  const refreshed = Effect.fnUntraced(function* (repository: Repository, pull: Pull) {
    if (pull.status !== "open") return pull;
    const head = (yield* git.branchTip(repository, pull.headRef)) ?? pull.head;
    const { commits, base } = yield* git.compare(repository, { base: pull.baseRef, head });
    return commits.length > 0
      ? { ...pull, head }
      : { ...pull, head, status: "merged" as const, mergeCommit: base };
  });
  const all = Effect.fnUntraced(function* (repository: Repository) {
    const pulls = kept.get(repository.projectId) ?? new Map<number, Pull>();
    kept.set(repository.projectId, pulls);
    for (const pull of pulls.values()) pulls.set(pull.number, yield* refreshed(repository, pull));
    return pulls;
  });
  const one = (repository: Repository, number: number) =>
    Effect.map(all(repository), (pulls) => pulls.get(number) ?? null);

  const close = Effect.fnUntraced(function* (repository: Repository, number: number) {
    const pull = yield* one(repository, number);
    if (pull?.status !== "open") return pull;
    const closed: Pull = { ...pull, status: "closed" };
    kept.get(repository.projectId)?.set(number, closed);
    return closed;
  });

  return {
    ofHead: (repository, headRef) =>
      Effect.map(all(repository), (pulls) =>
        [...pulls.values()].filter((pull) => pull.headRef === headRef).toReversed(),
      ),
    open: (repository) =>
      Effect.map(all(repository), (pulls) => [...pulls.values()].filter(({ status }) => status === "open")),
    get: one,
    close,
    create: Effect.fnUntraced(function* (repository, { headRef, baseRef, body }) {
      const pulls = yield* all(repository);
      const isThere = [...pulls.values()].some((pull) => pull.headRef === headRef && pull.status === "open");
      const head = yield* git.branchTip(repository, headRef);
      if (isThere || head === null) return null;
      if ((yield* git.compare(repository, { base: baseRef, head })).commits.length === 0) return null;
      const number = pulls.size + 1;
      const url = `https://code.example.org/${repository.projectId}/pull/${number}`;
      const pull: Pull = { number, url, status: "open", head, headRef, baseRef, body, mergeCommit: null };
      pulls.set(number, pull);
      return pull;
    }),
    firstParent: (_, mergeCommit) => Effect.succeed(before.get(mergeCommit) ?? null),
    closeThere: (repository, number) => Effect.asVoid(close(repository, number)),
    mergeThere: Effect.fnUntraced(function* (repository, number) {
      const pull = yield* one(repository, number);
      if (pull === null) return;
      const { baseRef: branch, head } = pull;
      const merge = yield* git.merge(repository, { branch, head, message: "Merge", at: 0 });
      if (merge.outcome !== "merged")
        return yield* new GitError({ code: "refused", message: "It does not merge." });
      before.set(merge.commit, merge.base);
      yield* all(repository);
    }),
  };
});
