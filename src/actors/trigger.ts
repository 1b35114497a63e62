/** Makes happen what the trigger machine decides: its timer, and what becomes of a due instant (api.md 4 "Cron"). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { instantsBetween, parseCron } from "../domain/cron.ts";
import type { CronTriggerDefinition } from "../domain/trigger.ts";
import { trigger, type TriggerCommand, type TriggerEvent } from "../machines/trigger.ts";
import { Faults } from "../store/faults.ts";
import { StoreError } from "../store/journal.ts";
import { Admissions } from "../store/port.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { Directory, type KnownProject } from "./directory.ts";
import { newUuid } from "./entropy.ts";
import { Firing } from "./firing.ts";
import { startActor, type Handlers } from "./host.ts";
import { DueInstants } from "./scheduler.ts";
import { scheduleOf, type Scheduled } from "./schedules.ts";
import { Timers } from "./timers.ts";
import { volatileMemory } from "./volatile.ts";

export interface TriggerActorOptions extends EntityOptions {
  /** An instant that was missed for longer is not fired any more, ms (PLATFORM_CATCHUP_WINDOW_MS). */
  readonly catchupWindowMs: number;
  /** Rows of the ledger are kept this long, ms (PLATFORM_FIRE_RETENTION_MS): older instants need none. */
  readonly fireRetentionMs: number;
}

/** Later than this after it was due an instant was missed: the service stood still, or its clock was set (C15). */
const MISSED_AFTER_MS = 60_000;
/** Rows of missed instants that are written together. */
const SKIP_BATCH = 1000;
/** One attempt at a row; another follows. A hang is its own trigger's alone. */
const DEADLINE = "30 seconds";
/** Admission of the account is full, or the project is of another version: the instant waits for its turn. */
const AGAIN = Schedule.spaced("100 millis");

const inTime = <A, E, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreError, R> =>
  Effect.timeoutOrElse(attempt, {
    duration: DEADLINE,
    orElse: () => Effect.fail(new StoreError({ operation: "fire", cause: new Error("it hangs") })),
  });

/** The trigger entities. What they must know is what is armed: an actor that left memory takes it up from there. */
export const triggerActors = (options: TriggerActorOptions) =>
  actorLayer(
    "trigger",
    Effect.fnUntraced(function* (id: string) {
      const timers = yield* Timers;
      const armed = timers.armed(id);
      const first = trigger.start({});
      return yield* startActor({
        id,
        machine: trigger,
        memory: volatileMemory(
          armed === null ? first : { ...first, snapshot: { state: "armed", context: armed }, commands: [] },
        ),
        handlers: yield* handlersOf(id, options),
        mailbox: 64,
        restarts: { restarts: 5, withinMs: 30_000 },
      });
    }),
    options,
  );

/** A due instant with everything it is decided by. */
interface Due {
  readonly known: KnownProject;
  readonly definition: CronTriggerDefinition;
  readonly scheduled: Scheduled;
  readonly at: number;
}

/** The project is of another version by now. */
class Stale extends Error {
  readonly _tag = "Stale";
}

/** The two ways in which an instant gets its row. */
const makeRows = Effect.gen(function* () {
  const admissions = yield* Admissions;
  const firing = yield* Firing;

  const fire = Effect.fnUntraced(function* ({ known, definition }: Due, at: number) {
    const { cron: schedule, timezone, slug, prompt } = definition;
    const request = {
      project: known.project,
      trigger: definition,
      kind: "cron" as const,
      prompt: { is: "cron" as const, template: { prompt, slug, schedule, timezone, dueAtMs: at } },
      request: null,
      userId: known.project.createdBy,
      deliveryId: null,
      scheduledFor: at,
      replayOf: null,
      atCap: "queue" as const,
    };
    const admission = yield* inTime(firing.fire(request));
    if (admission.outcome === "stale") return yield* Effect.fail(new Stale());
  });

  const skip = Effect.fnUntraced(function* (
    { known, definition }: Due,
    reason: "missed" | "paused",
    instants: readonly number[],
  ) {
    if (instants.length === 0) return;
    const { project } = known;
    const skipped = {
      accountId: project.accountId,
      projectId: project.id,
      projectVersion: project.version,
      triggerSlug: definition.slug,
      reason,
      instants: yield* Effect.forEach(instants, (dueAt) => Effect.map(newUuid, (id) => ({ id, dueAt }))),
      now: yield* Clock.currentTimeMillis,
    };
    const isDone = yield* inTime(admissions.skip(skipped));
    if (!isDone) return yield* Effect.fail(new Stale());
  });
  return { fire, skip };
});

