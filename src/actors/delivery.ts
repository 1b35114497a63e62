/** Delivery of a message that a command carries: at least once, as long as its receiver exists. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type { TellError } from "./actors.ts";
import type { Told } from "./host.ts";

/** 50 ms doubling to 5 s, with jitter, until the receiver answers. */
const again = Schedule.exponential("50 millis").pipe(
  Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, Duration.seconds(5)))),
  Schedule.jittered,
);

/**
 * Tells until told. A receiver that is not there, or does not take the event any more, is as good as told: the world
 * has moved on, and the receiver's own record says how.
 */
export const told = <S>(delivery: Effect.Effect<Told<S>, TellError>): Effect.Effect<undefined> =>
  delivery.pipe(
    Effect.catchTag("ActorNotFound", () => Effect.void),
    Effect.retry(again),
    Effect.orDie,
    Effect.as(undefined),
  );
