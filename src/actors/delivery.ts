/** Delivery of a message that a command carries: at least once, as long as its receiver exists. */
import * as Effect from "effect/Effect";
import type { TellError } from "./actors.ts";
import type { Told } from "./host.ts";
import { backoff } from "./supervisor.ts";

/**
 * Tells until told. A receiver that is not there, or does not take the event any more, is as good as told: the world
 * has moved on, and the receiver's own record says how.
 */
export const told = <S>(delivery: Effect.Effect<Told<S>, TellError>): Effect.Effect<undefined> =>
  delivery.pipe(
    Effect.catchTag("ActorNotFound", () => Effect.void),
    Effect.retry(backoff("50 millis", "5 seconds")),
    Effect.orDie,
    Effect.as(undefined),
  );
