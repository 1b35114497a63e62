/** The git passwords of sandboxes (api.md 7): for a daemon that asks, and with the claim of one that waited. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { repositoryUrl } from "../../domain/sandbox/environment.ts";
import { tokenHash } from "../../domain/ids.ts";
import type { GitCredential } from "../../domain/sandbox/launch.ts";
import { CloneCredentials } from "../../store/ports/sessions/clone-credentials.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { newPassword } from "../entropy.ts";

/** The user name of every minted credential. Only the password matters. */
const CLONE_USER = "session";

export interface CredentialOptions {
  /** How sandboxes reach this service (api.md 8). */
  readonly internalUrl: string;
  /** How long a credential is valid, ms (PLATFORM_CLONE_CREDENTIAL_TTL_MS). */
  readonly cloneCredentialTtlMs: number;
}

/**
 * Mints a password for a sandbox of a session. It is valid while that sandbox is provisioning or active.
 *
 * @returns it, with whether the session's prompt was accepted in an earlier boot
 */
export const mintCredential = Effect.fnUntraced(function* (
  { internalUrl, cloneCredentialTtlMs }: CredentialOptions,
  {
    id: sessionId,
    projectId,
    bootstrapAcceptedAt,
  }: Pick<Session, "id" | "projectId" | "bootstrapAcceptedAt">,
  sandboxId: string,
) {
  const now = yield* Clock.currentTimeMillis;
  const password = yield* newPassword;
  const expiresAt = now + cloneCredentialTtlMs;
  const hash = tokenHash(password);
  yield* (yield* CloneCredentials).mint({ hash, projectId, sessionId, sandboxId, expiresAt, now });
  return {
    repo_url: repositoryUrl(internalUrl, projectId),
    auth: { type: "basic", username: CLONE_USER, password },
    expires_at: new Date(expiresAt).toISOString(),
    bootstrap: bootstrapAcceptedAt === null ? "pending" : "done",
  } satisfies GitCredential;
});
