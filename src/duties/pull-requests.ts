/**
 * Keeps the pull requests of a code host beside our change requests, and each end of one known to the other (api.md 2,
 * `pull_requests`). It looks at what is on both sides and takes no input, on a signal and on a timer.
 *
 *  P1 `wanted` stands in the row before the host is asked to open one, and the pull request carries the request's id: who
 *     dies in between finds it, and opens no second one.
 *  P2 what has ended here is ended there before another request of the same branch joins what is open there.
 *  P3 a request says `merged` only where the host merged into its own base branch; the manifest in force is then no older.
 *  P4 a merge made here is the host's to notice. Where it cannot, since the branch went on, its pull request is closed.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as RcMap from "effect/RcMap";
import * as Semaphore from "effect/Semaphore";
import { cutText } from "../domain/text.ts";
import type { GitError } from "../git/port.ts";
import { type PullRequest, PullRequests, type PullRequestsPort } from "../git/pull-requests.ts";
import { ChangeRequests } from "../store/ports/change-requests.ts";
import type { ChangeRequest, Project } from "../store/ports/records.ts";
import { Projects } from "../store/ports/projects.ts";
import { Directory } from "../services/directory.ts";
import { Manifests } from "./manifests.ts";
import { DUTIES } from "./duties.ts";
import { dutyPart, runDuty } from "./duty.ts";

/** Says that a project's change requests have changed; the look that follows is nobody's to wait for. */
export const PullRequestDuty = Context.Reference<{
  readonly wake: (projectId: string) => Effect.Effect<void>;
}>("platform/actors/PullRequestDuty", { defaultValue: () => ({ wake: () => Effect.void }) });

export interface PullRequestOptions {
  /** `{base_url}` as people see it. */
  readonly publicUrl: string;
}

const PROJECTS_AT_ONCE = 4;
/** Change requests of a project that one look takes up. */
const REQUESTS = 1000;
/** Characters of a description; a host takes some more in all. */
const DESCRIPTION = 60_000;
/** How long the host is given to notice a merge. */
const NOTICE_MS = 10 * 60_000;

const wantsPulls = ({ status, repository }: Project): boolean =>
  status === "active" && repository.kind === "github" && repository.pull_requests === true;

const marker = ({ id }: ChangeRequest): string => `<!-- change request ${id} -->`;

