/** Handlers of api/sessions/sandbox.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { mintCredential } from "../../services/sessions/clone-credential.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Caller } from "../api/access.ts";
import { withApiErrors } from "../steps/answers.ts";
import { forbidden } from "../callers/authorize.ts";
import { Addresses, Limits } from "../limits.ts";
import { SandboxGroup } from "../api/sessions/sandbox.ts";
import { Platform } from "../api/platform.ts";

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
  return yield* mintCredential({ internalUrl, cloneCredentialTtlMs }, session, caller.sandboxId);
});

export const sandboxHandlers = HttpApiBuilder.group(Platform.add(SandboxGroup), "sandbox", (handlers) =>
  handlers.handle("cloneCredential", ({ params }) => withApiErrors(cloneCredential(params.pid))),
);
