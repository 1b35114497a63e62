/** How a change request ends: its actor merges or closes it (actors/change-request.ts), and the answer says what came of it. */
import * as Effect from "effect/Effect";
import type { MergeRefusal } from "../../domain/merge.ts";
import { initialCommit } from "../../domain/git-ref.ts";
import { GitBackend, GitError } from "../../git/port.ts";
import { askedFor, type Said } from "../../services/audit.ts";
import { askToClose, askToMerge, type CloseAnswer, type MergeAnswer } from "../../services/merging.ts";
import { ChangeRequests, type ChangeRequest } from "../../store/ports/change-requests.ts";
import { Caller } from "../api/access.ts";
import { Conflict, notFound, Unavailable, Unprocessable } from "../api/errors.ts";
import { refGone } from "../refusals.ts";

/** As many paths as a sentence bears; all of them are in the details. */
const PATHS_TOLD = 5;

const notOpen = ({ number, status }: ChangeRequest): Conflict =>
  new Conflict({ error: `Change request #${number} is already ${status}.`, code: "not_open" });

const noChanges = ({ headRef, baseRef }: ChangeRequest): Unprocessable =>
  new Unprocessable({
    error: `There is nothing to merge. The branch ${headRef} has no commits that are not on ${baseRef}.`,
    code: "no_changes",
  });

/** The sides have no common commit. In a new project, the pushed work can take the place of its empty commit. */
const unrelatedHistories = Effect.fnUntraced(function* ({ projectId, headRef, baseRef }: ChangeRequest) {
  const base = yield* (yield* GitBackend)
    .branchTip({ projectId }, baseRef)
    .pipe(Effect.orElseSucceed(() => null));
  const remedy =
    base === initialCommit
      ? `${baseRef} of this project is still empty. To make ${headRef} its content: git push --force origin ${headRef}:${baseRef}`
      : `Make the commits again on top of ${baseRef} (git rebase --root --onto origin/${baseRef}), or join the histories once (git merge --allow-unrelated-histories origin/${baseRef}), push, and try again.`;
  return new Conflict({
    error: `${headRef} and ${baseRef} have unrelated histories: they have no commit in common. ${remedy}`,
    code: "merge_conflict",
    details: { paths: [] },
  });
});

const mergeConflict = ({ headRef, baseRef }: ChangeRequest, paths: readonly string[]): Conflict => {
  const told = paths.slice(0, PATHS_TOLD).join(", ");
  const more = paths.length > PATHS_TOLD ? ` and ${paths.length - PATHS_TOLD} more` : "";
  const where = paths.length === 0 ? "" : ` in ${told}${more}`;
  return new Conflict({
    error: `The branch ${headRef} conflicts with ${baseRef}${where}. Merge ${baseRef} into the branch, resolve the conflicts, push, and try again.`,
    code: "merge_conflict",
    details: { paths },
  });
};

const mergeFailed = (error: GitError) =>
  error.code === "ref_moved" ? new Unavailable({ error: error.message, code: "busy" }) : refGone(error);

const refusedMerge = Effect.fnUntraced(function* (request: ChangeRequest, refusal: MergeRefusal) {
  switch (refusal.because) {
    case "no_changes":
      return yield* noChanges(request);
    case "conflict":
      return yield* refusal.paths.length > 0
        ? mergeConflict(request, refusal.paths)
        : yield* unrelatedHistories(request);
    case "git":
      return yield* mergeFailed(new GitError(refusal));
  }
});

const unfinished = ({ number }: ChangeRequest): Conflict =>
  new Conflict({
    error: `Change request #${number} is being merged. Ask again when the merge has ended.`,
    code: "merge_unfinished",
  });

const reread = Effect.fnUntraced(function* ({ projectId, number }: ChangeRequest) {
  return (yield* (yield* ChangeRequests).get(projectId, number)) ?? (yield* notFound("change request"));
});

const rowOf = (
  action: "change_request.merge" | "change_request.close",
  { number, headRef, baseRef }: ChangeRequest,
): Said => ({ action, target: `#${number}`, changes: { number, head_ref: headRef, base_ref: baseRef } });

/** Why a request did not end as it was asked to, as the audit record says it. */
const notEnded =
  (wanted: "merged" | "closed") =>
  (answer: MergeAnswer | CloseAnswer): string | null => {
    if (answer.outcome === "refused") return answer.refusal.because;
    return answer.outcome === wanted ? null : answer.outcome;
  };

/** Merges an open request. The merge goes on when the caller leaves. */
export const mergeRequest = Effect.fnUntraced(function* (
  request: ChangeRequest,
  message: string | undefined,
) {
  const { user } = yield* Caller;
  const answer = yield* askToMerge(request, { by: user.id, message: message ?? null }).pipe(
    askedFor(rowOf("change_request.merge", request), notEnded("merged")),
  );
  if (answer.outcome === "refused") return yield* refusedMerge(request, answer.refusal);
  const merged = yield* reread(request);
  return answer.outcome === "merged" ? merged : yield* notOpen(merged);
});

/** Closes a request; a closed one stays as it is. */
export const closeRequest = Effect.fnUntraced(function* (request: ChangeRequest) {
  const asked = askToClose(request);
  const answer = yield* request.status === "open"
    ? asked.pipe(askedFor(rowOf("change_request.close", request), notEnded("closed")))
    : asked;
  if (answer.outcome === "refused") return yield* refusedMerge(request, answer.refusal);
  if (answer.outcome === "merging") return yield* unfinished(request);
  const ended = yield* reread(request);
  return answer.outcome === "merged" ? yield* notOpen(ended) : ended;
});
