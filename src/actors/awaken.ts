/**
 * Starts a session again that the service stopped by itself, because something waits for its agent. Without a free slot, it
 * waits for the next start.
 */
import * as Effect from "effect/Effect";
import { isPause } from "../domain/session/session.ts";
import { Saves } from "../saves/port.ts";
import { sandboxToGoOn } from "../services/sessions/warm-pool.ts";
import { People } from "../store/ports/people/people.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import type { Session } from "../store/ports/sessions/sessions.ts";
import { StartLimits } from "../services/sessions/start-limits.ts";
import { Actors } from "../services/actors.ts";

/** Without its saved work a session does not go on. It waits for the next start. */
const areSavesThere = Effect.fnUntraced(function* ({ id: sessionId, projectId }: Session) {
  const check = yield* Effect.result((yield* Saves).check({ projectId, sessionId }));
  if (check._tag === "Failure")
    yield* Effect.logWarning("a session waits for the node that has its saved work", {
      session: sessionId,
      error: check.failure,
    });
  return check._tag === "Success";
});

/** Does nothing for a session that runs, or that stops or was stopped for another reason. A stop under way ends first. */
export const awaken = Effect.fnUntraced(function* (session: Session) {
  const isStopping = isPause(session.ending);
  const reason = isStopping ? session.ending : session.stopReason;
  if (!isStopping && (session.status !== "stopped" || !isPause(reason))) return;
  const project = yield* (yield* Projects).get(session.projectId);
  if (project?.status !== "active") return;
  if (session.origin === "session" && !(yield* (yield* People).isActive(session.createdBy))) return;
  const refusal = yield* (yield* StartLimits).refusal(session);
  if (refusal !== null)
    return yield* Effect.logWarning("a session does not go on by itself", {
      session: session.id,
      why: refusal,
    });
  // The agent goes on with what it did. An idle session of a trigger begins with what was pushed, as always.
  const restoreSaved = session.origin === "session" || reason === "outdated";
  if (restoreSaved && session.saved !== null && !(yield* areSavesThere(session))) return;
  const sandboxId = yield* sandboxToGoOn(session);
  yield* Effect.catchTag(
    (yield* Actors).session(session.id, { type: "restart.requested", sandboxId, restoreSaved }),
    "CapReached",
    () => Effect.void,
  );
});
