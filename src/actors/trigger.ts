/**
 * Interprets the trigger machine's commands: sets its timer, and fires or skips due instants (api.md 4 "Cron").
 *
 * A look depends on three things, each read when the look begins: the definition in the directory, the cursor in the
 * store, and the clock. Messages do not carry them.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { instantsBetween, parseCron } from "../domain/trigger/cron.ts";
import type { CronTriggerDefinition } from "../domain/trigger/trigger.ts";
import {
  trigger,
  type TriggerCommand,
  type TriggerEvent,
  type TriggerSnapshot,
} from "../machines/trigger.ts";
import { Faults } from "../store/ports/faults.ts";
import { StoreError } from "../store/ports/journal.ts";
import { Measures } from "../telemetry/port.ts";
import { Admissions } from "../store/ports/triggers/admissions.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { CursorReads } from "../services/triggers/cursors.ts";
import { Directory, type KnownProject } from "../services/directory.ts";
import { newUuid } from "../services/entropy.ts";
import { Firing, instantWords } from "../services/triggers/firing.ts";
import { TransitionRecord } from "../services/transition-record.ts";
import { startActor, type ActorLimits, type Handlers } from "./host.ts";
import { nextDue, scheduleText } from "./schedules.ts";
import { Timers } from "./timers.ts";
import { volatileMemory } from "./volatile.ts";

export const TRIGGER_LIMITS: ActorLimits = { mailbox: 64, restarts: { restarts: 5, withinMs: 30_000 } };

export interface TriggerActorOptions extends EntityOptions {
  /** A missed instant that is older than this no longer fires, ms (PLATFORM_CATCHUP_WINDOW_MS). */
  readonly catchupWindowMs: number;
  /** The ledger keeps its rows this long, ms (PLATFORM_FIRE_RETENTION_MS). Older instants need no row. */
  readonly fireRetentionMs: number;
}

/**
 * An instant counts as missed if it is handled later than this: the service stood still, or its clock was set (C15).
 */
const MISSED_AFTER_MS = 60_000;
/** How many rows of missed instants are written together. */
const SKIP_BATCH = 1000;
/** Deadline of one attempt at a row. Another attempt follows, so a hang delays only its own trigger. */
const DEADLINE = "30 seconds";
/** Admission of the account is full, or the project's version has changed: the instant is retried. */
const AGAIN = Schedule.spaced("100 millis");

const inTime = <A, E, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreError, R> =>
  Effect.timeoutOrElse(attempt, {
    duration: DEADLINE,
    orElse: () => Effect.fail(new StoreError({ operation: "fire", cause: new Error("it hangs") })),
  });

/** The trigger entities. They keep no state: each look starts from the store's cursor. */
export const triggerActors = (options: TriggerActorOptions) =>
  actorLayer(
    "trigger",
    Effect.fnUntraced(function* (id: string) {
      const { keep } = yield* TransitionRecord;
      return yield* startActor({
        id,
        machine: trigger,
        memory: volatileMemory<TriggerSnapshot, TriggerEvent, TriggerCommand>(trigger.start({}), (step) =>
          keep({ kind: "trigger", id }, step),
        ),
        handlers: yield* makeHandlers(id, options),
        ...TRIGGER_LIMITS,
      });
    }),
    { ...options, again: { type: "timer.elapsed" } },
  );

/** A due instant with everything that its decision depends on. */
interface Due {
  readonly known: KnownProject;
  readonly definition: CronTriggerDefinition;
  /** Due instants before this one were missed by a downtime, ms. */
  readonly since: number;
  readonly at: number;
}

/** The project's version has changed. */
class Stale extends Error {
  readonly _tag = "Stale";
}

/** The two ways in which an instant gets its row: by firing or by skipping. */
const makeRows = Effect.gen(function* () {
  const admissions = yield* Admissions;
  const firing = yield* Firing;
  const measures = yield* Measures;

  const skip = Effect.fnUntraced(function* (
    { known, definition }: Due,
    reason: "missed" | "paused",
    instants: readonly number[],
  ) {
    if (instants.length === 0) return;
    const { project } = known;
    const skipRecord = {
      accountId: project.accountId,
      projectId: project.id,
      projectVersion: project.version,
      triggerSlug: definition.slug,
      reason,
      instants: yield* Effect.forEach(instants, (dueAt) => Effect.map(newUuid, (id) => ({ id, dueAt }))),
      now: yield* Clock.currentTimeMillis,
    };
    const isDone = yield* inTime(admissions.skip(skipRecord));
    if (!isDone) return yield* Effect.fail(new Stale());
  });
  const fire = Effect.fnUntraced(function* (due: Due, at: number) {
    const { known, definition } = due;
    const request = {
      project: known.project,
      trigger: definition,
      kind: "cron" as const,
      ...instantWords(definition, at),
      request: null,
      userId: known.project.createdBy,
      deliveryId: null,
      scheduledFor: at,
      replayOf: null,
      by: "instant" as const,
    };
    const admission = yield* inTime(firing.fire(request));
    if (admission.outcome === "stale") return yield* Effect.fail(new Stale());
    measures.observe("cron_lateness_seconds", {}, ((yield* Clock.currentTimeMillis) - at) / 1000);
    // The cursor moves past it without another row.
    if (admission.outcome === "accounted") yield* skip(due, "missed", [at]);
  });

  return { fire, skip };
});

