/** What the first start of an empty database makes, and what every start checks before it serves. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { newAccessToken, newUuid } from "./actors/entropy.ts";
import type { Config } from "./config.ts";
import { tokenHash } from "./domain/ids.ts";
import { keyCheck, matchesKeyCheck, type MasterKey } from "./domain/secret.ts";
import { MasterKeyRefused } from "./installation.ts";
import { Identity, Secrets } from "./store/port.ts";

/**
 * Refuses a wrong master key, makes the first account where there is none, and applies the configured caps.
 *
 * @returns the new account-wide token, which nobody can be shown again; null when there was an account, or the token
 *   is the operator's own (PLATFORM_BOOTSTRAP_TOKEN).
 */
export const bootstrap = Effect.fnUntraced(function* (config: Config, key: MasterKey) {
  const secrets = yield* Secrets;
  const kept = yield* secrets.keyCheck(Buffer.from(keyCheck(key)).toString("base64"));
  if (!matchesKeyCheck(key, Buffer.from(kept, "base64"))) {
    return yield* new MasterKeyRefused({
      message:
        "The master key is not the one this database's secrets were sealed with. Restore the right key; nothing was changed.",
    });
  }
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
