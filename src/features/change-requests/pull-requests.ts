/**
 * Keeps the pull request of a code host beside each change request (api.md 2, `pull_requests`). It compares both sides and
 * takes no input, so it may look at any time and any number of times. After a change, a request's actor asks for a look at its
 * request (command `mirrorPull`). A duty looks at all of them every 30 seconds: it hears
 * of what people do at the code host, and takes up what a look from the change request's side could not do.
 *
 *  P1 `wanted` stands in the row before the host is asked to open a pull request, and the pull request carries the change
 *     request's id. After a crash in between, the next look finds it and opens no second one.
 *  P2 A request joins an open pull request only if no other request holds that one.
 *  P3 The request's actor is told when its pull request ends at the host. `merged` is told only if the host merged into the
 *     request's own base branch.
 *  P4 The host notices a merge that was made here. If it cannot, because the branch has moved on, the pull request is closed.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as RcMap from "effect/RcMap";
import * as Semaphore from "effect/Semaphore";
import { Actors, type TellError } from "../../services/actors.ts";
import { Directory } from "../../services/directory.ts";
import { DUTIES } from "../../services/duties.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";
import { changeRequestMark } from "../../domain/trigger/event-skip.ts";
import { cutText } from "../../domain/text.ts";
import type { GitError } from "../../git/port.ts";
import { type PullRequest, PullRequests, type PullRequestsPort } from "../../git/pull-requests.ts";
import type { ChangeRequestEvent } from "../../machines/change-request.ts";
import { ChangeRequests, type ChangeRequest } from "./ports/change-requests.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { type Project, Projects } from "../../store/ports/projects/projects.ts";

export interface PullMirrorOptions {
  /** `{base_url}` as people see it. */
  readonly publicUrl: string;
}

/** Change requests of a project that one look takes up. */
const REQUESTS = 1000;
/** Projects that the duty looks at together. */
const PROJECTS_AT_ONCE = 4;
/** Characters of a description; a host takes some more in all. */
const DESCRIPTION = 60_000;
/** How long the host is given to notice a merge. */
const NOTICE_MS = 10 * 60_000;

const wantsPulls = ({ status, repository }: Project): boolean =>
  status === "active" && repository.kind === "github" && repository.pull_requests === true;

const marker = ({ id }: ChangeRequest): string => changeRequestMark(id);

const pullBody = (request: ChangeRequest, publicUrl: string): string => {
  const link = `${publicUrl}/#/projects/${request.projectId}/change-requests/${request.number}`;
  // A text that is too long for the host loses the end of its description, but never the link or the marker.
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
  const pullRequests = yield* pulls.ofHead({ projectId: project.id }, request.headRef);
  const own = pullRequests.find(({ body }) => body.includes(marker(request)));
  const isFree = ({ status, baseRef, number }: PullRequest) =>
    status === "open" && baseRef === request.baseRef && !held.has(number);
  return own ?? (request.status === "open" ? pullRequests.find(isFree) : undefined) ?? null;
});

/** P1. Null where there is nothing that could be opened. */
const createPull = Effect.fnUntraced(function* (look: Look, request: ChangeRequest) {
  const { project, pulls, publicUrl } = look;
  const { headRef, baseRef, title } = request;
  if (request.pull === null) {
    yield* (yield* ChangeRequests).recordPull(project.id, request.number, { status: "wanted" });
  }
  const body = pullBody(request, publicUrl);
  const create = pulls.create({ projectId: project.id }, { headRef, baseRef, title, body });
  return (yield* find(look, request)) ?? (yield* create) ?? (yield* find(look, request));
});

const findPull = (look: Look, request: ChangeRequest) => {
  const { pull } = request;
  if (pull === null || pull.status === "wanted") {
    return request.status === "open" ? createPull(look, request) : find(look, request);
  }
  const openPull = look.open.get(pull.number);
  return openPull === undefined
    ? look.pulls.get({ projectId: look.project.id }, pull.number)
    : Effect.succeed(openPull);
};

