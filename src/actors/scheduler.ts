/**
 * Sees to it that every cron trigger is armed (spec 6 "Cron fires"): a poll over the manifests in memory tells each
 * trigger its schedule and next due instant; exact timers bring the instant itself (api.md 4 "Cron").
 *
 * Timers are one heap by instant and one sleeping fiber; only an instant that is being told has a fiber of its own.
 * An instant is not lost with its message: it is told until it was taken or another timer took its place, and the poll
 * tells again whatever is armed in the past.
 */
import FlatQueue from "flatqueue";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { nextInstant, parseCron } from "../domain/cron.ts";
import type { TriggerDefinition } from "../domain/trigger.ts";
import type { TriggerEvent } from "../machines/trigger.ts";
import { Projects } from "../store/port.ts";
import type { Project } from "../store/records.ts";
import { Actors } from "./actors.ts";
import { Manifests } from "./manifests.ts";
import { dutyRound } from "./supervisor.ts";

/** The address of a trigger's actor. */
export const triggerActorId = (projectId: string, slug: string): string => `${projectId}/${slug}`;

/** Whether the scheduler serves it: an enabled cron trigger of an active project that is not paused. */
export const isScheduled = (project: Project, trigger: TriggerDefinition): boolean =>
  trigger.type === "cron" && trigger.enabled && !project.triggersPaused && project.status === "active";

/** The first due instant after one, in ms; null where there is none. */
export const nextDue = (trigger: TriggerDefinition, afterMs: number): number | null =>
  trigger.type === "cron"
    ? nextInstant(Result.getOrThrow(parseCron(trigger.cron)), trigger.timezone, afterMs)
    : null;

/** What a reading of the manifest says to a trigger's actor. */
const definition = (project: Project, trigger: TriggerDefinition, now: number): TriggerEvent =>
  trigger.type === "cron" && isScheduled(project, trigger)
    ? {
        type: "definition.changed",
        enabled: true,
        schedule: `${trigger.cron} ${trigger.timezone}`,
        next: nextDue(trigger, now),
      }
    : { type: "definition.changed", enabled: trigger.enabled, schedule: null, next: null };

const REMOVED: TriggerEvent = { type: "definition.changed", enabled: false, schedule: null, next: null };

/** What is armed for a trigger: the instant in ms since the epoch, and the schedule it came from. */
export interface Armed {
  readonly due: number;
  readonly schedule: string;
}

export class Timers extends Context.Service<
  Timers,
  {
    /** Tells the trigger `timer.elapsed` when `due` has come; replaces its former timer. */
    readonly arm: (triggerId: string, timer: Armed) => Effect.Effect<void>;
    readonly disarm: (triggerId: string) => Effect.Effect<void>;
    /** What was armed last, elapsed or not: what a trigger's actor that left memory goes on with. */
    readonly armed: (triggerId: string) => Armed | null;
  }
>()("platform/actors/Timers") {}

const elapsed = ({ due }: Armed): TriggerEvent => ({ type: "timer.elapsed", due });

/** A sleep is cut into pieces of this length, so that a clock that was set is noticed (threats.md C14, C15). */
const LONGEST_SLEEP_MS = 60_000;

/** Between two messages of one instant: 100 ms doubling to 5 s. */
const TELL_AGAIN = Schedule.modifyDelay(Schedule.exponential("100 millis"), ({ duration }) =>
  Effect.succeed(Duration.min(duration, Duration.seconds(5))),
);

