/** Creates the first records of an empty database, and updates what every start must update before it serves. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { withAudit } from "../services/audit.ts";
import { newAccessToken, newUuid } from "../services/entropy.ts";
import type { Config } from "../settings/config.ts";
import { tokenHash } from "../domain/ids.ts";
import { neededSignInMs } from "../domain/person/sign-in.ts";
import { Identity } from "../store/ports/people/identity.ts";

/**
 * Creates the first account in an empty database, applies the configured caps, and begins the time in which people must sign in at a
 * provider, or forgets it where none is set.
 *
 * @returns the new account-wide token, which cannot be shown again. Null if an account existed, or if the operator
 * chose the token (PLATFORM_BOOTSTRAP_TOKEN).
 */
export const bootstrap = Effect.fnUntraced(function* (config: Config) {
  const identity = yield* Identity;
  const token = config.bootstrapToken ?? (yield* newAccessToken);
  const ids = { accountId: yield* newUuid, userId: yield* newUuid, tokenId: yield* newUuid };
  const first = identity.bootstrap({
    ...ids,
    tokenHash: tokenHash(token),
    tier: config.defaultTier,
    cap: config.tierCaps[config.defaultTier],
    now: yield* Clock.currentTimeMillis,
  });
  const changes = { tier: config.defaultTier, user_id: ids.userId, token_id: ids.tokenId };
  const row = { action: "account.created", target: ids.accountId, changes } as const;
  const isNew = yield* first.pipe(withAudit((isFirst) => (isFirst ? row : null)));
  yield* identity.applyCaps(config.tierCaps);
  yield* identity.countSignIns(
    neededSignInMs(config.signIn) === null ? null : yield* Clock.currentTimeMillis,
  );
  return isNew && config.bootstrapToken === null ? token : null;
});
