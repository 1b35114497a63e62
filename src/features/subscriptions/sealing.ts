/** Subscriptions, sealed as secrets of projects are, each bound to its account and its id. */
import * as Effect from "effect/Effect";
import type * as Result from "effect/Result";
import { NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import type { Sealed, Subscription } from "./ports/subscriptions.ts";

type Place = Pick<Subscription, "accountId" | "id">;

/** The name under which one is sealed. */
export const sealedName = (id: string): string => `subscription ${id}`;

const sealPlace = ({ accountId, id }: Place, version: number) => ({
  projectId: accountId,
  name: sealedName(id),
  version,
});

export const sealContent = Effect.fnUntraced(function* (place: Place, value: string, version: number) {
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const envelope = sealSecret((yield* Keyring).secrets, sealPlace(place, version), { value, nonce });
  return { version, envelope } satisfies Sealed;
});

/** A failure: the master key is another one. */
export const openContent = (
  keyring: Keyring["Service"],
  { sealed, ...place }: Subscription,
): Result.Result<string, unknown> =>
  unsealSecret(keyring.secrets, sealPlace(place, sealed.version), sealed.envelope);
