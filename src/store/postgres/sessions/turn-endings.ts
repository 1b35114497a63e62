/** Writes how turns end, and tells people when the agent rests then (../turn-endings.ts). */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { ConversationSnapshot } from "../../../machines/conversation.ts";
import { storedSnapshot, type ConversationStep } from "../../conversations/steps.ts";
import { sessionTurnEndedEvent, sessionTurnEvent } from "../../event-rows.ts";
import type { EndedTurn } from "../../ports/sessions/sessions.ts";
import { comesToRest, fateAtEnd, fateAtRest } from "../../turn-endings.ts";
import { jsonb } from "../connection/statement.ts";
import { EventLog } from "../events/event-log.ts";
import { noteFailure } from "../triggers/fires.ts";

/** What the event says of the session. */
interface Told {
  readonly projectId: string;
  readonly name: string | null;
  readonly changeRequest: number | null;
}

/** Appends the event. The caller's transaction has written, or taken, the turn. */
const makeTell = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (id: string, turn: EndedTurn, now: number) {
    const [told] = yield* sql<Told>`
      SELECT project_id AS "projectId", coalesce(name, trigger_slug) AS name, (
        SELECT max(number) FROM change_requests AS change
        WHERE change.project_id = session.project_id AND change.session_id = session.id AND change.status = 'open'
      ) AS "changeRequest" FROM project_sessions AS session WHERE id = ${id}`;
    if (told === undefined) return;
    const { projectId, ...of } = told;
    yield* events.append([sessionTurnEndedEvent({ projectId, sessionId: id, at: now }, turn, of)]);
  });
});

type StoredSnapshot = Pick<ConversationSnapshot, "state"> & {
  readonly context: Partial<ConversationSnapshot["context"]>;
};

/** `noteTurn` of the port. The session's row is locked before its conversation's: no step locks them in the other order. */
export const makeNoteTurn = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const tell = yield* makeTell;
  return Effect.fnUntraced(function* (id: string, turn: EndedTurn, now: number) {
    const [noted] = yield* sql<{ readonly projectId: string; readonly isFired: boolean }>`
      UPDATE project_sessions SET last_turn = ${jsonb(turn)}
      WHERE id = ${id} AND state_context ->> 'sandboxId' = ${turn.sandboxId}
        AND (last_turn IS NULL OR last_turn ->> 'sandboxId' <> ${turn.sandboxId}
          OR (last_turn ->> 'number')::numeric < ${turn.number})
      RETURNING project_id AS "projectId", fire_id IS NOT NULL AS "isFired"`;
    if (noted === undefined) return null;
    if (noted.isFired) yield* noteFailure(sql, id);
    yield* events.append([sessionTurnEvent({ projectId: noted.projectId, sessionId: id, at: now }, turn)]);
    const [row] = yield* sql<StoredSnapshot & { readonly isWaiting: boolean }>`
      SELECT state, state_context AS context, turn_to_tell IS NOT NULL AS "isWaiting" FROM conversations
      WHERE session_id = ${id} FOR NO KEY UPDATE`;
    const fate = fateAtEnd(turn, row === undefined ? null : storedSnapshot(row.state, row.context));
    const waits = fate === "waits" ? jsonb(turn) : null;
    if (waits !== null || row?.isWaiting === true)
      yield* sql`UPDATE conversations SET turn_to_tell = ${waits}::jsonb WHERE session_id = ${id}`;
    if (fate === "told") yield* tell(id, turn, now);
    return { projectId: noted.projectId };
  });
});

/** Tells of the turn that waits when a step of the conversation comes to rest. The caller holds the conversation's lock. */
export const makeTellAtRest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const tell = yield* makeTell;
  return Effect.fnUntraced(function* (step: ConversationStep) {
    if (!comesToRest(step)) return;
    const [waiting] = yield* sql<{ readonly turn: EndedTurn | null }>`
      SELECT turn_to_tell AS turn FROM conversations WHERE session_id = ${step.id}`;
    const turn = waiting?.turn ?? null;
    if (turn === null) return;
    yield* sql`UPDATE conversations SET turn_to_tell = NULL WHERE session_id = ${step.id}`;
    if (fateAtRest(turn, step) === "told") yield* tell(step.id, turn, step.now);
  });
});
