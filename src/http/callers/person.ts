/** Whose own credentials a session would have that the caller starts (domain/connector/own-credential.ts). */
import * as Effect from "effect/Effect";
import { credentialOwner } from "../../services/connectors/own-credentials.ts";
import { Caller } from "../api/access.ts";

/** A person's id. Null for a trigger's agent, and for one whose session another person steered (own-credential.ts O2). */
export const callingPerson = Effect.gen(function* () {
  const { user, origin, sessionId } = yield* Caller;
  if (origin === "trigger") return null;
  return sessionId === null
    ? user.id
    : yield* credentialOwner({ id: sessionId, origin: "session", createdBy: user.id });
});
