/**
 * Takes up what a former life of the service left undone: every actor whose outbox or state is not at rest is loaded,
 * and its commands are performed. Runs at start and on a timer, since a wake may be lost (style.md: background duties
 * take no input). After a kill -9 a session that was provisioning reaches running or failed by this alone.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { Admissions, Sandboxes, Sessions } from "../store/port.ts";
import { Actors } from "./actors.ts";
import { dutyRound } from "./supervisor.ts";

export interface RecoveryOptions {
  /** Between two looks, ms (PLATFORM_RECOVERY_INTERVAL_MS). */
  readonly intervalMs: number;
}

/** One look: wakes what is not at rest. Waking an actor that is at work changes nothing. */
export const recover = Effect.gen(function* () {
  const actors = yield* Actors;
  const { unsettled: sessions } = yield* Sessions;
  const { unsettled: sandboxes } = yield* Sandboxes;
  const { waitingAccounts } = yield* Admissions;
  for (const id of yield* sessions) yield* actors.wake("session", id);
  for (const id of yield* sandboxes) yield* actors.wake("sandbox", id);
  for (const id of yield* waitingAccounts) {
    yield* Effect.ignore(actors.account(id, { type: "cap.changed" }));
  }
});

/** The first look is part of the start; the following ones run in the layer's scope. */
export const recoveryLayer = ({ intervalMs }: RecoveryOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const look = dutyRound("recovery", recover);
      yield* look;
      yield* Effect.forkScoped(
        Effect.repeat(look, Schedule.spaced(intervalMs)).pipe(Effect.delay(intervalMs)),
      );
    }),
  );
