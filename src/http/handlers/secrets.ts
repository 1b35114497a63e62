/** Handlers of api/secrets.ts. No answer, log or error contains a value (threats.md S06). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpServerResponse } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import { Directory } from "../../services/directory.ts";
import { withAudit } from "../../services/audit.ts";
import { Entropy } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { tryKey } from "../../services/projects/model-keys.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { triedProvider } from "../../domain/sandbox/model-key.ts";
import { missingSecrets } from "../../domain/manifest/required-secrets.ts";
import {
  checkSecretName,
  checkSecretSet,
  checkSecretValue,
  isMasked,
  NONCE_BYTES,
  sealedValueBytes,
  sealSecret,
  type SecretIssue,
  unsealSecret,
  invisibleCharacters,
} from "../../domain/secret/secret.ts";
import { Secrets, type StoredSecret } from "../../store/ports/projects/secrets.ts";
import { Caller } from "../api/access.ts";
import { BadRequest, Conflict, notFound, Unprocessable } from "../api/errors.ts";
import { withApiErrors, projectFor } from "../steps/answers.ts";
import { wireForm } from "../steps/wire.ts";
import { SecretsGroup, SecretWire, type Value } from "../api/secrets.ts";
import { Platform } from "../api/platform.ts";

const secretForm = wireForm(SecretWire);
const showSecret = (secret: StoredSecret, { value, now }: { readonly value: string; readonly now: number }) =>
  secretForm({
    ...secret,
    masked: isMasked(Buffer.byteLength(value)),
    unseen: invisibleCharacters(value),
    previousValidUntil:
      secret.previousUntil === null || secret.previousUntil <= now ? null : secret.previousUntil,
    provider: triedProvider(secret.name)?.id ?? null,
  });

const secretRefusal = (path: "name" | "value", issue: SecretIssue) =>
  new BadRequest({
    error: issue.message,
    code: issue.code,
    details: { issues: [{ path, message: issue.message }] },
  });

const list = Effect.fnUntraced(function* (projectId: string) {
  const project = yield* projectFor(yield* Caller, projectId);
  const { secrets, revision } = yield* (yield* Secrets).list(project.id);
  const sealed = yield* (yield* Secrets).sealed(project.id);
  const { secrets: keys } = yield* Keyring;
  // A value that cannot be opened shows nothing of itself.
  const values = new Map(
    sealed.map((row) => [row.name, Result.getOrElse(unsealSecret(keys, row, row.envelope), () => "")]),
  );
  const { env } = yield* (yield* Manifests).current(project);
  const now = yield* Clock.currentTimeMillis;
  const missing = missingSecrets(
    env.required,
    secrets.map(({ name }) => name),
  );
  return {
    secrets: secrets.map((secret) => showSecret(secret, { value: values.get(secret.name) ?? "", now })),
    declared: { required: env.required, optional: env.optional, missing },
    revision: String(revision),
  };
});

/** Fails with the provider's own words, unless it accepts the key. Other secrets are no keys, and pass. */
const acceptedKey = Effect.fnUntraced(function* (name: string, value: string) {
  const provider = triedProvider(name);
  if (provider === null) return;
  const { outcome, message, advice } = yield* tryKey(provider, value);
  if (outcome === "accepted") return;
  return yield* new Unprocessable({
    error: [message, advice, "Nothing was saved."].filter((part) => part !== null).join(" "),
    code: "provider_refused",
  });
});

