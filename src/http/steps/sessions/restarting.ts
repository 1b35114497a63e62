/** How a session that has ended starts again: on request, or with a message to it. */
import * as Effect from "effect/Effect";
import { Actors } from "../../../services/actors.ts";
import { auditedAsk } from "../../../services/audit.ts";
import { callingSession, requireCounted } from "../../../services/projects/counted-models.ts";
import { requireChosenProvider } from "../../../services/projects/models.ts";
import { sandboxToGoOn } from "../../../services/sessions/warm-pool.ts";
import { CHILDREN_MAX, isLive } from "../../../domain/session/session.ts";
import { GitBackend } from "../../../git/port.ts";
import type { CapReached } from "../../../store/ports/journal.ts";
import { People } from "../../../store/ports/people/people.ts";
import { Saves } from "../../../saves/port.ts";
import { type Session, Sessions } from "../../../store/ports/sessions/sessions.ts";
import { Caller } from "../../api/access.ts";
import { Conflict, notFound } from "../../api/errors.ts";
import { capReached, childrenFull, gitFailed, projectInactive, savesAway } from "../../answers/refusals.ts";
import { noteSteering } from "../../callers/steering.ts";
import { projectFor, sessionFor } from "../answers.ts";

/** Why a session does not start again, as the audit record says it. */
const refusedFor = ({ told }: { readonly told: { readonly accepted: boolean } | null }): string | null => {
  if (told === null) return "session_cap_reached";
  return told.accepted ? null : "not_restartable";
};

export interface RestartWish {
  /** Whether the new sandbox brings saved work back. Absent: only after a stop for an outdated daemon. */
  readonly restore_saved?: boolean;
}

/**
 * A session to which a limit of spend applies does not boot again if its calls could not be counted. One whose runtime is pointed to a
 * provider when it starts does not boot without that provider, and no other one gets its calls.
 */
const requireStartable = Effect.fnUntraced(function* (session: Session) {
  const calling = yield* callingSession(session);
  if (calling === null) return;
  const hasProvider = requireChosenProvider(session, calling);
  yield* Effect.andThen(hasProvider, requireCounted(session, calling)).pipe(
    Effect.catchTags({
      UnknownModel: ({ message }) => new Conflict({ error: message, code: "unknown_model" }),
      LimitNeedsProvider: ({ message }) => new Conflict({ error: message, code: "limit_needs_provider" }),
      GitError: (error) => gitFailed(error),
    }),
  );
});

/** @returns the session as it was before. It begins to boot, after its stop if one is under way. */
export const restartSession = Effect.fnUntraced(function* (
  params: { readonly pid: string; readonly sid: string },
  { restore_saved: wish }: RestartWish = {},
) {
  const caller = yield* Caller;
  const session = yield* sessionFor(caller, params);
  const restoreSaved = wish ?? (session.ending ?? session.stopReason) === "outdated";
  const project = yield* projectFor(caller, params.pid);
  if (project.status !== "active") return yield* projectInactive(project);
  // A session acts for the person who started it. A trigger's session acts for no person.
  if (session.origin === "session" && !(yield* (yield* People).isActive(session.createdBy)))
    return yield* new Conflict({
      error:
        "The person who started this session is deactivated. Start a new session, with this session's branch as its base.",
      code: "user_deactivated",
    });
  const { projectId, id: sessionId } = session;
  // A new sandbox clones from the node of a hosted repository, with or without saved work.
  if (project.repository.kind === "hosted")
    yield* Effect.catch((yield* GitBackend).branchTip({ projectId }, sessionId), (error) =>
      error.code === "away" ? gitFailed(error) : Effect.void,
    );
  if (restoreSaved && session.saved !== null)
    yield* (yield* Saves).check({ projectId, sessionId }).pipe(Effect.catch(savesAway));
  const isWorking = isLive(session.status) && session.ending === null;
  if (!isWorking) yield* requireStartable(session);
  // Against an agent that stops its sessions to start others, and then starts the first ones again.
  const { parentSessionId: parent } = session;
  if (caller.sessionId !== null && parent !== null && !isLive(session.status))
    if ((yield* (yield* Sessions).liveChildren(parent)) >= CHILDREN_MAX)
      return yield* childrenFull({ limit: CHILDREN_MAX });
  if (!isWorking) yield* noteSteering(caller, session, "restart_session");
  const actors = yield* Actors;
  const sandboxId = yield* sandboxToGoOn(session);
  const row = { action: "session.restart", target: session.id } as const;
  const restart = Effect.catchTag(
    Effect.map(
      actors.session(session.id, { type: "restart.requested", sandboxId, restoreSaved }),
      (answer) => ({
        told: answer,
        cap: null,
      }),
    ),
    "CapReached",
    (cap: CapReached) => Effect.succeed({ told: null, cap }),
  );
  const { told, cap } = yield* isWorking ? restart : restart.pipe(auditedAsk(row, refusedFor));
  if (told === null) return yield* capReached(cap);
  // Deleted while this request was under way.
  if (told.snapshot.context.deleted) return yield* notFound("session");
  if (!told.accepted) {
    return yield* new Conflict({
      error: `The session is ${told.snapshot.state}. Only a stopped or failed session can be restarted.`,
      code: "not_restartable",
    });
  }
  return session;
});
