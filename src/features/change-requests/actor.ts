/** Makes happen what the change request machine decides: the steps of a merge, and its pull request at the code host. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { MergeRefusal, MergeSides } from "../../domain/repository/merge.ts";
import { RequestBranches } from "../../services/triggers/request-branches.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { GitBackend, type GitError } from "../../git/port.ts";
import {
  changeRequest,
  type ChangeRequestCommand,
  type ChangeRequestEvent,
} from "../../machines/change-request.ts";
import { PullMirror } from "./pull-requests.ts";
import { ChangeRequests, type ChangeRequest } from "./ports/change-requests.ts";
import { Remarks } from "./ports/remarks.ts";
import { isApproval } from "./rules/verdicts.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Faults } from "../../store/ports/faults.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { actorLayer, type EntityOptions } from "../../actors/cluster.ts";
import { startActor, type ActorLimits, type Handlers } from "../../actors/host.ts";
import { backoff } from "../../ground/backoff.ts";

export const CHANGE_REQUEST_LIMITS: ActorLimits = {
  mailbox: 64,
  restarts: { restarts: 5, withinMs: 30_000 },
};

/** The change request entities. Their rows are opened by the endpoint. */
export const changeRequestActors = (options: EntityOptions) =>
  actorLayer(
    "changeRequest",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* ChangeRequests;
      return yield* startActor({
        id,
        machine: changeRequest,
        memory,
        handlers: yield* makeHandlers(id),
        ...CHANGE_REQUEST_LIMITS,
      });
    }),
    { ...options, again: null },
  );

const mergeRefused = (refusal: MergeRefusal, isSure: boolean): ChangeRequestEvent => ({
  type: "merge.refused",
  refusal,
  isSure,
});

/** With these git moves nothing. Whether a former try did, only the base branch tells. */
const SURE: ReadonlySet<GitError["code"]> = new Set(["unknown_ref", "ref_moved", "refused"]);

const refusedByGit = ({ code, message }: Pick<GitError, "code" | "message">, isSure: boolean) =>
  mergeRefused({ because: "git", code, message }, isSure);

const crashEvent = (reason: string) =>
  refusedByGit({ code: "git_failed", message: `the service failed: ${reason}` }, false);

/** The base branch's tip where it has the noted commits, or their changes after a squash; else null. */
const tipWith = (
  git: GitBackend["Service"],
  { projectId, baseRef }: ChangeRequest,
  { sides: { head }, squash }: { readonly sides: MergeSides; readonly squash?: true },
) =>
  git.compare({ projectId }, { base: baseRef, head }).pipe(
    Effect.flatMap(({ commits, base }) => {
      if (commits.length === 0) return Effect.succeed(base);
      return squash === true
        ? git.hasChanges({ projectId }, { branch: baseRef, head })
        : Effect.succeed(null);
    }),
    Effect.catchIf(
      ({ code }) => code === "unknown_ref",
      () => Effect.succeed(null),
    ),
  );

/** The approvals that this head lacks. Null if it has what the project demands. */
const lackingApprovals = Effect.fnUntraced(function* (
  { id, projectId, createdBy }: ChangeRequest,
  head: string,
): Effect.fn.Return<MergeRefusal | null, StoreError, Projects | Remarks> {
  const minimum = (yield* (yield* Projects).get(projectId))?.approvalsRequired ?? 0;
  if (minimum === 0) return null;
  const verdicts = yield* (yield* Remarks).verdicts(id);
  const approvals = verdicts.filter((verdict) => isApproval(verdict, { head, createdBy })).length;
  return approvals < minimum ? { because: "approvals", required: minimum, given: approvals } : null;
});

/**
 * Whether the branches can be merged, and at which commits. `former` is a merge whose outcome is unknown: if git has made it,
 * it is the request's merge, and no second one is begun.
 */
const noteSides = Effect.fnUntraced(function* (
  git: GitBackend["Service"],
  request: ChangeRequest,
  { former, squash }: Pick<Extract<ChangeRequestCommand, { type: "noteSides" }>, "former" | "squash">,
): Effect.fn.Return<ChangeRequestEvent, GitError | StoreError, Projects | Remarks> {
  const { projectId, baseRef, headRef } = request;
  const squashOption = squash === true ? { squash } : {};
  const commit = former === null ? null : yield* tipWith(git, request, { sides: former, ...squashOption });
  if (former !== null && commit !== null) return { type: "merged.in_git", sides: former, commit };
  const comparison = yield* git.compare({ projectId }, { base: baseRef, head: headRef });
  if (comparison.commits.length === 0) return mergeRefused({ because: "no_changes" }, true);
  if (!comparison.mergeable) return mergeRefused({ because: "conflict", paths: comparison.conflicts }, true);
  const { base, head } = comparison;
  const lacking = yield* lackingApprovals(request, head);
  if (lacking !== null) return mergeRefused(lacking, true);
  return { type: "sides.noted", sides: { base, head }, at: yield* Clock.currentTimeMillis };
});