export const timersLayer: Layer.Layer<Timers, never, Actors> = Layer.effect(
  Timers,
  Effect.gen(function* () {
    const actors = yield* Actors;
    const scope = yield* Effect.scope;
    const heap = new FlatQueue<string>();
    /** What counts: an entry of the heap whose instant is another is stale and dropped when it comes up. */
    const armed = new Map<string, Armed>();
    const earlier = yield* Queue.sliding<void>(1);

    const elapse = (id: string, timer: Armed) => {
      const tell = actors.trigger(id, elapsed(timer));
      const again = Effect.retry(tell, { while: () => armed.get(id) === timer, schedule: TELL_AGAIN });
      const told = Effect.catch(tell, (error) =>
        Effect.andThen(Effect.logWarning("a timer is told again", { trigger: id, error }), again),
      );
      return Effect.forkIn(Effect.ignore(told), scope);
    };
    const turn = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      for (let at = heap.peekValue(); at !== undefined && at <= now; at = heap.peekValue()) {
        const id = heap.pop();
        const timer = id === undefined ? undefined : armed.get(id);
        if (id !== undefined && timer?.due === at) yield* elapse(id, timer);
      }
      const wait = Math.min((heap.peekValue() ?? Infinity) - now, LONGEST_SLEEP_MS);
      yield* Effect.raceFirst(Effect.sleep(wait), Queue.take(earlier));
    });
    yield* Effect.forkScoped(Effect.forever(turn));

    return Timers.of({
      arm: (id, timer) =>
        Effect.suspend(() => {
          const first = heap.peekValue() ?? Infinity;
          armed.set(id, timer);
          heap.push(id, timer.due);
          return timer.due < first ? Effect.asVoid(Queue.offer(earlier, undefined)) : Effect.void;
        }),
      disarm: (id) => Effect.sync(() => void armed.delete(id)),
      armed: (id) => armed.get(id) ?? null,
    });
  }),
);

export interface SchedulerOptions {
  /** PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS. */
  readonly intervalMs: number;
}

/** What is known of the poll, for whoever must notice that it stands still (api.md 4 listing, 9 `/readyz`). */
export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** When the last poll was complete, in ms since the epoch, null before the first; late: two intervals went by since. */
    readonly state: Effect.Effect<{ readonly tickedAt: number | null; readonly late: boolean }>;
  }
>()("platform/actors/Scheduler") {}

/** The poll: on its interval, and at once when a manifest was read. Takes no input (style.md, background duties). */
export const schedulerLayer = ({ intervalMs }: SchedulerOptions) =>
  Layer.effect(
    Scheduler,
    Effect.gen(function* () {
      const startedAt = yield* Clock.currentTimeMillis;
      let tickedAt: number | null = null;
      const projects = yield* Projects;
      const manifests = yield* Manifests;
      const actors = yield* Actors;
      const timers = yield* Timers;
      /** Triggers that were told a definition: one that is gone from its manifest is told so. */
      let known: ReadonlySet<string> = new Set();

      const poll = Effect.gen(function* () {
        const seen = new Set<string>();
        for (const project of yield* projects.active) {
          const { triggers } = yield* manifests.current(project);
          const now = yield* Clock.currentTimeMillis;
          for (const trigger of triggers) {
            const id = triggerActorId(project.id, trigger.slug);
            // Webhook triggers have no timer, and so no actor to wake.
            if (trigger.type !== "cron") continue;
            seen.add(id);
            yield* Effect.ignore(actors.trigger(id, definition(project, trigger, now)));
            const timer = timers.armed(id);
            // An instant that is being fired is in the past too: its actor does not take it twice.
            if (timer !== null && timer.due < now) yield* Effect.ignore(actors.trigger(id, elapsed(timer)));
          }
        }
        for (const id of known) if (!seen.has(id)) yield* Effect.ignore(actors.trigger(id, REMOVED));
        known = seen;
        tickedAt = yield* Clock.currentTimeMillis;
      });
      const round = Effect.andThen(
        dutyRound("scheduler", poll),
        Effect.raceFirst(Effect.sleep(intervalMs), manifests.changed),
      );
      yield* Effect.forkScoped(Effect.forever(round));
      return {
        state: Effect.map(Clock.currentTimeMillis, (now) => ({
          tickedAt,
          late: now - (tickedAt ?? startedAt) > 2 * intervalMs,
        })),
      };
    }),
  );
