/** The saved work of a project's sessions. */
import * as Effect from "effect/Effect";
import { sessionTitle } from "../../../domain/session/title.ts";
import { withAudit } from "../../../services/audit.ts";
import { Saves } from "../../../saves/port.ts";
import { Sessions } from "../../../store/ports/sessions/sessions.ts";
import { Caller } from "../../api/access.ts";
import { notFound } from "../../api/errors.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { requireProject, sessionFor } from "../answers.ts";
import { instant } from "../wire.ts";

type SessionPath = { readonly pid: string; readonly sid: string };

/** Deletes a save of an earlier sandbox. */
export const deleteSave = Effect.fnUntraced(function* (params: SessionPath & { readonly id: string }) {
  const session = yield* sessionFor(yield* Caller, params);
  const place = { projectId: session.projectId, sessionId: session.id };
  const isThere = yield* (yield* Saves).forgetEarlier(place, params.id).pipe(Effect.catch(gitFailed));
  if (!isThere) return yield* notFound("save");
  const removal = (yield* Sessions).forgetEarlier(session.id, params.id);
  yield* removal.pipe(
    withAudit(() => ({ action: "session.save_deleted", target: session.id, changes: { save: params.id } })),
  );
});

/** The turns of a session from which another one can begin. */
export const turnSaves = Effect.fnUntraced(function* (params: SessionPath) {
  const session = yield* sessionFor(yield* Caller, params);
  const place = { projectId: session.projectId, sessionId: session.id };
  const turns = yield* (yield* Saves).turns(place).pipe(Effect.catch(gitFailed));
  return { turns: turns.map(({ id, at }) => ({ id, at: instant(at) })) };
});

/** The sessions of a project with the sizes of their saves, largest first. */
export const projectSaves = Effect.fnUntraced(function* (projectId: string) {
  yield* requireProject(yield* Caller, projectId);
  const sessions = yield* Sessions;
  const { sessions: sizes, away } = yield* (yield* Saves).sizes(projectId).pipe(Effect.catch(gitFailed));
  const rows = yield* Effect.forEach(sizes, ({ sessionId, bytes }) =>
    Effect.map(sessions.get(sessionId), (session) =>
      session === null || session.deletedAt !== null
        ? []
        : [
            {
              id: session.id,
              name: sessionTitle(session.name, session.triggerSlug, session.initialPrompt),
              status: session.status,
              bytes,
            },
          ],
    ),
  );
  return { bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0), sessions: rows.flat(), away };
});