const mergeTitle = ({ number, title }: ChangeRequest): string =>
  `Merge change request #${number}: ${title.replaceAll(/\s+/g, " ").trim()}`;

/** The message in the history of the base branch: what was done, why, and where it was discussed. */
const squashMessage = ({ number, title, description }: ChangeRequest): string =>
  [`${title.replaceAll(/\s+/g, " ").trim()} (#${number})`, description.trim()].filter(Boolean).join("\n\n");

type MergeInGit = Extract<ChangeRequestCommand, { type: "mergeInGit" }>;

/** A repository that is away for a moment is asked again, for 13 seconds in all. */
const whileAway = {
  while: ({ code }: GitError) => code === "away" || code === "unavailable" || code === "disk_full",
  schedule: backoff("100 millis", "2 seconds"),
  times: 10,
};

/**
 * Merges exactly the noted head. Performed again it makes no second merge: git finds the work there. An error may hide a
 * merge that this try or a former one made. So the base branch is looked at before the merge is refused.
 */
const mergeInGit = Effect.fnUntraced(function* (
  git: GitBackend["Service"],
  request: ChangeRequest,
  { sides, message, at, squash }: MergeInGit,
): Effect.fn.Return<ChangeRequestEvent> {
  const { projectId, baseRef: branch } = request;
  const { head } = sides;
  const squashOption = squash === true ? { squash } : {};
  const words = message ?? (squash === true ? squashMessage(request) : mergeTitle(request));
  const order = { branch, head, message: words, at, ...squashOption };
  const merge = yield* Effect.result(Effect.retry(git.merge({ projectId }, order), whileAway));
  if (merge._tag === "Failure") {
    const { failure } = merge;
    const tip = yield* Effect.result(tipWith(git, request, { sides, ...squashOption }));
    if (tip._tag === "Failure") return refusedByGit(failure, false);
    const commit = tip.success;
    return commit === null
      ? refusedByGit(failure, SURE.has(failure.code))
      : { type: "merged.in_git", sides, commit };
  }
  const result = merge.success;
  switch (result.outcome) {
    case "conflict":
      return mergeRefused({ because: "conflict", paths: result.paths }, true);
    case "merged":
      return { type: "merged.in_git", sides: { base: result.base, head }, commit: result.commit };
    case "contained":
      return { type: "merged.in_git", sides, commit: result.base };
  }
});

const makeHandlers = Effect.fnUntraced(function* (id: string) {
  const { byId } = yield* ChangeRequests;
  const projects = yield* Projects;
  const git = yield* GitBackend;
  const manifests = yield* Manifests;
  const { moved } = yield* RequestBranches;
  const pulls = yield* PullMirror;
  const faults = yield* Faults;
  const approvals = yield* Effect.context<Projects | Remarks>();
  const record = Effect.flatMap(byId(id), (row) =>
    row === null ? Effect.die(new Error(`change request ${id} has no row`)) : Effect.succeed(row),
  );
  const handlers: Handlers<ChangeRequestEvent, ChangeRequestCommand> = {
    noteSides: {
      perform: (command) =>
        Effect.flatMap(record, (request) => noteSides(git, request, command)).pipe(
          Effect.provideContext(approvals),
          // Nothing was begun, and a former merge stays in doubt.
          Effect.catchTag("GitError", (error) => Effect.succeed(refusedByGit(error, false))),
        ),
      gaveUp: (_, reason) => crashEvent(reason),
    },
    mergeInGit: {
      perform: (command) =>
        Effect.gen(function* () {
          faults("merge.noted");
          const outcome = yield* mergeInGit(git, yield* record, command);
          faults("merge.made");
          return outcome;
        }),
      gaveUp: (_, reason) => crashEvent(reason),
    },
    lookForMerge: {
      perform: ({ sides, squash }) =>
        Effect.flatMap(record, (request) =>
          tipWith(git, request, { sides, ...(squash === true && { squash }) }),
        ).pipe(
          Effect.map((commit): ChangeRequestEvent =>
            commit === null ? { type: "merge.missed" } : { type: "merged.in_git", sides, commit },
          ),
          Effect.catchTag("GitError", (error) => Effect.succeed(refusedByGit(error, false))),
        ),
      gaveUp: (_, reason) => crashEvent(reason),
    },
    readManifest: {
      perform: () =>
        Effect.gen(function* () {
          const { projectId } = yield* record;
          const project = yield* projects.get(projectId);
          if (project !== null) yield* manifests.sync(project);
          faults("merge.read");
          return { type: "manifest.read" as const };
        }),
      gaveUp: () => ({ type: "manifest.failed" }),
    },
    mirrorPull: {
      perform: () =>
        Effect.flatMap(record, ({ projectId }) => Effect.as(pulls.look(projectId, id), undefined)),
    },
    refreshOthers: {
      perform: () => Effect.flatMap(record, ({ projectId }) => Effect.as(moved(projectId), undefined)),
    },
  };
  return handlers;
});
