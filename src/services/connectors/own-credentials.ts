/** Whose own credentials work in a session: the one place that asks domain/connector/own-credential.ts, for connectors and for providers of models. */
import * as Effect from "effect/Effect";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";

interface OwnedSession {
  readonly id: string;
  readonly origin: "session" | "trigger";
  readonly createdBy: string;
}

/** @returns the person whose credentials work, or who suspended them. A trigger's session acts for no person. */
export const ownCredentials = Effect.fnUntraced(function* ({ id, origin, createdBy }: OwnedSession) {
  if (origin === "trigger") return "no_person" as const;
  const suspension = yield* (yield* Suspensions).of(id);
  return suspension === null ? { personId: createdBy } : { suspension };
});

/** The same as an id. Null: no person's work. */
export const personOf = (session: OwnedSession) =>
  Effect.map(ownCredentials(session), (own): string | null =>
    own !== "no_person" && "personId" in own ? own.personId : null,
  );
