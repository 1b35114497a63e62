/** What a session says of the work and of the turn that a sandbox was lost with. No daemon reports them any more. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { unfinishedSave } from "../../domain/save/saved.ts";
import { LOST_WORK } from "../../domain/save/shown.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Conversations } from "../../store/ports/sessions/conversations.ts";
import { Sessions, type Session } from "../../store/ports/sessions/sessions.ts";

/** The code of a turn's error. */
const CODE = "sandbox_lost";
const MESSAGE = "The agent had not finished. It does not go on by itself after a restart.";

/** @returns a function that may be called twice. The session must still name the sandbox as its own, and the conversation the turn: its close takes that. */
export const noteLost = Effect.gen(function* () {
  const conversations = yield* Conversations;
  const sessions = yield* Sessions;

  /** Without it, the session would say how the turn before ended. */
  const noteTurn = Effect.fnUntraced(function* (sandboxId: string, { id, lastTurn: last }: Session) {
    const turn = (yield* conversations.states([id])).get(id)?.turn;
    if (turn === undefined || turn.state === "idle") return;
    const isOwn = last?.sandboxId === sandboxId;
    if (isOwn && last.error?.code === CODE) return;
    const now = yield* Clock.currentTimeMillis;
    yield* sessions.noteTurn(id, {
      sandboxId,
      number: isOwn ? last.number + 1 : 1,
      state: "interrupted",
      error: { code: CODE, message: MESSAGE },
      at: new Date(now).toISOString(),
      now,
    });
  });

  return Effect.fnUntraced(function* (
    record: Effect.Effect<{ readonly sessionId: string }, StoreError>,
    sandboxId: string,
  ): Effect.fn.Return<void, StoreError> {
    const { sessionId } = yield* record;
    const session = yield* sessions.get(sessionId);
    if (session === null) return;
    yield* noteTurn(sandboxId, session);
    const { saved } = session;
    if (saved === null) return;
    yield* sessions.noteSaved(sessionId, { sandboxId, saved: unfinishedSave(saved, LOST_WORK) });
  });
});
