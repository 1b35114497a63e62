/**
 * Another person steers a session: its person's own credentials are suspended, and her own subscription is taken out of its sandbox, before
 * the act takes effect (domain/connector/own-credential.ts, domain/agents/subscription.ts).
 */
import * as Effect from "effect/Effect";
import { steersForAnother } from "../../domain/connector/own-credential.ts";
import { PRIVILEGES, type SteeringPrivilege } from "../../domain/person/privileges.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { makeSteered } from "../../services/connectors/own-credentials.ts";
import { OwnSubscriptions } from "../../services/projects/own-subscriptions.ts";
import { Conflict, Unavailable } from "../api/errors.ts";

const subscriptionStays = () =>
  new Unavailable({
    error:
      "The own subscription of the person who started the session may still be in its sandbox, which does not answer. Try again in a moment.",
    code: "subscription_in_use",
  });

/** For what another person may do without steering, but must not while she could read the subscription: a program in the sandbox may show it. */
export const requireNoSubscription = Effect.fnUntraced(function* (
  { user }: Principal,
  session: Pick<Session, "id" | "origin" | "createdBy">,
) {
  if (!steersForAnother(session, user.id)) return;
  if (yield* (yield* OwnSubscriptions).isInside(session.id))
    return yield* new Conflict({
      error:
        "The own subscription of the person who started the session is in its sandbox, so programs there answer her alone. Send the agent a message to take the session over.",
      code: "subscription_in_use",
    });
});

export const noteSteering = Effect.fnUntraced(function* (
  { user }: Principal,
  session: Pick<Session, "id" | "origin" | "createdBy">,
  privilege: SteeringPrivilege,
) {
  const steer = yield* makeSteered;
  yield* steer(session, user, PRIVILEGES[privilege].act).pipe(
    Effect.catchTag("SubscriptionStays", () => Effect.fail(subscriptionStays())),
  );
});
