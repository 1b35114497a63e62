/**
 * Restarts work that crashed, within a budget that is stated where the work starts. A
 * database outage is not a crash: it is logged at most once a minute and waited out for as long as it takes.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { type Pauses, pausing, tryAgain } from "../ground/backoff.ts";
import { thrownText } from "../ground/thrown.ts";
import { failure, type Failure } from "../domain/session/failure.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { waitOutOutage } from "../store/ports/outage.ts";

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

/** After a crash. */
export const CRASH_PAUSES: Pauses = { firstMs: 100, longestMs: 5_000 };

/** Created once, since every command of every actor uses it. */
const CRASH = pausing(CRASH_PAUSES);

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
  return yield* tryAgain(attempt, {
    while: (error) => error instanceof Crashed && crashes.length <= budget.restarts,
    schedule: CRASH,
  }).pipe(
    Effect.mapError((error) =>
      error instanceof Crashed ? new RestartsExhausted({ work, reason: error.reason }) : error,
    ),
  );
});

class Crashed extends Schema.TaggedError<Crashed>()("Crashed", { reason: Schema.String }) {}