/** What the host's merge tells the request. */
const mergedThere = Effect.fnUntraced(function* (
  { project, pulls }: Look,
  { mergeCommit, head }: PullRequest,
): Effect.fn.Return<ChangeRequestEvent, GitError> {
  const commit = mergeCommit ?? head;
  const base = (yield* pulls.firstParent({ projectId: project.id }, commit)) ?? commit;
  return { type: "pull.merged", sides: { base, head }, commit };
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

/** Brings one request and its pull request to the same end (P3). */
const settleOne = Effect.fnUntraced(function* (look: Look, request: ChangeRequest) {
  const { project } = look;
  const { recordPull } = yield* ChangeRequests;
  const actors = yield* Actors;
  const pullPage = yield* findPull(look, request);
  if (pullPage === null) {
    // The request ended before a pull request was opened, or the host no longer has it.
    if (request.status !== "open" && request.pull !== null)
      yield* recordPull(project.id, request.number, null);
    return;
  }
  const pull =
    request.status !== "open" && pullPage.status === "open"
      ? yield* endThere(look, request, pullPage)
      : pullPage;
  if (pull.status === "merged" && request.status !== "merged" && pull.baseRef === request.baseRef) {
    yield* actors.changeRequest(request.id, yield* mergedThere(look, pull));
  } else if (pull.status !== "open" && request.status === "open") {
    yield* actors.changeRequest(request.id, { type: "pull.closed" });
  }
  const { status, number, url } = pull;
  yield* recordPull(project.id, request.number, { status, number, url });
});

/** The next look tries again. The caller waits out an outage of the database. */
const postpone =
  (project: Project) =>
  (error: GitError | TellError): Effect.Effect<void, StoreError> =>
    error._tag === "StoreError"
      ? Effect.fail(error)
      : Effect.logWarning("pull requests could not be checked; trying again", {
          project: project.id,
          reason: error._tag === "GitError" ? error.message : error._tag,
        });

/** One look at a project's requests, or at one of them. The duty's next look retries the rest. */
export const settleProject = Effect.fnUntraced(
  function* (project: Project, { publicUrl }: PullMirrorOptions, only: string | null = null) {
    if (!wantsPulls(project)) return;
    const requests = yield* (yield* ChangeRequests).withPulls(project.id, REQUESTS);
    const selection = requests.filter(({ id }) => only === null || id === only);
    if (selection.length === 0) return;
    const pulls = yield* PullRequests;
    const open = yield* pulls.open({ projectId: project.id });
    const numbers = requests.flatMap(({ pull }) =>
      pull === null || pull.status === "wanted" ? [] : [pull.number],
    );
    const look: Look = {
      project,
      publicUrl,
      pulls,
      open: new Map(open.map((pull) => [pull.number, pull])),
      held: new Set(numbers),
    };
    for (const request of selection) {
      // If the host refuses one request, the others continue.
      yield* Effect.catch(settleOne(look, request), postpone(project));
    }
  },
  (settling, project) => Effect.catch(settling, postpone(project)),
);

export class PullMirror extends Context.Service<
  PullMirror,
  {
    /** Looks at a project's requests, or at one of them by its id. */
    readonly look: (projectId: string, only?: string) => Effect.Effect<void, StoreError>;
  }
>()("platform/change-requests/PullMirror") {}

export const pullMirrorLayer = (options: PullMirrorOptions) =>
  Layer.effect(
    PullMirror,
    Effect.gen(function* () {
      const projects = yield* Projects;
      const context = yield* Effect.context<ChangeRequests | Actors>();
      /** One look at a project at a time: two would both open what neither finds. */
      const turns = yield* RcMap.make({ lookup: (_projectId: string) => Semaphore.make(1) });
      const look = Effect.fnUntraced(function* (projectId: string, only: string | null) {
        const turn = yield* RcMap.get(turns, projectId);
        const settling = Effect.gen(function* () {
          const project = yield* projects.get(projectId);
          if (project !== null) yield* settleProject(project, options, only);
        });
        yield* turn.withPermit(settling);
      }, Effect.scoped);
      return {
        look: (projectId, only) => Effect.provideContext(look(projectId, only ?? null), context),
      };
    }),
  );

/** The duty's look at all projects that want pull requests. */
export const pullRequestsLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const directory = yield* Directory;
    const mirror = yield* PullMirror;
    const round = Effect.suspend(() =>
      Effect.forEach(
        [...directory.all()].filter(({ project }) => wantsPulls(project)),
        ({ project }) => dutyPart("pull_requests", mirror.look(project.id)),
        { concurrency: PROJECTS_AT_ONCE, discard: true },
      ),
    );
    yield* runDuty("pull_requests", { round, periodMs: DUTIES.pull_requests.periodMs });
  }),
);
