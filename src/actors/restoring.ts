/**
 * Gives a booting sandbox its session's saved work, and says on the session what came back. The daemon tells the agent, and has
 * a note in the conversation (daemon/briefing.ts).
 */
import * as Effect from "effect/Effect";
import { notRestored, type Restored } from "../domain/save/saved.ts";
import { LONG_SAVE_MS } from "../domain/save/order.ts";
import { Saves } from "../saves/port.ts";
import { Sessions } from "../store/ports/sessions.ts";

interface Place {
  readonly sandboxId: string;
  readonly sessionId: string;
}

/** Both functions may be repeated. */
export const restorer = Effect.gen(function* () {
  const saves = yield* Saves;
  const sessions = yield* Sessions;
  return {
    /** Gives a sandbox the saves that it waits for. */
    restore: Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place) {
      const session = yield* sessions.get(sessionId);
      if (session === null) return;
      const { projectId } = session;
      const restored = yield* Effect.timeoutOrElse(saves.restore({ projectId, sessionId, sandboxId }), {
        duration: LONG_SAVE_MS,
        orElse: () =>
          Effect.succeed(notRestored("the saved work could not be brought back within 10 minutes")),
      });
      yield* sessions.noteRestored(sessionId, { sandboxId, restored });
    }),
    /** Records what a sandbox brought back. */
    note: Effect.fnUntraced(function* ({ sandboxId, sessionId }: Place, told: Restored | null) {
      const session = yield* sessions.get(sessionId);
      if (session?.sandboxId !== sandboxId) return;
      // The service knows what it gave, unless it ended before the answer. Daemons of former versions fetched it by themselves.
      if (told === null || session.restored?.error === null) return;
      yield* sessions.noteRestored(sessionId, { sandboxId, restored: told });
    }),
  };
});