export const put = Effect.fnUntraced(function* (
  params: { readonly pid: string; readonly name: string },
  { value, previous_valid_ms: previousValidMs = 0, service, try: isTried = false }: typeof Value.Type,
) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, params.pid);
  const badName = checkSecretName(params.name);
  if (badName !== null) return yield* secretRefusal("name", badName);
  const badValue = checkSecretValue(value);
  if (badValue !== null) return yield* secretRefusal("value", badValue);
  const secrets = yield* Secrets;
  const others = (yield* secrets.sealed(project.id)).filter(({ name }) => name !== params.name);
  const tooLarge = checkSecretSet([
    ...others.map(({ name, envelope }) => ({ name, valueBytes: sealedValueBytes(envelope) })),
    { name: params.name, valueBytes: Buffer.byteLength(value) },
  ]);
  if (tooLarge !== null) return yield* secretRefusal("value", tooLarge);
  if (isTried) yield* acceptedKey(params.name, value);
  const keyring = yield* Keyring;
  const entropy = yield* Entropy;
  const version = yield* secrets.nextVersion(project.id, params.name);
  const place = { projectId: project.id, name: params.name, version };
  const envelope = sealSecret(keyring.secrets, place, { value, nonce: entropy(NONCE_BYTES) });
  const now = yield* Clock.currentTimeMillis;
  const isNew = yield* secrets
    .put(
      { ...place, envelope },
      {
        userId: caller.user.id,
        now,
        service,
        ...(previousValidMs > 0 && { previousUntil: now + previousValidMs }),
      },
    )
    .pipe(
      withAudit((isCreated) => ({
        action: "secret.set",
        target: params.name,
        changes: {
          new: isCreated,
          service,
          ...(previousValidMs > 0 && { previous_valid_ms: previousValidMs }),
        },
      })),
      Effect.catchTag("Fenced", () =>
        Effect.fail(
          new Conflict({
            error: "Another request changed this secret at the same time. Try again.",
            code: "conflict",
          }),
        ),
      ),
    );
  // The receiver uses the new value before the answer is sent.
  yield* (yield* Directory).refresh(project.id);
  const secret = (yield* secrets.list(project.id)).secrets.find(({ name }) => name === params.name);
  if (secret === undefined) return yield* notFound("secret");
  return { isNew, secret: showSecret(secret, { value, now }) };
});

/** Asks the provider whether it accepts the stored key. */
const checkKey = Effect.fnUntraced(function* (params: { readonly pid: string; readonly name: string }) {
  const project = yield* projectFor(yield* Caller, params.pid);
  const provider = triedProvider(params.name);
  if (provider === null)
    return yield* new Conflict({
      error: `${params.name} is not the key of a model provider that can be asked.`,
      code: "not_a_model_key",
    });
  const sealed = (yield* (yield* Secrets).sealed(project.id)).find(({ name }) => name === params.name);
  if (sealed === undefined) return yield* notFound("secret");
  const value = unsealSecret((yield* Keyring).secrets, sealed, sealed.envelope);
  if (Result.isFailure(value))
    return yield* new Conflict({
      error: "The stored value cannot be opened with this service's master key. Set the secret again.",
      code: "secret_unreadable",
    });
  return { provider: provider.id, ...(yield* tryKey(provider, value.success)) };
});

export const secretsHandlers = HttpApiBuilder.group(Platform.add(SecretsGroup), "secrets", (handlers) =>
  handlers
    .handle("list", ({ params }) => withApiErrors(list(params.pid)))
    .handle("put", ({ params, payload }) =>
      withApiErrors(
        Effect.map(put(params, payload), ({ isNew, secret }) =>
          HttpServerResponse.jsonUnsafe(secret, { status: isNew ? 201 : 200 }),
        ),
      ),
    )
    .handle("try", ({ params }) => withApiErrors(checkKey(params)))
    .handle("delete", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          const project = yield* projectFor(yield* Caller, params.pid);
          const bad = checkSecretName(params.name);
          // A secret that was set before its name was forbidden can be deleted.
          if (bad !== null && bad.code !== "unsafe_name") return yield* secretRefusal("name", bad);
          const now = yield* Clock.currentTimeMillis;
          const row = { action: "secret.removed", target: params.name } as const;
          const removal = (yield* Secrets).remove(project.id, params.name, now);
          if (!(yield* removal.pipe(withAudit((isRemoved) => (isRemoved ? row : null)))))
            return yield* notFound("secret");
          yield* (yield* Directory).refresh(project.id);
        }),
      ),
    ),
);
