/** Opens the secrets of a project. No value is ever logged, recorded, or part of a failure. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { Redactor } from "../../domain/secret/redactor.ts";
import { unsealSecret } from "../../domain/secret/secret.ts";
import type { GivenSecrets } from "../../store/ports/sessions/sandboxes.ts";
import { Secrets, type SealedSecret } from "../../store/ports/projects/secrets.ts";
import { Keyring } from "../keyring.ts";

/** The secrets of a project that sandboxes get, as they are now. `given` is the record for a sandbox that has them. */
export interface OpenedSecrets {
  readonly given: GivenSecrets;
  readonly values: Readonly<Record<string, string>>;
}

const unsealPair = (
  keyring: Keyring["Service"],
  secret: SealedSecret,
): Effect.Effect<readonly [string, string]> => {
  const value = unsealSecret(keyring.secrets, secret, secret.envelope);
  return Result.isSuccess(value)
    ? Effect.succeed([secret.name, value.success])
    : Effect.die(new Error(`the secret ${secret.name} cannot be decrypted: ${value.failure}`));
};

/** All secrets of a project, those that are the service's own included. */
export const namedSecrets = Effect.fnUntraced(function* (projectId: string) {
  const keyring = yield* Keyring;
  const { sealed } = yield* (yield* Secrets).current(projectId);
  const pairs = yield* Effect.forEach(sealed, (secret) => unsealPair(keyring, secret));
  return pairs.map(([name, value]) => ({ name, value }));
});

/** Masks all values of a project's secrets, those that are the service's own included. */
export const projectRedactor = (projectId: string) =>
  Effect.map(namedSecrets(projectId), (secrets) => new Redactor(secrets.map(({ value }) => value)));

/** Opens the secrets of a project that sandboxes get, with their revision. */
export const openSecrets = Effect.fnUntraced(function* (projectId: string) {
  const secrets = yield* Secrets;
  const keyring = yield* Keyring;
  // One revision names one set of secrets: sending it twice sends the same values.
  const { revision, sealed: all } = yield* secrets.current(projectId);
  const ownSecrets = all.filter(({ service }) => !service);
  const values = yield* Effect.forEach(ownSecrets, (secret) => unsealPair(keyring, secret));
  const openedSecrets: OpenedSecrets = {
    given: { revision, versions: Object.fromEntries(ownSecrets.map(({ name, version }) => [name, version])) },
    values: Object.fromEntries(values),
  };
  return openedSecrets;
});
