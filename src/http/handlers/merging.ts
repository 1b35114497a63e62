/**
 * How a change request ends: merged or closed (api.md 6; spec 1: work reaches the default branch through a merge alone).
 *
 * A merge is four steps, in this order, and may die after each:
 *  K1 the commits it is about to bring together are noted in the row;
 *  K2 git merges them, by compare-and-swap on the branch's tip;
 *  K3 the manifest is read again: a merge may bring triggers;
 *  K4 the row says `merged`, in one transaction with its event; open requests are looked at, since their base moved.
 * Nobody takes up what died; performing it again does. A head that the base branch has already, and that K1 noted, was
 * merged by this request: K3 and K4 are made up for. A head that it has and that nobody noted has no commit of its own.
 * So a row that says `merged` is true, and the manifest in force is no older.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { RequestBranches } from "../../duties/change-requests.ts";
import { Manifests } from "../../duties/manifests.ts";
import { PullRequestDuty } from "../../duties/pull-requests.ts";
import { GitBackend, type GitError } from "../../git/port.ts";
import { ChangeRequests } from "../../store/ports/change-requests.ts";
import { Faults } from "../../store/ports/faults.ts";
import type { ChangeRequest, MergeSides, Project } from "../../store/ports/records.ts";
import { Caller } from "../api/access.ts";
import { Conflict, notFound, Unavailable, Unprocessable } from "../api/errors.ts";
import { gitFailed } from "../refusals.ts";

/** As many paths as a sentence bears; all of them are in the details. */
const PATHS_TOLD = 5;

const notOpen = ({ number, status }: ChangeRequest): Conflict =>
  new Conflict({ error: `Change request #${number} is already ${status}.`, code: "not_open" });

const noChanges = ({ headRef, baseRef }: ChangeRequest): Unprocessable =>
  new Unprocessable({
    error: `There is nothing to merge. The branch ${headRef} has no commits that are not on ${baseRef}.`,
    code: "no_changes",
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

/** A branch that was removed leaves the request, with nothing to show. */
export const refGone = (error: GitError) =>
  error.code === "unknown_ref"
    ? new Conflict({ error: `The branches cannot be compared: ${error.message}`, code: "ref_gone" })
    : gitFailed(error);

const mergeFailed = (error: GitError) =>
  error.code === "ref_moved" ? new Unavailable({ error: error.message, code: "busy" }) : refGone(error);

/** The base's tip where it has what the request's last merge was to bring in; null where it has not. */
const tipWithFormerMerge = Effect.fnUntraced(function* ({ projectId, baseRef, mergeSides }: ChangeRequest) {
  if (mergeSides === null) return null;
  const git = yield* GitBackend;
  const { commits, base } = yield* git.compare({ projectId }, { base: baseRef, head: mergeSides.head });
  return commits.length === 0 ? base : null;
});

/** K3 and K4. */
const finish = Effect.fnUntraced(function* (
  project: Project,
  { number }: ChangeRequest,
  merge: MergeSides & { readonly commit: string },
) {
  const { user } = yield* Caller;
  const faults = yield* Faults;
  faults("merge.made");
  yield* (yield* Manifests).sync(project);
  faults("merge.read");
  const now = yield* Clock.currentTimeMillis;
  const merged = yield* (yield* ChangeRequests).recordMerge(project.id, number, {
    ...merge,
    by: user.id,
    now,
  });
  yield* (yield* RequestBranches).moved(project.id);
  return merged ?? (yield* notFound("change request"));
});

/** What becomes of a request whose head the base has already. */
const finishFormer = Effect.fnUntraced(function* (project: Project, { number }: ChangeRequest) {
  // Read after git was asked: whoever merged meanwhile had noted it before.
  const request = yield* (yield* ChangeRequests).get(project.id, number);
  if (request === null) return yield* notFound("change request");
  const commit = yield* tipWithFormerMerge(request);
  if (commit === null || request.mergeSides === null) return yield* noChanges(request);
  return yield* finish(project, request, { ...request.mergeSides, commit });
});

const titleOf = ({ number, title }: ChangeRequest): string =>
  `Merge change request #${number}: ${title.replaceAll(/\s+/g, " ").trim()}`;

const mergeNow = Effect.fnUntraced(function* (
  project: Project,
  request: ChangeRequest,
  message: string | undefined,
) {
  const { number, baseRef, headRef } = request;
  const repository = { projectId: project.id };
  const git = yield* GitBackend;
  const seen = yield* git.compare(repository, { base: baseRef, head: headRef });
  if (seen.commits.length === 0) return yield* finishFormer(project, request);
  if (!seen.mergeable) return yield* mergeConflict(request, seen.conflicts);
  const { base, head } = seen;
  if (!(yield* (yield* ChangeRequests).beginMerge(project.id, number, { base, head }))) {
    const ended = yield* (yield* ChangeRequests).get(project.id, number);
    return yield* ended === null ? notFound("change request") : notOpen(ended);
  }
  (yield* Faults)("merge.noted");
  const merge = yield* git.merge(repository, {
    branch: baseRef,
    head,
    message: message ?? titleOf(request),
    at: yield* Clock.currentTimeMillis,
  });
  if (merge.outcome === "conflict") return yield* mergeConflict(request, merge.paths);
  // `contained`: another call for the same head was quicker, since the base did not have it a moment ago.
  return merge.outcome === "merged"
    ? yield* finish(project, request, { base: merge.base, head, commit: merge.commit })
    : yield* finish(project, request, { base, head, commit: merge.base });
});

/** Merges an open request. It goes through also where whoever asked leaves meanwhile. */
export const mergeRequest = Effect.fnUntraced(function* (
  project: Project,
  request: ChangeRequest,
  message: string | undefined,
) {
  if (request.status !== "open") return yield* notOpen(request);
  const merged = yield* Effect.flatMap(
    Effect.forkDetach(mergeNow(project, request, message)),
    Fiber.join,
  ).pipe(Effect.catchTag("GitError", (error) => Effect.fail(mergeFailed(error))));
  yield* (yield* PullRequestDuty).wake(project.id);
  return merged;
});

/** Closes a request; a closed one stays as it is, and what git has merged is not closed any more. */
export const closeRequest = Effect.fnUntraced(function* (request: ChangeRequest) {
  const { projectId, number } = request;
  const finished = Effect.catchTag(tipWithFormerMerge(request), "GitError", (error) =>
    error.code === "unknown_ref" ? Effect.succeed(null) : Effect.fail(gitFailed(error)),
  );
  if (request.status === "open" && (yield* finished) !== null) {
    return yield* new Conflict({
      error: `The merge of #${number} was interrupted after ${request.baseRef} was updated. Merge it again to finish.`,
      code: "merge_unfinished",
    });
  }
  const now = yield* Clock.currentTimeMillis;
  const closed = yield* (yield* ChangeRequests).close(projectId, number, now);
  if (closed === null) return yield* notFound("change request");
  yield* (yield* PullRequestDuty).wake(projectId);
  return closed.status === "merged" ? yield* notOpen(closed) : closed;
});
