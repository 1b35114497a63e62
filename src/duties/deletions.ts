/**
 * Deleted projects: stops what still runs in them, and removes those whose time has come, rows first, then files.
 *
 *  R1 Each node removes the files on its own disk, of every project that is gone, once in the life of its process. So a node
 *     that was away when the rows went removes its part after its next start.
 *  R2 A place that cannot be emptied is tried again by the next round, and holds up nothing else.
 *  R3 A restored copy removes nothing until it is resumed: it may have been restored for what its original removed.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Pause } from "../ground/pause.ts";
import { Actors } from "../services/actors.ts";
import { withAudit } from "../services/audit.ts";
import { Directory } from "../services/directory.ts";
import { DUTIES } from "../services/duties.ts";
import { dutyPart, runDuty } from "../services/duty.ts";
import { ProjectPlaces, type ProjectPlace } from "../services/projects/project-places.ts";
import { deliver } from "../actors/delivery.ts";
import { ProjectDeletions } from "../store/ports/projects/project-deletions.ts";
import type { Project } from "../store/ports/projects/projects.ts";

/** Pause between two steps, so that a large project leaves the database to others. */
const BREATH = "50 millis";

/** Stops the live sessions of deleted projects. Their work is saved. */
export const stopDeleted = Effect.gen(function* () {
  const actors = yield* Actors;
  yield* Effect.forEach(
    yield* (yield* ProjectDeletions).unwantedSessions,
    ({ id }) =>
      Effect.andThen(
        Effect.logInfo("a session of a deleted project is stopped", { session: id }),
        deliver(actors.session(id, { type: "stop.requested" })),
      ),
    { concurrency: 8, discard: true },
  );
});

/** Removes the rows of a project, or as many as can go now. */
const removeRows = Effect.fnUntraced(function* ({ id, accountId, name }: Project) {
  const { remove } = yield* ProjectDeletions;
  const step = Effect.flatMap(Clock.currentTimeMillis, (now) => remove(id, now)).pipe(
    withAudit((removal) =>
      removal === "removed"
        ? { action: "project.removed", target: id, projectId: id, accountId, changes: { name } }
        : null,
    ),
  );
  while ((yield* step) === "more") yield* Effect.sleep(BREATH);
});

const emptyPlace = ({ what, remove }: ProjectPlace, projectId: string) =>
  remove(projectId).pipe(
    Effect.as(true),
    Effect.catch(({ message }) =>
      Effect.as(
        Effect.logWarning(`${what} of a project that is gone could not be removed; trying again`, {
          project: projectId,
          reason: message,
        }),
        false,
      ),
    ),
  );

/** Removes the rows of projects whose time has come (R3). */
export const removeDue = Effect.gen(function* () {
  if ((yield* Pause).isOn) return;
  const due = yield* (yield* ProjectDeletions).due(yield* Clock.currentTimeMillis);
  yield* Effect.forEach(due, (project) => dutyPart("deletions", removeRows(project)), { discard: true });
});

/** @returns a look that removes files of projects that are gone, and returns these projects (R1, R2) */
export const makeSweep = Effect.gen(function* () {
  const sweptIds = new Set<string>();
  const places = yield* ProjectPlaces;
  const deletions = yield* ProjectDeletions;
  return Effect.gen(function* () {
    const deletedIds = yield* deletions.gone;
    for (const id of deletedIds) {
      if (sweptIds.has(id)) continue;
      const results = yield* Effect.forEach(places, (place) => emptyPlace(place, id));
      if (results.every(Boolean)) sweptIds.add(id);
    }
    return deletedIds;
  });
});

const makeRound = Effect.gen(function* () {
  const sweep = yield* makeSweep;
  const directory = yield* Directory;
  return Effect.gen(function* () {
    yield* stopDeleted;
    yield* removeDue;
    for (const id of yield* sweep) if (directory.known(id) !== null) yield* directory.refresh(id);
  });
});

export const deletionsLayer = Layer.effectDiscard(
  Effect.flatMap(makeRound, (round) => runDuty("deletions", { round, periodMs: DUTIES.deletions.periodMs })),
);
