/**
 * Ends unneeded sessions at the servers of connectors: those of sessions that stopped, of connectors and credentials
 * that changed, and those without a call for a while. Each node looks after its own. While none is kept, it does not run.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import { ConnectorServers, type ServerSessions } from "../connectors/port.ts";
import { endedOwners } from "../services/connectors/server-sessions.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";
import { Identity } from "../store/ports/people/identity.ts";

/** One round over the sessions that are kept. */
const endUnneeded = (sessions: ServerSessions) =>
  Effect.gen(function* () {
    const owners = yield* endedOwners(sessions.list(), yield* Clock.currentTimeMillis);
    yield* sessions.end(owners);
  });

/** Begins the duty in the caller's scope. Where no session is ever kept there is no fiber, so that it moves no seed of the simulation. */
export const watchServerSessions = Effect.gen(function* () {
  const { sessions } = yield* ConnectorServers;
  if (sessions === null) return;
  const identity = yield* Identity;
  const signal = Latch.makeUnsafe(false);
  const hear = (id: string | null) => {
    if (id === null || sessions.list().some(({ owner }) => owner.sessionId === id)) signal.openUnsafe();
  };
  const { periodMs } = DUTIES.server_sessions;
  // An ending that comes during a round is looked at in the next one.
  const pause = Effect.raceFirst(Effect.sleep(periodMs), signal.await);
  const wait = sessions.any.pipe(Effect.andThen(pause), Effect.andThen(signal.close));
  const first = sessions.any.pipe(Effect.andThen(identity.endings(hear)), Effect.andThen(wait));
  yield* runDuty("server_sessions", { round: endUnneeded(sessions), first, wait });
});
