/**
 * Removes repositories that no project has: of a creation that broke off between the repository and its project's row.
 * Looks at what is, at start and on a timer, and takes no input. What is being made now is told from what was left:
 *
 *  U1 A creation is under way from before its repository has its name until its project's row is written, or is not
 *     going to be.
 *  U2 What lies here is listed first, then what is under way is left out, then the rows are asked. So whatever was listed
 *     and is not under way any more has its row by the time they are asked, or never gets one.
 *  U3 A creation that ended without anybody knowing whether its row was written counts as broken off only after `AGE_MS`.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { type KeptHere, KeptRepositories } from "../git/kept.ts";
import type { GitError } from "../git/port.ts";
import { Projects } from "../store/ports/projects.ts";
import { dutyRound } from "../actors/supervisor.ts";

/** It costs disk space and nothing else. */
const INTERVAL = "10 minutes";
/** The database ends a transaction that stands still after 5 s: a hundred times as long. */
const AGE_MS = 10 * 60_000;

export class Creations extends Context.Service<
  Creations,
  {
    /** Makes a project's repository and writes the project's row (U1). */
    readonly during: <A, E, R>(projectId: string, making: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;
    /** One look. What cannot be removed is tried again by the next one. */
    readonly look: Effect.Effect<void>;
  }
>()("platform/actors/Creations") {}

const cannot = (projectId: string) => (error: GitError) =>
  Effect.logWarning("a repository without a project could not be removed; trying again", {
    project: projectId,
    reason: error.message,
  });

const lookOver = (projects: Projects["Service"], underWay: ReadonlySet<string>) =>
  Effect.fnUntraced(function* (kept: KeptHere) {
    const listed = yield* kept.unclaimed(AGE_MS);
    const asked = listed.filter((projectId) => !underWay.has(projectId));
    if (asked.length === 0) return;
    const nobodys = new Set(yield* projects.unheld(asked));
    for (const projectId of asked) {
      const settle = nobodys.has(projectId)
        ? Effect.andThen(
            Effect.logWarning("a repository without a project is removed", { project: projectId }),
            kept.remove({ projectId }),
          )
        : kept.claim({ projectId });
      yield* Effect.catchTag(settle, "GitError", cannot(projectId));
    }
  });

/** What knows of creations under way, over the directories of this node. */
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
            // What stays marked is claimed by the next look.
            Effect.forEach(everywhere, (kept) => Effect.ignore(kept.claim({ projectId })), { discard: true }),
          ),
        () => Effect.sync(() => void underWay.delete(projectId)),
      ),
    look: Effect.forEach(everywhere, (kept) => dutyRound("unclaimed repositories", lookAt(kept)), {
      discard: true,
    }),
  });
});

/** With its looks, where there is something to look at. */
export const unclaimedLayer = Layer.effect(
  Creations,
  Effect.gen(function* () {
    const creations = yield* makeCreations;
    const everywhere = yield* KeptRepositories;
    if (everywhere.length > 0)
      yield* Effect.forkScoped(Effect.repeat(creations.look, Schedule.spaced(INTERVAL)));
    return creations;
  }),
);