const bodyOf = (request: ChangeRequest, publicUrl: string): string => {
  const link = `${publicUrl}/#/projects/${request.projectId}/change-requests/${request.number}`;
  // What is too long for the host is cut at its end: the description is, and neither the link nor the mark.
  return [
    cutText(request.description.trim(), DESCRIPTION),
    `Change request [#${request.number}](${link})`,
    marker(request),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
};

/** One look at one project. */
interface Look {
  readonly project: Project;
  readonly publicUrl: string;
  readonly pulls: PullRequestsPort;
  readonly open: ReadonlyMap<number, PullRequest>;
  /** Numbers that requests which are not settled hold. */
  readonly held: ReadonlySet<number>;
}

/** The pull request that was opened for this one, else an open one that no other request holds. */
const find = Effect.fnUntraced(function* ({ project, pulls, held }: Look, request: ChangeRequest) {
  const found = yield* pulls.ofHead({ projectId: project.id }, request.headRef);
  const own = found.find(({ body }) => body.includes(marker(request)));
  const isFree = ({ status, baseRef, number }: PullRequest) =>
    status === "open" && baseRef === request.baseRef && !held.has(number);
  return own ?? (request.status === "open" ? found.find(isFree) : undefined) ?? null;
});

/** P1. Null where there is nothing that could be opened. */
const opened = Effect.fnUntraced(function* (look: Look, request: ChangeRequest) {
  const { project, pulls, publicUrl } = look;
  const { headRef, baseRef, title } = request;
  if (request.pull === null) {
    yield* (yield* ChangeRequests).recordPull(project.id, request.number, { status: "wanted" });
  }
  const body = bodyOf(request, publicUrl);
  const create = pulls.create({ projectId: project.id }, { headRef, baseRef, title, body });
  return (yield* find(look, request)) ?? (yield* create) ?? (yield* find(look, request));
});

const pullOf = (look: Look, request: ChangeRequest) => {
  const { pull } = request;
  if (pull === null || pull.status === "wanted") {
    return request.status === "open" ? opened(look, request) : find(look, request);
  }
  const known = look.open.get(pull.number);
  return known === undefined
    ? look.pulls.get({ projectId: look.project.id }, pull.number)
    : Effect.succeed(known);
};

/** P3. */
const mergedThere = Effect.fnUntraced(function* (
  { project, pulls }: Look,
  request: ChangeRequest,
  { mergeCommit, head }: PullRequest,
) {
  const commit = mergeCommit ?? head;
  const base = (yield* pulls.baseOf({ projectId: project.id }, commit)) ?? commit;
  yield* (yield* Manifests).sync(project);
  const now = yield* Clock.currentTimeMillis;
  const merge = { base, head, commit, by: null, now };
  yield* (yield* ChangeRequests).recordMerge(project.id, request.number, merge);
});

/** What the end of a request here means for an open pull request. @returns it as it is then. */
const endThere = Effect.fnUntraced(function* (
  { project, pulls }: Look,
  request: ChangeRequest,
  pull: PullRequest,
) {
  if (request.status === "merged" && request.mergeSides?.head === pull.head) {
    const now = yield* Clock.currentTimeMillis;
    if (now - (request.merged?.at ?? 0) < NOTICE_MS) return pull; // P4
  }
  return (yield* pulls.close({ projectId: project.id }, pull.number)) ?? pull;
});

/** Brings one request and its pull request to the same end. */
const settleOne = Effect.fnUntraced(function* (look: Look, request: ChangeRequest) {
  const { project } = look;
  const changeRequests = yield* ChangeRequests;
  const seen = yield* pullOf(look, request);
  if (seen === null) {
    // Opened by nobody before its request ended, or gone from the host.
    if (request.status !== "open" && request.pull !== null)
      yield* changeRequests.recordPull(project.id, request.number, null);
    return;
  }
  const pull =
    request.status !== "open" && seen.status === "open" ? yield* endThere(look, request, seen) : seen;
  if (pull.status === "merged" && request.status !== "merged" && pull.baseRef === request.baseRef) {
    yield* mergedThere(look, request, pull);
  } else if (pull.status !== "open" && request.status === "open") {
    yield* changeRequests.close(project.id, request.number, yield* Clock.currentTimeMillis);
  }
  const { status, number, url } = pull;
  yield* changeRequests.recordPull(project.id, request.number, { status, number, url });
});

const told = (project: Project) => (error: GitError) =>
  Effect.logWarning("pull requests could not be checked; trying again", {
    project: project.id,
    reason: error.message,
  });

/** One look at one project; what it cannot do now the next one does. */
export const settleProject = Effect.fnUntraced(function* (
  project: Project,
  { publicUrl }: PullRequestOptions,
) {
  if (!wantsPulls(project)) return;
  const requests = yield* (yield* ChangeRequests).withPulls(project.id, REQUESTS);
  if (requests.length === 0) return;
  const pulls = yield* PullRequests;
  const open = yield* pulls.open({ projectId: project.id });
  const held = requests.flatMap(({ pull }) =>
    pull === null || pull.status === "wanted" ? [] : [pull.number],
  );
  const look: Look = {
    project,
    publicUrl,
    pulls,
    open: new Map(open.map((pull) => [pull.number, pull])),
    held: new Set(held),
  };
  for (const request of requests) {
    // What is refused for one is not the others' to bear.
    yield* Effect.catchTag(settleOne(look, request), "GitError", told(project));
  }
});

/** The duty in this layer's scope; its signal for whoever changes a request. */
export const pullRequestsLayer = (options: PullRequestOptions) =>
  Layer.effect(
    PullRequestDuty,
    Effect.gen(function* () {
      const projects = yield* Projects;
      const directory = yield* Directory;
      const context = yield* Effect.context<ChangeRequests | Manifests>();
      /** One look at a project at a time: two would both open what neither finds. */
      const turns = yield* RcMap.make({ lookup: (_projectId: string) => Semaphore.make(1) });
      const settle = (projectId: string) =>
        dutyPart(
          "pull_requests",
          Effect.scoped(
            Effect.flatMap(RcMap.get(turns, projectId), (turn) =>
              turn.withPermit(
                Effect.gen(function* () {
                  const project = yield* projects.get(projectId);
                  if (project === null) return;
                  yield* Effect.catchTag(settleProject(project, options), "GitError", told(project));
                }),
              ),
            ),
          ),
        ).pipe(Effect.provideContext(context));
      const round = Effect.suspend(() =>
        Effect.forEach(
          [...directory.all()].filter(({ project }) => wantsPulls(project)),
          ({ project }) => settle(project.id),
          { concurrency: PROJECTS_AT_ONCE, discard: true },
        ),
      );
      yield* runDuty("pull_requests", { round, periodMs: DUTIES.pull_requests.periodMs });
      const scope = yield* Effect.scope;
      return { wake: (projectId) => Effect.asVoid(Effect.forkIn(settle(projectId), scope)) };
    }),
  );
