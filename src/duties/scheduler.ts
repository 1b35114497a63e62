/**
 * Gives a timer to every cron trigger whose actor lives on this node, and to no other (spec 6 "Cron fires"). The timer
 * rings at the instant (`timers.ts`); the trigger's actor decides what is due (`trigger.ts`).
 *
 *  Q1 The poll asks nothing outside this process: no hang of a database, a repository or an actor delays it.
 *  Q2 The set of triggers follows the directory: the scheduler applies a project's change as soon as it is known, each
 *     project by itself.
 *  Q3 The store's cursor holds where a trigger starts to count, and up to where it has counted. After a restart, or on
 *     another node, counting goes on from there.
 *  Q4 The placement decides which triggers are this node's: a trigger that moves here gets its timer at once, and one
 *     that moves away loses it. A node holds no data of triggers that live elsewhere.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as FiberMap from "effect/FiberMap";
import * as Layer from "effect/Layer";
import * as Semaphore from "effect/Semaphore";
import type { CronTriggerDefinition } from "../domain/trigger/trigger.ts";
import { Pause } from "../ground/pause.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import { Placement } from "../services/actors.ts";
import { Directory, type KnownProject } from "../services/directory.ts";
import { type FirstLook, nextDue, scheduleText, triggerActorId } from "../actors/schedules.ts";
import { dutyPart, runDuty } from "../services/duty.ts";
import { Timers } from "../actors/timers.ts";

/** How many projects' changes are applied at the same time. */
const TAKEN_UP_AT_ONCE = 8;
/** If a trigger's actor was told this long ago, ms, and has not armed its timer, the poll tells it again. */
const TOLD_LONG_AGO_MS = 5_000;
/** How many triggers' placements are checked before other fibers run. */
const PLACES_AT_A_TIME = 1_000;

export interface SchedulerOptions {
  /** PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS. */
  readonly intervalMs: number;
}

/** The poll's state, so that others notice when it stands still (api.md 4, 9 "Health"). */
export class Scheduler extends Context.Service<
  Scheduler,
  {
    /**
     * When the last poll was complete, in ms since the epoch; null before the first one. `late`: two intervals have
     * passed since.
     */
    readonly state: Effect.Effect<{
      readonly tickedAt: number | null;
      readonly late: boolean;
      /** How many cron triggers have a timer on this node. */
      readonly scheduled: number;
    }>;
  }
>()("platform/duties/Scheduler") {}

/** The project's cron triggers that have due instants: enabled ones of an active project, paused or not. */
const cronTriggers = ({ project, manifest }: KnownProject): readonly CronTriggerDefinition[] =>
  project.status === "active"
    ? manifest.triggers.filter(
        (trigger): trigger is CronTriggerDefinition => trigger.type === "cron" && trigger.enabled,
      )
    : [];

/**
 * Polls on its interval, and applies changes of the directory and the placement as they come. Takes no input.
 */
export const schedulerLayer = ({ intervalMs }: SchedulerOptions) =>
  Layer.effect(
    Scheduler,
    Effect.gen(function* () {
      let tickedAt: number | null = null;
      const directory = yield* Directory;
      const placement = yield* Placement;
      const timers = yield* Timers;
      const { schedules } = timers;
      const takeUp = yield* makeTakeUp;

      const poll = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        yield* timers.tellAgain(now - TOLD_LONG_AGO_MS);
        yield* takeUp.again;
        tickedAt = now;
      });
      const follow = Effect.gen(function* () {
        for (const id of yield* directory.news) yield* takeUp.project(id);
      });
      /** A change of the directory in the meantime is applied on its own. */
      const move = Effect.gen(function* () {
        yield* placement.moves;
        let lookCount = 0;
        for (const knownProject of directory.all()) {
          const { id: projectId } = knownProject.project;
          schedules.drop(projectId, (id) => !placement.isHere(id));
          const ids = cronTriggers(knownProject).map(({ slug }) => triggerActorId(projectId, slug));
          if (ids.some((id) => placement.isHere(id) && schedules.get(id) === null))
            yield* takeUp.project(projectId);
          lookCount += ids.length;
          if (lookCount < PLACES_AT_A_TIME) continue;
          lookCount = 0;
          yield* Effect.yieldNow;
        }
      });

      yield* Effect.forkScoped(Effect.forever(follow));
      yield* Effect.forkScoped(Effect.forever(move));
      yield* runDuty("scheduler", { round: poll, periodMs: intervalMs });
      return {
        state: Effect.map(Clock.currentTimeMillis, (now) => ({
          tickedAt,
          late: now - (tickedAt ?? timers.since) > 2 * intervalMs,
          scheduled: schedules.size,
        })),
      };
    }),
  );

/** Applies projects: keeps their cursors in the store, and gives timers to their triggers that live here. */
const makeTakeUp = Effect.gen(function* () {
  const projects = yield* Projects;
  const directory = yield* Directory;
  const placement = yield* Placement;
  const timers = yield* Timers;
  const turns = yield* Semaphore.make(TAKEN_UP_AT_ONCE);
  const pause = yield* Pause;
  const underWay = yield* FiberMap.make<string, void>();
  /** Projects whose change is under way, has crashed, or waits for the end of the pause. */
  const left = new Set<string>();

  const takeUp = Effect.fnUntraced(function* (knownProject: KnownProject) {
    const { project } = knownProject;
    const definitions = new Map(
      cronTriggers(knownProject).map((definition) => [definition.slug, definition]),
    );
    const cursors = yield* projects.keepCursors({
      projectId: project.id,
      projectVersion: project.version,
      schedules: new Map([...definitions].map(([slug, one]) => [slug, scheduleText(one)])),
      now: yield* Clock.currentTimeMillis,
    });
    left.delete(project.id);
    // A newer version is on its way here.
    if (cursors === null) return;
    const counts = cursors.flatMap(({ slug, accountedUntil }): [string, FirstLook][] => {
      const definition = definitions.get(slug);
      const id = triggerActorId(project.id, slug);
      if (definition === undefined || !placement.isHere(id)) return [];
      const due = nextDue(definition, accountedUntil) ?? Infinity;
      return [[id, { due, schedule: scheduleText(definition), from: accountedUntil }]];
    });
    timers.schedules.keep(project.id, new Map(counts));
    yield* timers.changed;
  });
  const project = (id: string) =>
    Effect.suspend(() => {
      const knownProject = directory.known(id);
      if (knownProject === null) return Effect.void;
      left.add(id);
      // The polls after the pause apply it.
      if (pause.isOn) return Effect.void;
      // A project that waits for the database holds no turn meanwhile. A newer version interrupts the wait of an older
      // one.
      const round = dutyPart("scheduler", turns.withPermit(takeUp(knownProject)));
      return Effect.asVoid(FiberMap.run(underWay, id, round));
    });
  return {
    project,
    /** Projects whose change has crashed or waited. */
    again: Effect.suspend(() =>
      Effect.forEach(
        [...left].filter((id) => !FiberMap.hasUnsafe(underWay, id)),
        project,
        { discard: true },
      ),
    ),
  };
});