const makeAccountFor = Effect.fnUntraced(function* (options: TriggerActorOptions) {
  const { fire, skip } = yield* makeRows;

  /** All due instants up to now have passed. They get rows, and the newest one fires if it may. */
  const catchUp = Effect.fnUntraced(function* (due: Due, now: number) {
    const reason = due.known.project.triggersPaused ? "paused" : "missed";
    const { cron, timezone } = due.definition;
    const range = { firstMs: Math.max(due.at, now - options.fireRetentionMs), untilMs: now };
    let passedInstants: number[] = [];
    let newest: number | null = null;
    for (const instant of instantsBetween(Result.getOrThrow(parseCron(cron)), timezone, range)) {
      if (newest !== null) passedInstants.push(newest);
      newest = instant;
      if (passedInstants.length < SKIP_BATCH) continue;
      yield* skip(due, reason, passedInstants);
      passedInstants = [];
    }
    yield* skip(due, reason, passedInstants);
    if (newest === null) return now;
    const fires = reason === "missed" && now - newest <= options.catchupWindowMs;
    yield* fires ? fire(due, newest) : skip(due, reason, [newest]);
    return newest;
  });

  /** Completes when the instant has its row. @returns the instant up to which the trigger is accounted for. */
  return Effect.fnUntraced(function* (due: Due) {
    const now = yield* Clock.currentTimeMillis;
    if (due.known.project.triggersPaused) return yield* catchUp(due, now);
    const isMissed = due.at < due.since || now - due.at > MISSED_AFTER_MS;
    if (isMissed) return yield* catchUp(due, now);
    yield* fire(due, due.at);
    return due.at;
  });
});

/**
 * The project's cron trigger as it is now. Null if it does not exist, if it is disabled or if its project is not
 * active.
 */
const cronDefinition = (knownProject: KnownProject | null, slug: string): CronTriggerDefinition | null => {
  const definition = knownProject?.project.status === "active" ? knownProject.triggers.get(slug) : undefined;
  return definition?.type === "cron" && definition.enabled ? definition : null;
};

const makeHandlers = Effect.fnUntraced(function* (id: string, options: TriggerActorOptions) {
  const directory = yield* Directory;
  const cursors = yield* CursorReads;
  const timers = yield* Timers;
  const faults = yield* Faults;
  const accountFor = yield* makeAccountFor(options);
  const [projectId = "", slug = ""] = id.split("/");

  /**
   * Decided again at each attempt (threats.md C18). If the cursor has another schedule, a newer definition is on its
   * way here.
   */
  const attempt = Effect.gen(function* () {
    const cursor = yield* cursors.read({ projectId, slug });
    const entry = directory.known(projectId);
    const definition = cronDefinition(entry, slug);
    if (entry === null || definition === null || cursor === null) return null;
    const schedule = scheduleText(definition);
    if (cursor.schedule !== schedule) return null;
    const at = nextDue(definition, cursor.accountedUntil);
    if (at === null) return null;
    if (at > (yield* Clock.currentTimeMillis)) return { due: at, schedule };
    faults("instant.due");
    const upTo = yield* accountFor({ known: entry, definition, since: timers.since, at });
    faults("instant.accounted");
    const due = nextDue(definition, upTo);
    return due === null ? null : { due, schedule };
  });

  /** The row of an instant is unique, so performing this again does not fire twice. */
  const accountForDue = attempt.pipe(
    Effect.tapError((error) =>
      error._tag === "Stale" ? Effect.asVoid(directory.refresh(projectId)) : Effect.void,
    ),
    Effect.retry({
      while: (error) => error._tag === "AdmissionBusy" || error._tag === "Stale",
      schedule: AGAIN,
    }),
    Effect.catchTags({ AdmissionBusy: Effect.die, Stale: Effect.die }),
    Effect.map((next): TriggerEvent => ({ type: "due.accounted", next })),
  );

  const handlers: Handlers<TriggerEvent, TriggerCommand> = {
    armTimer: { perform: ({ due, schedule }) => Effect.as(timers.arm(id, { due, schedule }), undefined) },
    accountForDue: { perform: () => accountForDue, gaveUp: () => ({ type: "look.failed" }) },
  };
  return handlers;
});
