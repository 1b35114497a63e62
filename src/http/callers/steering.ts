/** Another person steers a session: its person's own credentials are suspended before the act takes effect (domain/connector/own-credential.ts). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { steersForAnother } from "../../domain/connector/own-credential.ts";
import { PRIVILEGES, type SteeringPrivilege } from "../../domain/person/privileges.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";

export const noteSteering = Effect.fnUntraced(function* (
  { user }: Principal,
  session: Pick<Session, "id" | "origin" | "createdBy">,
  privilege: SteeringPrivilege,
) {
  if (!steersForAnother(session, user.id)) return;
  const by = { userId: user.id, act: PRIVILEGES[privilege].act, now: yield* Clock.currentTimeMillis };
  yield* (yield* Suspensions).suspend(session.id, by);
});
