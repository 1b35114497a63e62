/** How every ring waits for a database that is away. */
import * as Effect from "effect/Effect";
import { isTagged } from "effect/Predicate";
import { type Pauses, pausing, tryAgain } from "../../ground/backoff.ts";
import type { StoreError } from "./journal.ts";

/** While the database is away. */
export const OUTAGE_PAUSES: Pauses = { firstMs: 50, longestMs: 5_000 };
/** Created once, since every command of every actor uses it. */
const OUTAGE = pausing(OUTAGE_PAUSES);

/** Waits out a database outage (`OUTAGE_PAUSES`). */
export const waitOutOutage = <A, E, R>(
  work: string,
  effect: Effect.Effect<A, E | StoreError, R>,
): Effect.Effect<A, Exclude<E, StoreError>, R> =>
  tryAgain(
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
