/** The work of `platform branches prune --merged` (api.md 6). */
import { stat } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import type { Environment } from "../../cli/configuration.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { readConfig } from "../../settings/config.ts";
import { isLive } from "../../domain/session/session.ts";
import { removeMergedBranch } from "../../git/repository/merged-branches.ts";
import { auditBegin } from "../../services/audit.ts";
import { Accounts } from "../../store/ports/people/accounts.ts";
import { ChangeRequests, type ChangeRequest } from "../../features/change-requests/ports/change-requests.ts";
import type { BadCursor } from "../../store/ports/errors.ts";
import { Projects, type Project } from "../../store/ports/projects/projects.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import type { Stored } from "../../store/ports/journal.ts";
import type { Page, PageRequest } from "../../store/ports/page.ts";
import { asOperator } from "./acting.ts";
import { installedDirectory, installedStore } from "./database.ts";

export interface PruneWish {
  /** Null for all projects. */
  readonly projectId: string | null;
  readonly isDryRun: boolean;
}

/** The outcome for the branch of a session with a merged change request. */
export interface Pruned {
  readonly project_id: string;
  readonly session_id: string;
  readonly outcome: "removed" | "kept";
  /** Why it was kept. */
  readonly reason: string | null;
}

const PAGE = 200;

/** All rows of a list. */
const every = Effect.fnUntraced(function* <A>(list: (request: PageRequest) => Stored<Page<A>, BadCursor>) {
  const rows: A[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<A> = yield* list({ limit: PAGE, cursor });
    rows.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return rows;
});

const projectsToLook = Effect.fnUntraced(function* (projectId: string | null) {
  const projects = yield* Projects;
  if (projectId !== null) {
    const project = yield* projects.get(projectId);
    const message = "Project not found.";
    return project === null
      ? yield* Effect.fail(new Failure(EXIT.notFound, "not_found", { message }))
      : [project];
  }
  const accounts = yield* every((yield* Accounts).list);
  const lists = yield* Effect.forEach(accounts, ({ id }) =>
    every((request) => projects.list({ accountId: id, userId: null }, { ...request, onlyId: null })),
  );
  return lists.flat();
});

interface Place {
  /** The directory of the hosted repositories. */
  readonly directory: string;
  readonly isDryRun: boolean;
}

/** Checks one session with a merged change request. Null if its branch is already gone. */
const pruneBranch = Effect.fnUntraced(function* (
  place: Place,
  { projectId, headRef, baseRef, mergeSides }: ChangeRequest,
) {
  const keep = (reason: string): Pruned => ({
    project_id: projectId,
    session_id: headRef,
    outcome: "kept",
    reason,
  });
  const session = yield* (yield* Sessions).get(headRef);
  if (session !== null && isLive(session.status)) return keep("the session is live");
  const removal = yield* removeMergedBranch(
    place.directory,
    { projectId },
    { branch: headRef, into: baseRef, mergedHead: mergeSides?.head ?? null, isDryRun: place.isDryRun },
  ).pipe(Effect.catchTag("GitError", ({ message }) => Effect.succeed({ message })));
  if (typeof removal === "object") return keep(removal.message);
  if (removal === "absent") return null;
  if (removal === "unmerged") return keep(`it has commits that are not on ${baseRef}`);
  return { ...keep(""), outcome: "removed", reason: null } satisfies Pruned;
});

const inProject = Effect.fnUntraced(function* (place: Place, { id }: Project) {
  const { list } = yield* ChangeRequests;
  const listRequests = (status: string) => every((request) => list(id, { ...request, status }));
  const open = new Set((yield* listRequests("open")).map(({ headRef }) => headRef));
  const mergedRequests = (yield* listRequests("merged")).filter(
    // People's own branches are left alone. The newest request of a branch decides about it.
    ({ sessionId, headRef }, index, all) =>
      sessionId !== null &&
      !open.has(headRef) &&
      all.findIndex((other) => other.headRef === headRef) === index,
  );
  const outcomes = yield* Effect.forEach(mergedRequests, (request) => pruneBranch(place, request));
  return outcomes.filter((outcome) => outcome !== null);
});

/** The service could not change files that another user writes into a repository. */
const checkUser = Effect.fnUntraced(function* (dataDir: string) {
  const { uid } = yield* Effect.promise(() => stat(dataDir));
  if (uid === process.geteuid?.()) return;
  const message = `The repositories in ${dataDir} belong to user id ${uid}. Run this command as that user.`;
  yield* Effect.fail(new Failure(EXIT.refused, "wrong_user", { message }));
});

/** Removes the branches of sessions whose change request is merged, from the hosted repositories of this machine. */
export const pruneMerged = Effect.fnUntraced(function* (environment: Environment, wish: PruneWish) {
  const config = readConfig(environment, process.cwd());
  const dataDir = yield* installedDirectory(config);
  yield* checkUser(dataDir);
  const place = { directory: path.join(dataDir, "repositories"), isDryRun: wish.isDryRun };
  const prune = Effect.gen(function* () {
    const projects = yield* projectsToLook(wish.projectId);
    const { projectId } = wish;
    if (!wish.isDryRun)
      yield* auditBegin({
        action: "branches.pruned",
        target: projectId,
        ...(projectId !== null && { projectId, accountId: projects[0]?.accountId }),
      });
    const hostedProjects = projects.filter(({ repository }) => repository.kind === "hosted");
    return (yield* Effect.forEach(hostedProjects, (project) => inProject(place, project))).flat();
  });
  return yield* Effect.provide(asOperator(prune), installedStore(config));
});
