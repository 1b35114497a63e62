/** A session's pushed work: the sides between which it lies, and its size, which is stored at a push and shown in lists. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { isSessionBranch } from "../../domain/repository/git-ref.ts";
import { GitBackend } from "../../git/port.ts";
import type { WrittenRef } from "../../git/server/pushed.ts";
import { ProposedWork } from "./proposed-work.ts";
import { Sessions, type Session } from "../../store/ports/sessions/sessions.ts";

/** A session's branch at a commit, in a project with this default branch. */
interface Work {
  readonly session: Pick<Session, "id" | "projectId" | "baseRef" | "baseCommit">;
  readonly defaultBranch: string;
  readonly head: string;
}

/**
 * After a squash the base branch has the changes and not the commits, so a branch that goes on has new work from the merged head on, until
 * it gets the merged commit.
 *
 * @param merged what a change request of the branch merged @returns the merged head. Null if git's merge base says where work begins
 */
export const newWorkFrom = Effect.fnUntraced(function* ({
  projectId,
  merged,
  head,
}: {
  readonly projectId: string;
  readonly merged: { readonly head: string; readonly commit: string };
  readonly head: string;
}) {
  const git = yield* GitBackend;
  const has = (commit: string) =>
    Effect.map(git.compare({ projectId }, { base: commit, head }), ({ mergeBase }) => mergeBase === commit);
  return (yield* has(merged.head)) && !(yield* has(merged.commit)) ? merged.head : null;
});

/**
 * The sides of the comparison. Null if there is nothing to compare: the session has not begun, or all of its work is merged.
 *
 * Work is new against the default branch. So the list leaves out what was merged into that branch, and what the agent
 * merged from it. A session that began from another branch is compared with the commit at which it began: the other
 * branch's commits are not its work.
 */
export const workSides = Effect.fnUntraced(function* ({ session, defaultBranch, head }: Work) {
  const { id, projectId, baseRef, baseCommit } = session;
  if (baseCommit === null) return null;
  const git = yield* GitBackend;
  const merge = yield* (yield* ProposedWork).merged(projectId, { headRef: id, baseRef: defaultBranch });
  if (merge?.head === head) return null;
  const from = merge === null ? null : yield* newWorkFrom({ projectId, merged: merge, head });
  if (from !== null) return { base: from, head };
  if (baseRef === defaultBranch) return { base: defaultBranch, head };
  const { commitsTotal } = yield* git.compare({ projectId }, { base: defaultBranch, head });
  return commitsTotal === 0 ? null : { base: baseCommit, head };
});

const BRANCHES = "refs/heads/";

/** The changes of a pushed branch against its base. */
const branchChanges = Effect.fnUntraced(function* (work: Work) {
  const { head, session } = work;
  const sides = yield* workSides(work);
  if (sides === null) return { files: 0, additions: 0, deletions: 0, head };
  const comparison = yield* (yield* GitBackend).compare({ projectId: session.projectId }, sides);
  return { files: comparison.filesTotal, ...comparison.linesTotal, head };
});

/**
 * Stores the changes of the session branches among these refs. A failure is logged: the push has succeeded, and the next one
 * has all changes again.
 */
export const noteWork = Effect.fnUntraced(function* (
  { projectId, defaultBranch }: { readonly projectId: string; readonly defaultBranch: string },
  refs: readonly WrittenRef[],
) {
  const sessions = yield* Sessions;
  for (const target of refs) {
    const id = target.ref.slice(BRANCHES.length);
    // No push deletes a session's branch.
    if (!target.ref.startsWith(BRANCHES) || !isSessionBranch(id)) continue;
    yield* Effect.gen(function* () {
      const session = yield* sessions.get(id);
      if (session?.projectId !== projectId) return;
      const changes = yield* branchChanges({ session, defaultBranch, head: target.commit });
      yield* sessions.noteChanges(id, changes, yield* Clock.currentTimeMillis);
    }).pipe(
      Effect.catch((error) => Effect.logWarning("the changes of a push are not stored", { id, error })),
    );
  }
});
