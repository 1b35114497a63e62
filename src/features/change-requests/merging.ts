/**
 * How a change request ends. Its actor merges or closes it (actor.ts). A caller waits for that and hears what came of it; the actor
 * goes on if the caller leaves.
 */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { ActorNotFound } from "../../ground/mailbox.ts";
import { initialCommit } from "../../domain/repository/git-ref.ts";
import type { MergeRefusal } from "../../domain/repository/merge.ts";
import { GitBackend, GitError } from "../../git/port.ts";
import type { ChangeRequestEvent } from "../../machines/change-request.ts";
import { Actors } from "../../services/actors.ts";
import { auditedAsk, type AuditEntry } from "../../services/audit.ts";
import { Events } from "../../store/ports/events.ts";
import { Caller } from "../../http/api/access.ts";
import { Conflict, notFound, Unavailable, Unprocessable } from "../../http/api/errors.ts";
import { refGone } from "../../http/answers/refusals.ts";
import { ChangeRequests, type ChangeRequest } from "./ports/change-requests.ts";
import { Remarks } from "./ports/remarks.ts";
import { presentHead } from "./review.ts";
import { whyNotCounted } from "./rules/verdicts.ts";

type Which = Pick<ChangeRequest, "id" | "projectId">;

/** Reads the actor's state at least this often: a signal may be lost, and the caller must learn about an outage. */
const LOOK_AGAIN = "2 seconds";

/**
 * The actor's snapshot after the current merge. The actor owns the merge: it continues if the caller leaves, and on another
 * node if this one dies.
 */
const snapshotAfterMerge = Effect.fnUntraced(function* ({ id, projectId }: Which) {
  const { changed } = yield* Events;
  const { memory } = yield* ChangeRequests;
  const look = Effect.gen(function* () {
    // Listens before it reads, so that no change between the two is missed.
    const news = yield* Effect.forkScoped(changed(projectId), { startImmediately: true });
    const loaded = yield* memory.load(id);
    if (loaded === null) return yield* new ActorNotFound({ actorId: id });
    if (loaded.snapshot.state === "merging")
      yield* Effect.raceFirst(Effect.sleep(LOOK_AGAIN), Fiber.join(news));
    return loaded.snapshot;
  });
  return yield* Effect.repeat(Effect.scoped(look), { until: ({ state }) => state !== "merging" });
});

type MergeAnswer =
  | { readonly outcome: "merged" }
  | { readonly outcome: "refused"; readonly refusal: MergeRefusal }
  /** It was merged or closed before it was asked. */
  | { readonly outcome: "not_open" };

const mergeAnswer = (answer: MergeAnswer): MergeAnswer => answer;

/** A change request needs no slot, so `CapReached` would be a defect. */
const tell = Effect.fnUntraced(function* ({ id }: Which, event: ChangeRequestEvent) {
  const actors = yield* Actors;
  return yield* Effect.catchTag(actors.changeRequest(id, event), "CapReached", Effect.die);
});

/** Merges a request and waits for the result. If a merge is already under way, it waits for that one, then asks again if needed. */
export const askToMerge = Effect.fnUntraced(function* (
  request: Which,
  wish: { readonly by: string; readonly message: string | null; readonly squash?: boolean },
) {
  const ask = Effect.gen(function* () {
    const { accepted, snapshot } = yield* tell(request, { type: "merge.requested", ...wish });
    if (snapshot.state !== "merging") return mergeAnswer({ outcome: "not_open" });
    const { state, context } = yield* snapshotAfterMerge(request);
    if (state === "merged") return mergeAnswer({ outcome: "merged" });
    if (accepted && context.refusal !== null)
      return mergeAnswer({ outcome: "refused", refusal: context.refusal });
    return state === "open" ? null : mergeAnswer({ outcome: "not_open" });
  });
  const answer = yield* Effect.repeat(ask, { until: (result) => result !== null });
  return answer ?? mergeAnswer({ outcome: "not_open" });
});

type CloseAnswer =
  | { readonly outcome: "closed" | "merged" | "merging" }
  /** Git could not be asked whether it has merged the request. */
  | { readonly outcome: "refused"; readonly refusal: MergeRefusal };

