/** Keys of providers, sealed as secrets of projects are. */
import * as Effect from "effect/Effect";
import type * as Result from "effect/Result";
import { NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import type { ModelProvider, SealedKey } from "./ports/model-providers.ts";
import { sealedName } from "./rules/provider.ts";

interface Place {
  readonly accountId: string;
  readonly id: string;
}

const sealPlace = ({ accountId, id }: Place, version: number) => ({
  projectId: accountId,
  name: sealedName(id),
  version,
});

/** A provider without a key has the empty text, so that its row looks like the others. */
export const sealKey = Effect.fnUntraced(function* (place: Place, key: string, version: number) {
  const nonce = (yield* Entropy)(NONCE_BYTES);
  const envelope = sealSecret((yield* Keyring).secrets, sealPlace(place, version), { value: key, nonce });
  return { version, envelope } satisfies SealedKey;
});

/** A failure: the master key is another one. */
export const openKey = (
  keyring: Keyring["Service"],
  provider: ModelProvider,
): Result.Result<string, unknown> =>
  unsealSecret(keyring.secrets, sealPlace(provider, provider.sealed.version), provider.sealed.envelope);
