/**
 * Restarts work that crashed, within a budget that is stated where the work starts. A
 * database outage is not a crash: it is logged at most once a minute and waited out for as long as it takes.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { isTagged } from "effect/Predicate";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import { thrownText } from "../ground/thrown.ts";
import { failure, type Failure } from "../domain/failure.ts";
import type { StoreError } from "../store/ports/journal.ts";

/** Restart intensity: `restarts` crashes within `withinMs` are tolerated. The next one is not. */
export interface RestartBudget {
  readonly restarts: number;
  readonly withinMs: number;
}

/** The work crashed more often than its budget allows. `reason` is the last crash's message. */
export class RestartsExhausted extends Schema.TaggedError<RestartsExhausted>()("RestartsExhausted", {
  work: Schema.String,
  reason: Schema.String,
}) {}

/** `base` doubling up to `cap`, each with a jitter of 20 %, so that crashed actors do not restart in step. */
export const backoff = (base: Duration.Input, cap: Duration.Input) =>
  Schedule.exponential(base).pipe(
    Schedule.modifyDelay(({ duration }) =>
      Effect.succeed(Duration.min(duration, Duration.fromInputUnsafe(cap))),
    ),
    Schedule.jittered,
  );

/** Between two attempts, in ms: the first pause, doubling up to the longest. */
export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
}
/** While the database is away. */
export const OUTAGE_PAUSES: Pauses = { firstMs: 50, longestMs: 5_000 };
/** After a crash. */
export const CRASH_PAUSES: Pauses = { firstMs: 100, longestMs: 5_000 };

const pausing = ({ firstMs, longestMs }: Pauses) => backoff(firstMs, longestMs);
/** Created once, since every command of every actor uses them. */
const OUTAGE = pausing(OUTAGE_PAUSES);
const CRASH = pausing(CRASH_PAUSES);

/** Waits out a database outage (`OUTAGE_PAUSES`). */
export const waitOutOutage = <A, E, R>(
  work: string,
  effect: Effect.Effect<A, E | StoreError, R>,
): Effect.Effect<A, Exclude<E, StoreError>, R> =>
  Effect.retry(
    Effect.tapError(effect, (error) =>
      isStoreError(error)
        ? Effect.logWarning("the database cannot be reached; the service waits and tries again", {
            work,
            error,
          })
        : Effect.void,
    ),
    { while: isStoreError, schedule: OUTAGE },
  ) as Effect.Effect<A, Exclude<E, StoreError>, R>;

const isStoreError = (error: unknown): boolean => isTagged(error, "StoreError");

/** The failure that people see for work that was given up. `reason` is the last crash's message. */
export const givenUp = (reason: string): Failure =>
  failure("internal_error", `the service failed: ${reason}`);

/** Runs `effect` until it ends without a crash (a defect), or the budget is spent. */
export const supervise = Effect.fnUntraced(function* <A, E, R>(
  effect: Effect.Effect<A, E | StoreError, R>,
  options: {
    readonly work: string;
    readonly budget: RestartBudget;
    /** Hears of each crash. */
    readonly crashed?: (reason: string) => Effect.Effect<void>;
  },
): Effect.fn.Return<A, Exclude<E, StoreError> | RestartsExhausted, R> {
  const { work, budget } = options;
  let crashes: readonly number[] = [];
  const attempt = Effect.catchCauseIf(
    waitOutOutage(work, effect),
    Cause.hasDies,
    Effect.fnUntraced(function* (cause) {
      const now = yield* Clock.currentTimeMillis;
      crashes = [...crashes.filter((at) => now - at < budget.withinMs), now];
      yield* Effect.logError("work crashed", cause).pipe(
        Effect.annotateLogs({ work, crashes: crashes.length }),
      );
      const reason = thrownText(Cause.squash(cause));
      yield* options.crashed?.(reason) ?? Effect.void;
      return yield* new Crashed({ reason });
    }),
  );
  return yield* Effect.retry(attempt, {
    while: (error) => error instanceof Crashed && crashes.length <= budget.restarts,
    schedule: CRASH,
  }).pipe(
    Effect.mapError((error) =>
      error instanceof Crashed ? new RestartsExhausted({ work, reason: error.reason }) : error,
    ),
  );
});

class Crashed extends Schema.TaggedError<Crashed>()("Crashed", { reason: Schema.String }) {}