const makeAccountFor = Effect.fnUntraced(function* (options: TriggerActorOptions) {
  const { fire, skip } = yield* makeRows;

  /** All due instants up to now have passed: rows say so, and the newest fires where it may. */
  const catchUp = Effect.fnUntraced(function* (due: Due, now: number) {
    const reason = due.known.project.triggersPaused ? "paused" : "missed";
    const { cron, timezone } = due.definition;
    const range = { firstMs: Math.max(due.at, now - options.fireRetentionMs), untilMs: now };
    let passed: number[] = [];
    let newest: number | null = null;
    for (const instant of instantsBetween(Result.getOrThrow(parseCron(cron)), timezone, range)) {
      if (newest !== null) passed.push(newest);
      newest = instant;
      if (passed.length < SKIP_BATCH) continue;
      yield* skip(due, reason, passed);
      passed = [];
    }
    yield* skip(due, reason, passed);
    if (newest === null) return now;
    const fires = reason === "missed" && now - newest <= options.catchupWindowMs;
    yield* fires ? fire(due, newest) : skip(due, reason, [newest]);
    return newest;
  });

  /** Ends when the instant has its row. @returns up to which instant the trigger is accounted for. */
  return Effect.fnUntraced(function* (due: Due) {
    const now = yield* Clock.currentTimeMillis;
    if (due.known.project.triggersPaused) return yield* catchUp(due, now);
    const isMissed = due.at < due.scheduled.since || now - due.at > MISSED_AFTER_MS;
    if (isMissed) return yield* catchUp(due, now);
    yield* fire(due, due.at);
    return due.at;
  });
});

const handlersOf = Effect.fnUntraced(function* (id: string, options: TriggerActorOptions) {
  const directory = yield* Directory;
  const { schedules, horizon } = yield* DueInstants;
  const timers = yield* Timers;
  const faults = yield* Faults;
  const accountFor = yield* makeAccountFor(options);
  const [projectId = "", slug = ""] = id.split("/");
  /** An actor that the cluster has replaced ends its work late: it takes no timer away that the one in its place has armed. */
  let own = timers.armed(id) ?? undefined;

  /** The trigger as it is now; null where the instant is not its any more (threats.md C18: decided at the claim). */
  const claimed = (at: number): Due | null => {
    const scheduled = schedules.get(id);
    const known = directory.known(projectId);
    const definition = known?.triggers.get(slug);
    if (scheduled === null || known === null || definition?.type !== "cron" || !definition.enabled)
      return null;
    if (known.project.status !== "active" || scheduleOf(definition) !== scheduled.schedule) return null;
    return scheduled.due === null || at < scheduled.due
      ? null
      : { known, definition, scheduled, at: scheduled.due };
  };

  const attempt = (at: number) =>
    Effect.gen(function* () {
      const due = claimed(at);
      if (due === null) return null;
      const upTo = yield* accountFor(due);
      return schedules.accounted(due.scheduled, { upTo, until: horizon() });
    });

  /** The row of an instant is unique: performed again, it fires no second time. */
  const fireInstant = (at: number): Effect.Effect<TriggerEvent, StoreError> =>
    Effect.gen(function* () {
      faults("instant.due");
      const next = yield* attempt(at).pipe(
        Effect.tapError((error) =>
          error._tag === "Stale" ? Effect.asVoid(directory.refresh(projectId)) : Effect.void,
        ),
        Effect.retry({
          while: (error) => error._tag === "AdmissionBusy" || error._tag === "Stale",
          schedule: AGAIN,
        }),
        Effect.catchTags({ AdmissionBusy: Effect.die, Stale: Effect.die }),
      );
      faults("instant.accounted");
      return { type: "instant.accounted" as const, due: at, next };
    });

  const handlers: Handlers<TriggerEvent, TriggerCommand> = {
    armTimer: {
      perform: ({ due, schedule }) =>
        Effect.suspend(() => {
          own = { due, schedule };
          return Effect.as(timers.arm(id, own), undefined);
        }),
    },
    disarmTimer: {
      perform: () =>
        Effect.suspend(() => (own === undefined ? Effect.void : timers.disarm(id, own))).pipe(
          Effect.as(undefined),
        ),
    },
    fireInstant: {
      perform: ({ due }) => fireInstant(due),
      gaveUp: ({ due }) => ({ type: "instant.accounted", due, next: null }),
    },
  };
  return handlers;
});
