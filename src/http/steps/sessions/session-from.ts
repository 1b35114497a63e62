/** The work with which a session begins that starts from another one. */
import * as Effect from "effect/Effect";
import { Saves } from "../../../saves/port.ts";
import { Caller } from "../../api/access.ts";
import { Conflict } from "../../api/errors.ts";
import { requirePrivilege } from "../../callers/authorize.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { sessionFor } from "../answers.ts";
import type { BegunFrom } from "../../../domain/session/begun.ts";
import { sessionTitle } from "../../../domain/session/title.ts";
import { cutText } from "../../../domain/text.ts";

/** The longest title that is kept, in UTF-16 units. */
const TITLE_MAX = 200;

/** Where a session begins: at the newest save of another one, or at the save of a turn. */
export interface From {
  readonly session_id: string;
  readonly turn_id?: string;
}

/** The same who may fetch saved work with git: it may have what the API masks. */
const PRIVILEGE = "fetch_saved_work";

/**
 * Copies a save of a session.
 *
 * @param to the id of the session that is about to begin
 * @returns where its branch begins, and what it says of its saved work and where that is from
 */
export const workFrom = Effect.fnUntraced(function* (projectId: string, from: From, to: string) {
  const { session_id: sid, turn_id } = from;
  const turn = turn_id ?? null;
  const caller = yield* Caller;
  yield* requirePrivilege(caller, PRIVILEGE);
  const source = yield* sessionFor(caller, { pid: projectId, sid });
  const place = { projectId, sessionId: source.id };
  const copy = yield* (yield* Saves).copy({ ...place, turn, to }).pipe(Effect.catch(gitFailed));
  if (copy === null)
    return yield* new Conflict({
      error:
        turn === null
          ? "No work of this session is saved yet. Work is saved when a turn ends, and when the session stops."
          : "No save of this turn is kept. The saves of the last 50 turns are kept, as far as the limits allow.",
      code: "nothing_saved",
    });
  const { name, triggerSlug, initialPrompt } = source;
  const title = sessionTitle(name, triggerSlug, initialPrompt) ?? "Session";
  const begunFrom: BegunFrom = { ...from, title: cutText(title, TITLE_MAX), at: copy.saved.at };
  return { base: copy.base ?? source.baseCommit, saved: copy.saved, begunFrom };
});

/** The session did not begin. */
export const forgetWork = Effect.fnUntraced(function* (projectId: string, sessionId: string) {
  yield* Effect.ignore((yield* Saves).remove({ projectId, sessionId }));
});
