/**
 * Sees to it that every due instant reaches its trigger (spec 6 "Cron fires"): a poll over the heap of next instants
 * (`schedules.ts`) tells each trigger's actor what falls due before the next poll, and exact timers bring the instant itself
 * (api.md 4 "Cron").
 *
 *  Q1 The poll asks nothing outside this process: no hang of a database, a repository or an actor delays it.
 *  Q2 What is due when follows the directory: a change of a project is taken up as soon as it is known, each project by
 *     itself.
 *  Q3 Where a trigger starts counting, and up to where it has counted, is the store's cursor: a restart goes on from there.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as FiberMap from "effect/FiberMap";
import * as Layer from "effect/Layer";
import * as Semaphore from "effect/Semaphore";
import type { CronTriggerDefinition } from "../domain/trigger.ts";
import type { TriggerEvent } from "../machines/trigger.ts";
import { Projects } from "../store/port.ts";
import { Actors } from "./actors.ts";
import { Directory, type KnownProject } from "./directory.ts";
import { scheduleOf, Schedules, triggerActorId, type Scheduled, type Wanted } from "./schedules.ts";
import { dutyRound } from "./supervisor.ts";
import { Timers } from "./timers.ts";

/** Actors that are told of their instants at the same time. */
const TOLD_AT_ONCE = 256;
/** Projects whose change is taken up at the same time. */
const TAKEN_UP_AT_ONCE = 8;

const REMOVED: TriggerEvent = { type: "definition.changed", enabled: false, schedule: null, next: null };

export interface SchedulerOptions {
  /** PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS. */
  readonly intervalMs: number;
}

/** What is due when, and until which instant actors go on by themselves. */
export class DueInstants extends Context.Service<
  DueInstants,
  {
    readonly schedules: Schedules;
    /** The next poll comes at this instant, ms: what falls due later stays in the heap. */
    readonly horizon: () => number;
    readonly moveHorizon: (to: number) => void;
  }
>()("platform/actors/DueInstants") {}

export const dueInstantsLayer: Layer.Layer<DueInstants> = Layer.sync(DueInstants, () => {
  let horizon = 0;
  return {
    schedules: new Schedules(),
    horizon: () => horizon,
    moveHorizon: (to) => {
      horizon = to;
    },
  };
});

/** What is known of the poll, for whoever must notice that it stands still (api.md 4 listing, 9 `/readyz`). */
export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** When the last poll was complete, in ms since the epoch, null before the first; late: two intervals went by since. */
    readonly state: Effect.Effect<{
      readonly tickedAt: number | null;
      readonly late: boolean;
      /** Cron triggers it looks after. */
      readonly scheduled: number;
    }>;
  }
>()("platform/actors/Scheduler") {}

/** The project's cron triggers that have due instants: enabled ones of an active project, paused or not. */
const cronTriggersOf = ({ project, manifest }: KnownProject): readonly CronTriggerDefinition[] =>
  project.status === "active"
    ? manifest.triggers.filter(
        (trigger): trigger is CronTriggerDefinition => trigger.type === "cron" && trigger.enabled,
      )
    : [];

