/** Delivers a message that a command carries: at least once, as long as its receiver exists. */
import * as Effect from "effect/Effect";
import type { TellError } from "../services/actors.ts";
import { backoff } from "../ground/backoff.ts";

/**
 * Retries until the message arrives. A missing receiver, or one that refuses the event, counts as delivered: the
 * receiver's own record already holds the newer state.
 */
export const deliver = (delivery: Effect.Effect<unknown, TellError>): Effect.Effect<undefined> =>
  delivery.pipe(
    Effect.catchTag("ActorNotFound", () => Effect.void),
    Effect.retry(backoff("50 millis", "5 seconds")),
    Effect.orDie,
    Effect.as(undefined),
  );
