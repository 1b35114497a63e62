/** Handlers of api/sandbox.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { newPassword } from "../../services/entropy.ts";
import { repositoryUrl } from "../../domain/environment.ts";
import { tokenHash } from "../../domain/ids.ts";
import { CloneCredentials } from "../../store/ports/clone-credentials.ts";
import { Sessions } from "../../store/ports/sessions.ts";
import { Caller } from "../api/access.ts";
import { Api } from "../api/api.ts";
import { answering } from "./answers.ts";
import { forbidden } from "../authorize.ts";
import { Addresses, Limits } from "../limits.ts";
import { instant } from "./wire.ts";

/** The user name of every minted credential. Only the password matters. */
const CLONE_USER = "session";

/**
 * Mints a password for the caller's own session. Authentication has already checked that the sandbox is provisioning or
 * active: a service key ends with its sandbox.
 */
const cloneCredential = Effect.fnUntraced(function* (projectId: string) {
  const caller = yield* Caller;
  const session = caller.sessionId === null ? null : yield* (yield* Sessions).get(caller.sessionId);
  if (session === null || caller.sandboxId === null || session.projectId !== projectId)
    return yield* forbidden(caller, { by: "token" });
  const { cloneCredentialTtlMs } = yield* Limits;
  const { internalUrl } = yield* Addresses;
  const now = yield* Clock.currentTimeMillis;
  const password = yield* newPassword;
  const expiresAt = now + cloneCredentialTtlMs;
  yield* (yield* CloneCredentials).mint({
    hash: tokenHash(password),
    projectId,
    sessionId: session.id,
    sandboxId: caller.sandboxId,
    expiresAt,
    now,
  });
  return {
    repo_url: repositoryUrl(internalUrl, projectId),
    auth: { type: "basic" as const, username: CLONE_USER, password },
    expires_at: instant(expiresAt),
    bootstrap: session.bootstrapAcceptedAt === null ? ("pending" as const) : ("done" as const),
  };
});

export const sandboxHandlers = HttpApiBuilder.group(Api, "sandbox", (handlers) =>
  handlers.handle("cloneCredential", ({ params }) => answering(cloneCredential(params.pid))),
);
