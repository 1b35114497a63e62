/**
 * Stops the sessions that a deactivated person started, and forgets her own credentials for connectors. The request that
 * deactivates her does both at once; this duty finds the rest, for example a session that was just being created. Sessions of
 * triggers act for no person and go on.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Actors } from "../services/actors.ts";
import { deliver } from "../actors/delivery.ts";
import { forgetLeft } from "../services/connectors/left-credentials.ts";
import { People } from "../store/ports/people/people.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";

/** One round. */
export const dismiss = Effect.gen(function* () {
  const actors = yield* Actors;
  for (const { id } of yield* (yield* People).unwantedSessions) {
    yield* Effect.logInfo("a session of a deactivated person is stopped", { session: id });
    yield* deliver(actors.session(id, { type: "user.deactivated" }));
  }
  yield* forgetLeft;
});

export const peopleLayer = Layer.effectDiscard(
  runDuty("people", { round: dismiss, first: "a period", periodMs: DUTIES.people.periodMs }),
);
