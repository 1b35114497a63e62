/**
 * Learns from a sandbox's daemon how each of the agent's turns ended, and writes it to the session. The request stays
 * open until a turn ends, so the answer comes at once and an idle agent costs nothing.
 *
 *  U1 A turn's end is written once: the daemon's turn number distinguishes a repeated answer from a new one.
 *  U2 If several turns end between two answers, only the last one is reported.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { storableConversationTurn, storableTurn, type NumberedTurn } from "../../domain/session/last-turn.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider, type DaemonLink } from "../../sandbox/port.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Measures } from "../../telemetry/port.ts";
import { withLink } from "../../services/answered.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import type { SaveOccasions } from "../sandboxes/continuous-saves.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { backoff } from "../../ground/backoff.ts";

/** If a daemon does not answer, it is asked again: soon after a short break, rarely if it stays silent. */
const AGAIN = backoff("500 millis", "30 seconds");

interface Turns {
  readonly sandboxId: string;
  readonly sessionId: string;
}

interface Followed extends Turns {
  readonly link: DaemonLink;
  /** Hears of each end after it is written. */
  readonly occasions: SaveOccasions;
}

/** @returns a function that follows the turns in one sandbox. It never ends. */
export const turnFollower = Effect.gen(function* () {
  const sessions = yield* Sessions;
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const sign = yield* serviceContext;
  const measures = yield* Measures;

  const note = Effect.fnUntraced(function* (
    { sandboxId, sessionId }: Turns,
    { number, conversation, ...turn }: NumberedTurn,
  ): Effect.fn.Return<void, StoreError> {
    const storedTurn = storableTurn(turn);
    if (storedTurn === null) return;
    const now = yield* Clock.currentTimeMillis;
    const session = yield* sessions.noteTurn(sessionId, {
      sandboxId,
      number,
      ...storedTurn,
      conversation: storableConversationTurn(conversation),
      now,
    });
    if (session !== null) measures.count("turns_total", { state: storedTurn.state });
    if (session === null || storedTurn.state !== "failed") return;
    yield* Effect.logWarning("a turn failed", {
      project: session.projectId,
      session: sessionId,
      sandbox: sandboxId,
      ...storedTurn.error,
    });
  });

  return ({ sandboxId, sessionId, occasions, ...first }: Followed): Effect.Effect<never> => {
    let after = 0;
    let knownLink: DaemonLink | null = first.link;
    const next = Effect.gen(function* () {
      // After a failure the link is looked up again: the sandbox's node may have a new address.
      const link = knownLink ?? (yield* withLink(provider, sandboxId));
      knownLink = null;
      const turn = yield* daemon.turn(link, yield* sign(sandboxId, sessionId), after);
      knownLink = link;
      if (turn === null || turn.number <= after) return;
      yield* waitOutOutage("turns", note({ sandboxId, sessionId }, turn));
      after = turn.number;
      occasions.endTurn(storableConversationTurn(turn.conversation)?.message_id ?? null);
    });
    return Effect.forever(Effect.retry(next, AGAIN)).pipe(Effect.orDie);
  };
});