/** Tells actors of their instants; who cannot be reached is told again by a later poll. */
const makeTell = Effect.gen(function* () {
  const actors = yield* Actors;
  const timers = yield* Timers;
  const scope = yield* Effect.scope;
  const tellDue = ({ id, schedule, due }: Scheduled) =>
    Effect.ignore(actors.trigger(id, { type: "definition.changed", enabled: true, schedule, next: due }));
  /**
   * The message of its instant was lost, or its actor was, or its timer. It hears of the instant and that it has come, and
   * takes neither twice.
   */
  const tellAgain = (scheduled: Scheduled) =>
    Effect.andThen(
      tellDue(scheduled),
      Effect.suspend(() =>
        scheduled.due === null
          ? Effect.void
          : Effect.ignore(actors.trigger(scheduled.id, { type: "timer.elapsed", due: scheduled.due })),
      ),
    );
  const inBackground = <A>(of: readonly A[], tell: (one: A) => Effect.Effect<void>) =>
    of.length === 0
      ? Effect.void
      : Effect.asVoid(
          Effect.forkIn(
            Effect.forEach(of, (one) => Effect.catchDefect(tell(one), () => Effect.void), {
              concurrency: TOLD_AT_ONCE,
              discard: true,
            }),
            scope,
          ),
        );
  return {
    due: (scheduled: readonly Scheduled[]) => inBackground(scheduled, tellDue),
    again: (scheduled: readonly Scheduled[]) => inBackground(scheduled, tellAgain),
    /** What was revoked, and what falls due now. One that is both hears of them in this order: the other ends as disabled. */
    replaced: (revoked: readonly string[], scheduled: readonly Scheduled[]) => {
      const due = new Map(scheduled.map((one) => [one.id, one]));
      const again = revoked.map((id) => ({ id, next: due.get(id) }));
      for (const id of revoked) due.delete(id);
      const revoking = inBackground(again, ({ id, next }) =>
        Effect.andThen(timers.disarm(id), Effect.ignore(actors.trigger(id, REMOVED))).pipe(
          Effect.andThen(next === undefined ? Effect.void : tellDue(next)),
        ),
      );
      return Effect.andThen(revoking, inBackground([...due.values()], tellDue));
    },
  };
});

/** The poll on its interval, and the directory's changes as they come. Takes no input (style.md, background duties). */
export const schedulerLayer = ({ intervalMs }: SchedulerOptions) =>
  Layer.effect(
    Scheduler,
    Effect.gen(function* () {
      const startedAt = yield* Clock.currentTimeMillis;
      let tickedAt: number | null = null;
      const projects = yield* Projects;
      const directory = yield* Directory;
      const { schedules, horizon, moveHorizon } = yield* DueInstants;
      const tell = yield* makeTell;

      const poll = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        moveHorizon(now + intervalMs);
        yield* tell.due(schedules.takeUntil(horizon()));
        yield* tell.again(schedules.overdue(now));
        tickedAt = now;
      });

      const takeUp = Effect.fnUntraced(function* (known: KnownProject) {
        const { project } = known;
        const definitions = new Map(cronTriggersOf(known).map((definition) => [definition.slug, definition]));
        const now = yield* Clock.currentTimeMillis;
        const cursors = yield* projects.keepCursors({
          projectId: project.id,
          projectVersion: project.version,
          schedules: new Map([...definitions].map(([slug, one]) => [slug, scheduleOf(one)])),
          now,
        });
        // Another version is on its way here.
        if (cursors === null) return;
        const wanted = cursors.flatMap(({ slug, accountedUntil }): [string, Wanted][] => {
          const definition = definitions.get(slug);
          return definition === undefined
            ? []
            : [[triggerActorId(project.id, slug), { definition, accountedUntil }]];
        });
        const revoked = schedules.replace(project.id, new Map(wanted), now);
        yield* tell.replaced(revoked, schedules.takeUntil(horizon()));
      });
      const turns = yield* Semaphore.make(TAKEN_UP_AT_ONCE);
      const underWay = yield* FiberMap.make<string, void>();
      const follow = Effect.gen(function* () {
        const ids = yield* directory.news;
        for (const known of ids.flatMap((id) => directory.known(id) ?? [])) {
          // Whoever waits for the database holds no turn meanwhile; a newer version ends the waiting of a former one.
          const round = dutyRound("scheduler", turns.withPermit(takeUp(known)));
          yield* FiberMap.run(underWay, known.project.id, round);
        }
      });

      yield* Effect.forkScoped(Effect.forever(follow));
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(poll, Effect.sleep(intervalMs))));
      return {
        state: Effect.map(Clock.currentTimeMillis, (now) => ({
          tickedAt,
          late: now - (tickedAt ?? startedAt) > 2 * intervalMs,
          scheduled: schedules.size,
        })),
      };
    }),
  );
