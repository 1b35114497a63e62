/**
 * Removes repositories that no project has, left by a creation that broke off between the repository and its project's
 * row. It lists the repositories at start and on a timer, and takes no input. It distinguishes creations under way from
 * leftovers:
 *
 *  U1 A creation is under way from before its repository has its name until its project's row is written or cannot be
 *     written any more.
 *  U2 The look lists the repositories first, then leaves out those under way, then reads the rows. So a listed
 *     repository that is no longer under way has its row by then, or never gets one.
 *  U3 If a creation ends without knowing whether its row was written, it counts as broken off only after `AGE_MS`.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { type KeptHere, KeptRepositories } from "../git/kept.ts";
import type { GitError } from "../git/port.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import { DUTIES } from "../services/duties.ts";
import { dutyPart, runDuty } from "../services/duty.ts";

/** The database ends an idle transaction after 5 s. This is more than a hundred times as long. */
const AGE_MS = 10 * 60_000;

export class Creations extends Context.Service<
  Creations,
  {
    /** Creates a project's repository and writes the project's row (U1). */
    readonly during: <A, E, R>(projectId: string, making: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;
    /** One look. A repository that cannot be removed is retried by the next look. */
    readonly look: Effect.Effect<void>;
  }
>()("platform/duties/Creations") {}

const cannot = (projectId: string) => (error: GitError) =>
  Effect.logWarning("a repository without a project could not be removed; trying again", {
    project: projectId,
    reason: error.message,
  });

const lookOver = (projects: Projects["Service"], underWay: ReadonlySet<string>) =>
  Effect.fnUntraced(function* (store: KeptHere) {
    const unclaimedIds = yield* store.unclaimed(AGE_MS);
    const idleIds = unclaimedIds.filter((projectId) => !underWay.has(projectId));
    if (idleIds.length === 0) return;
    const nobodys = new Set(yield* projects.unheld(idleIds));
    for (const projectId of idleIds) {
      const settle = nobodys.has(projectId)
        ? Effect.andThen(
            Effect.logWarning("a repository without a project is removed", { project: projectId }),
            store.remove({ projectId }),
          )
        : store.claim({ projectId });
      yield* Effect.catchTag(settle, "GitError", cannot(projectId));
    }
  });

/** Tracks creations under way, over the directories of this node. */
export const makeCreations = Effect.gen(function* () {
  const underWay = new Set<string>();
  const everywhere = yield* KeptRepositories;
  const lookAt = lookOver(yield* Projects, underWay);
  return Creations.of({
    during: (projectId, making) =>
      Effect.acquireUseRelease(
        Effect.sync(() => underWay.add(projectId)),
        () =>
          Effect.tap(making, () =>
            // The next look claims repositories that stay marked.
            Effect.forEach(everywhere, (store) => Effect.ignore(store.claim({ projectId })), {
              discard: true,
            }),
          ),
        () => Effect.sync(() => void underWay.delete(projectId)),
      ),
    look: Effect.forEach(everywhere, (store) => dutyPart("unclaimed", lookAt(store)), { discard: true }),
  });
});

/** The same with its looks, if this node has directories to look at. */
export const unclaimedLayer = Layer.effect(
  Creations,
  Effect.gen(function* () {
    const creations = yield* makeCreations;
    const everywhere = yield* KeptRepositories;
    if (everywhere.length > 0)
      yield* runDuty("unclaimed", { round: creations.look, periodMs: DUTIES.unclaimed.periodMs });
    return creations;
  }),
);
