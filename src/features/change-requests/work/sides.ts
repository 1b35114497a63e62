/** Between which commits the work of a change request lies. */
import * as Effect from "effect/Effect";
import { GitBackend, type Comparison, type GitError } from "../../../git/port.ts";
import { newWorkFrom } from "../../../services/sessions/session-work.ts";
import { ChangeRequests, type ChangeRequest } from "../ports/change-requests.ts";

/** Each is a branch or a full commit id. */
interface Sides {
  readonly base: string;
  readonly head: string;
  /** Where the work begins: the base, or what an earlier request of the same branch merged. */
  readonly from: string;
}

/** The branches. After a merge they have the same content, so the merged commits are compared instead. */
const branches = ({ status, baseRef, headRef, mergeSides }: ChangeRequest) =>
  status === "merged" && mergeSides !== null ? mergeSides : { base: baseRef, head: headRef };

const present = Effect.fnUntraced(function* (request: ChangeRequest) {
  const { projectId, number: before, baseRef, headRef } = request;
  const { base, head } = branches(request);
  const former = yield* (yield* ChangeRequests).findMerged(projectId, { headRef, baseRef, before });
  const { mergeSides = null, merged = null } = former ?? {};
  if (mergeSides === null || merged === null) return { base, head, from: base };
  const from = yield* newWorkFrom({
    projectId,
    merged: { head: mergeSides.head, commit: merged.commit },
    head,
  });
  return { base, head, from: from ?? base };
});

/**
 * Reads something of the request's work. Once the branch of a squashed request is removed, git forgets its commits. Then the request
 * has the one commit that the base branch got.
 *
 * @returns what `read` answers; a git error if a side is gone
 */
export const betweenSides = Effect.fnUntraced(function* <A>(
  request: ChangeRequest,
  read: (sides: Sides) => Effect.Effect<A, GitError, GitBackend>,
) {
  const { mergeSides, merged } = request;
  return yield* Effect.flatMap(present(request), read).pipe(
    Effect.catchIf(
      (error) => error._tag === "GitError" && error.code === "unknown_ref",
      (error) =>
        mergeSides === null || merged === null
          ? Effect.fail(error)
          : read({ base: mergeSides.base, head: merged.commit, from: mergeSides.base }),
    ),
  );
});

/** What the request adds to its base branch, and whether git can merge it. */
export const compareRequest = (request: ChangeRequest) =>
  betweenSides(
    request,
    Effect.fnUntraced(function* ({ base, head, from }) {
      const git = yield* GitBackend;
      const { projectId } = request;
      const whole = yield* git.compare({ projectId }, { base, head });
      if (from === base) return whole;
      const work = yield* git.compare({ projectId }, { base: from, head });
      const { mergeable, conflicts } = whole;
      return { ...work, base: whole.base, mergeable, conflicts } satisfies Comparison;
    }),
  );

/** @returns the unified diff of the request's work, as `GitBackend.diff` cuts it */
export const diffRequest = (
  request: ChangeRequest,
  part: { readonly maxBytes: number; readonly path?: string },
) =>
  betweenSides(
    request,
    Effect.fnUntraced(function* ({ from, head }) {
      return yield* (yield* GitBackend).diff({ projectId: request.projectId }, { base: from, head, ...part });
    }),
  );
