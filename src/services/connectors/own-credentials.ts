/** Whose own credentials work in a session: the one place that asks domain/connector/own-credential.ts, for connectors and for providers of models. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { STEERING_ACTS, steersForAnother, type SteeringAct } from "../../domain/connector/own-credential.ts";
import { OwnSubscriptions } from "../projects/own-subscriptions.ts";
import { Suspensions } from "../../store/ports/connectors/suspensions.ts";

interface OwnedSession {
  readonly id: string;
  readonly origin: "session" | "trigger";
  readonly createdBy: string;
}

/** @returns the person whose credentials work, or who suspended them. A trigger's session acts for no person. */
export const ownCredentials = Effect.fnUntraced(function* ({ id, origin, createdBy }: OwnedSession) {
  if (origin === "trigger") return "no_person" as const;
  const suspension = yield* (yield* Suspensions).get(id);
  return suspension === null ? { personId: createdBy } : { suspension };
});

/** The same as an id. Null means no person's work. */
export const credentialOwner = (session: OwnedSession) =>
  Effect.map(ownCredentials(session), (own): string | null =>
    own !== "no_person" && "personId" in own ? own.personId : null,
  );

/** The end of the note in the conversation. */
const WITHOUT =
  "The agent runtime has started again, without it. It is back when she gives it back and restarts the session.";

/**
 * @returns a function to call before a person's act takes effect (own-credential.ts O1). In another person's session, that one's own credentials are
 * suspended, and her own subscription is taken out of the sandbox (domain/agents/subscription.ts). Fails with SubscriptionStays if the
 * sandbox may still have it.
 */
export const makeSteered = Effect.gen(function* () {
  const { suspend } = yield* Suspensions;
  const { withdraw } = yield* OwnSubscriptions;
  return Effect.fnUntraced(function* (
    session: OwnedSession,
    by: { readonly id: string; readonly name: string },
    act: SteeringAct,
  ) {
    if (!steersForAnother(session, by.id)) return;
    yield* suspend(session.id, { userId: by.id, act, now: yield* Clock.currentTimeMillis });
    const reason = `${by.name} ${STEERING_ACTS[act]}, so the own subscription of the person who started this session was taken out of it. ${WITHOUT}`;
    yield* withdraw(session.id, reason);
  });
});
