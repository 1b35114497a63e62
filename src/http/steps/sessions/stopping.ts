/** How a session stops, and what its answer says of the unpushed work. */
import * as Effect from "effect/Effect";
import { Actors } from "../../../services/actors.ts";
import type { StopSave } from "../../../domain/save/order.ts";
import { countLeft } from "../../../domain/save/saved.ts";
import { isLive } from "../../../domain/session/session.ts";
import { auditedAsk } from "../../../services/audit.ts";
import { Events } from "../../../store/ports/events.ts";
import type { Principal } from "../../../store/ports/people/identity.ts";
import { Sessions, type Session } from "../../../store/ports/sessions/sessions.ts";
import { Caller } from "../../api/access.ts";
import { lackInto } from "../../callers/access.ts";
import { Conflict, Forbidden, Unavailable } from "../../api/errors.ts";
import { Limits } from "../../limits.ts";
import { sessionFor } from "../answers.ts";

/** Pause between two checks of a session that ends. Its events wake the waiting request sooner. */
const ENDED_POLL = "250 millis";
/** How long the actors may take in addition to the save, even on a busy machine. */
const ENDING_GRACE_MS = 60_000;

/** To end a session without a save, or to delete it with its saves. */
export const requireDiscard = (caller: Principal, session: Session) =>
  lackInto(caller, "discard_work", session) === null
    ? Effect.void
    : Effect.fail(
        new Forbidden({
          error:
            "An agent cannot throw away the work of a session that it did not start. Stop it with `save` set to `try` or `require`.",
          code: "forbidden",
        }),
      );

/** Stopping a session that is not live changes nothing (api.md 3). @returns the session as it was before */
export const stopSession = Effect.fnUntraced(function* (
  params: { readonly pid: string; readonly sid: string },
  { save = "try" }: { readonly save?: StopSave },
) {
  const caller = yield* Caller;
  const session = yield* sessionFor(caller, params);
  if (save === "skip") yield* requireDiscard(caller, session);
  const actors = yield* Actors;
  const stop = actors
    .session(session.id, { type: "stop.requested", save })
    .pipe(Effect.catchTag("CapReached", Effect.die));
  yield* isLive(session.status)
    ? Effect.asVoid(stop.pipe(auditedAsk({ action: "session.stop", target: session.id }, () => null)))
    : Effect.asVoid(stop);
  yield* untilEnded(session);
  return session;
});

const notSaved = ({ saved }: Session) =>
  new Conflict({
    error:
      `Not everything could be saved${saved?.error == null ? "" : `: ${saved.error}`}. The session runs on; its agent's turn was interrupted. ` +
      "Try again later, or stop it with `save` set to `try` or `skip`.",
    code: "not_saved",
    details: { pending: saved?.pending ?? [], pending_count: countLeft(saved?.pending ?? []), saved },
  });

/**
 * A running session ends when its work is saved, or the save has failed. A message may restart it soon. If everything had
 * to be saved, and was not, its end was taken back.
 */
const untilEnded = Effect.fnUntraced(function* ({ id, projectId, sandboxId }: Session) {
  const sessions = yield* Sessions;
  const events = yield* Events;
  const { saveTimeoutMs } = yield* Limits;
  const news = Effect.raceFirst(events.changed(projectId), Effect.sleep(ENDED_POLL));
  const untilEnd = Effect.gen(function* () {
    for (;;) {
      const now = yield* sessions.get(id);
      if (now === null || !isLive(now.status) || now.sandboxId !== sandboxId) return;
      if (now.status === "running" && now.ending === null) return yield* notSaved(now);
      yield* news;
    }
  });
  yield* Effect.timeoutOrElse(untilEnd, {
    duration: saveTimeoutMs + ENDING_GRACE_MS,
    orElse: () =>
      Effect.fail(
        new Unavailable({ error: "The session is still stopping. Try again in a moment.", code: "stopping" }),
      ),
  });
});
