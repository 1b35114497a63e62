/**
 * Removes saves whose session or project has no row: what a crash left between a deletion and the removal of its saves, and what a
 * restored backup has beside its database.
 *
 *  F1 A leftover is removed when two looks have found it, hours apart. So a service that runs over another database for a moment
 *     removes nothing.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { Projects } from "../../store/ports/projects/projects.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import type { SavePlace } from "../port.ts";
import { SaveStore } from "../store.ts";

/** Saves without a session cost disk space and nothing else. */
const LOOK_MS = 6 * 3_600_000;

/** @returns one round, which looks if the last look was some hours ago */
export const makeLeftovers = Effect.gen(function* () {
  const store = yield* SaveStore;
  const projects = yield* Projects;
  const sessions = yield* Sessions;
  let lookedAt = -LOOK_MS;
  let former: ReadonlySet<string> = new Set();

  const isLeft = ({ sessionId }: SavePlace) =>
    Effect.map(sessions.get(sessionId), (session) => session === null || session.deletedAt !== null);

  const look = Effect.gen(function* () {
    const sessionsByProject = yield* store.places;
    const orphanIds = new Set(yield* projects.unheld([...sessionsByProject.keys()]));
    const places = [...sessionsByProject]
      .filter(([projectId]) => !orphanIds.has(projectId))
      .flatMap(([projectId, sessionIds]) => sessionIds.map((sessionId) => ({ projectId, sessionId })));
    const left = yield* Effect.filter(places, isLeft);
    for (const projectId of orphanIds)
      if (former.has(projectId)) {
        yield* Effect.logWarning("saved work of no project is removed", { project: projectId });
        yield* store.removeProject(projectId);
      }
    for (const place of left)
      if (former.has(place.sessionId)) {
        yield* Effect.logWarning("saved work of no session is removed", { session: place.sessionId });
        yield* store.remove(place);
      }
    former = new Set([...orphanIds, ...left.map(({ sessionId }) => sessionId)]);
  });

  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    if (now - lookedAt < LOOK_MS) return;
    yield* look;
    lookedAt = now;
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.logWarning("leftovers of saved work could not be looked for; trying again", { reason: message }),
    ),
  );
});
