/** Creates the first records of an empty database, and updates what every start must update before it serves. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { newAccessToken, newUuid } from "./services/entropy.ts";
import type { Config } from "./config.ts";
import { tokenHash } from "./domain/ids.ts";
import { Identity } from "./store/ports/identity.ts";

/**
 * Creates the first account in an empty database, and applies the configured caps.
 *
 * @returns the new account-wide token, which cannot be shown again. Null if an account existed, or if the operator
 * chose the token (PLATFORM_BOOTSTRAP_TOKEN).
 */
export const bootstrap = Effect.fnUntraced(function* (config: Config) {
  const identity = yield* Identity;
  const token = config.bootstrapToken ?? (yield* newAccessToken);
  const isNew = yield* identity.bootstrap({
    accountId: yield* newUuid,
    userId: yield* newUuid,
    tokenId: yield* newUuid,
    tokenHash: tokenHash(token),
    tier: config.defaultTier,
    cap: config.tierCaps[config.defaultTier],
    now: yield* Clock.currentTimeMillis,
  });
  yield* identity.applyCaps(config.tierCaps);
  return isNew && config.bootstrapToken === null ? token : null;
});
