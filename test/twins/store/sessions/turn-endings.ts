/** Tells people when the agent rests after a turn (../turn-endings.ts). */
import type { ConversationStep } from "../../../../src/store/conversations/steps.ts";
import { sessionTurnEndedEvent } from "../../../../src/store/event-rows.ts";
import type { EndedTurn } from "../../../../src/store/ports/sessions/sessions.ts";
import { comesToRest, fateAtEnd, fateAtRest } from "../../../../src/store/turn-endings.ts";
import type { ConversationRow, TableSet } from "../tables.ts";

interface Ended {
  readonly turn: EndedTurn;
  readonly now: number;
}

const tell = (tables: TableSet, id: string, { turn, now }: Ended): void => {
  const session = tables.sessions.get(id)?.record;
  if (session === undefined) return;
  const { projectId, name, triggerSlug } = session;
  const open = [...tables.changeRequests.values()].flatMap(({ record }) =>
    record.sessionId === id && record.status === "open" ? [record.number] : [],
  );
  const of = { name: name ?? triggerSlug, changeRequest: open.length === 0 ? null : Math.max(...open) };
  tables.events.append([sessionTurnEndedEvent({ projectId, sessionId: id, at: now }, turn, of)]);
};

/** A turn of the session has ended and is written. */
export const tellAtEnd = (tables: TableSet, id: string, { turn, now }: Ended): void => {
  const row = tables.conversations.get(id);
  const fate = fateAtEnd(turn, row?.snapshot ?? null);
  if (row !== undefined) tables.conversations.set(id, { ...row, turnToTell: fate === "waits" ? turn : null });
  if (fate === "told") tell(tables, id, { turn, now });
};

/** A step of the conversation. @returns the turn that waits after it */
export const tellAtRest = (
  tables: TableSet,
  { turnToTell: turn }: ConversationRow,
  step: ConversationStep,
): EndedTurn | null => {
  if (turn === null || !comesToRest(step)) return turn;
  if (fateAtRest(turn, step) === "told") tell(tables, step.id, { turn, now: step.now });
  return null;
};