/** Closes a request. `merging`: a merge is under way, and its result decides. */
export const askToClose = Effect.fnUntraced(function* (request: Which) {
  const { accepted, snapshot } = yield* tell(request, { type: "close.requested" });
  const isClosing = snapshot.state === "merging" && (accepted || snapshot.context.aim === "close");
  const { state, context } = isClosing ? yield* snapshotAfterMerge(request) : snapshot;
  const answer: CloseAnswer =
    state === "open"
      ? { outcome: "refused", refusal: context.refusal ?? { because: "no_changes" } }
      : { outcome: state };
  return answer;
});

/** The first few paths; the details list all of them. */
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
  const shortList = paths.slice(0, PATHS_TOLD).join(", ");
  const more = paths.length > PATHS_TOLD ? ` and ${paths.length - PATHS_TOLD} more` : "";
  const where = paths.length === 0 ? "" : ` in ${shortList}${more}`;
  return new Conflict({
    error: `The branch ${headRef} conflicts with ${baseRef}${where}. Merge ${baseRef} into the branch, resolve the conflicts, push, and try again.`,
    code: "merge_conflict",
    details: { paths },
  });
};

/** Which approvals do not count, and why. */
const uncountedText = Effect.fnUntraced(function* (request: ChangeRequest) {
  const head = yield* presentHead(request).pipe(Effect.orElseSucceed(() => null));
  if (head === null) return "";
  const subject = { head, createdBy: request.createdBy };
  return (yield* (yield* Remarks).verdicts(request.id))
    .flatMap((verdict) => {
      const why = verdict.kind === "approval" ? whyNotCounted(verdict, subject) : null;
      return why === null ? [] : [` The approval of ${verdict.name} does not count: ${why}.`];
    })
    .join("");
});

const approvalsMissing = Effect.fnUntraced(function* (
  request: ChangeRequest,
  { required, given }: { readonly required: number; readonly given: number },
) {
  const { number, headRef } = request;
  const approvals = required === 1 ? "an approval" : `${required} approvals`;
  return new Conflict({
    error: `Change request #${number} needs ${approvals} of the newest commit of ${headRef}, and has ${given}. Who opened it cannot approve it, and each push needs new approvals.${yield* uncountedText(request)}`,
    code: "approvals_missing",
    details: { required, given },
  });
});

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
    case "approvals":
      return yield* yield* approvalsMissing(request, refusal);
    case "git":
      return yield* mergeFailed(new GitError(refusal));
  }
});

const mergeUnfinished = ({ number }: ChangeRequest): Conflict =>
  new Conflict({
    error: `Change request #${number} is being merged. Ask again when the merge has ended.`,
    code: "merge_unfinished",
  });

const reread = Effect.fnUntraced(function* ({ projectId, number }: ChangeRequest) {
  return (yield* (yield* ChangeRequests).get(projectId, number)) ?? (yield* notFound("change request"));
});

const auditRow = (
  action: "change_request.merge" | "change_request.close",
  { number, headRef, baseRef }: ChangeRequest,
): AuditEntry => ({
  action,
  target: `#${number}`,
  changes: { number, head_ref: headRef, base_ref: baseRef },
});

/** Why a request did not end as it was asked to, as the audit record says it. */
const notEnded =
  (status: "merged" | "closed") =>
  (answer: MergeAnswer | CloseAnswer): string | null => {
    if (answer.outcome === "refused") return answer.refusal.because;
    return answer.outcome === status ? null : answer.outcome;
  };

/** Merges an open request. The merge goes on when the caller leaves. */
export const mergeRequest = Effect.fnUntraced(function* (
  request: ChangeRequest,
  { message = null, squash = false }: { readonly message?: string | null; readonly squash?: boolean },
) {
  const { user } = yield* Caller;
  const answer = yield* askToMerge(request, { by: user.id, message, ...(squash && { squash }) }).pipe(
    auditedAsk(auditRow("change_request.merge", request), notEnded("merged")),
  );
  if (answer.outcome === "refused") return yield* refusedMerge(request, answer.refusal);
  const after = yield* reread(request);
  return answer.outcome === "merged" ? after : yield* notOpen(after);
});

/** Closes a request; a closed one stays as it is. */
export const closeRequest = Effect.fnUntraced(function* (request: ChangeRequest) {
  const closing = askToClose(request);
  const answer = yield* request.status === "open"
    ? closing.pipe(auditedAsk(auditRow("change_request.close", request), notEnded("closed")))
    : closing;
  if (answer.outcome === "refused") return yield* refusedMerge(request, answer.refusal);
  if (answer.outcome === "merging") return yield* mergeUnfinished(request);
  const after = yield* reread(request);
  return answer.outcome === "merged" ? yield* notOpen(after) : after;
});
