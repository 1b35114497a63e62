import * as Cause from "effect/Cause";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";

/** `base` doubling up to `cap`, each with a jitter of 20 %, so that those that failed together do not try again in step. */
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

export const pausing = ({ firstMs, longestMs }: Pauses) => backoff(firstMs, longestMs);

/**
 * `Effect.retry` that makes its schedule when the work fails first. Most work succeeds, and making a schedule takes
 * longer than most of it.
 */
export const tryAgain = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  options: Effect.Retry.Options<E>,
): Effect.Effect<A, E, R> =>
  Effect.catchCauseIf(effect, Cause.hasFails, (cause) => {
    let isFirst = true;
    const again = Effect.suspend(() => {
      if (!isFirst) return effect;
      isFirst = false;
      return Effect.failCause(cause);
    });
    return Effect.retry(again, options);
  });
