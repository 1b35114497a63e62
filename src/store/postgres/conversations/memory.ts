/** The memory of a conversation's actor: its snapshot and commands, and the items that its steps write. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { ConversationCommand, ConversationSnapshot } from "../../../machines/conversation.ts";
import type { ConversationEvent } from "../../../machines/conversation-events.ts";
import { ConversationDraft } from "../../conversations/draft.ts";
import { noteStep, storedSnapshot, stepConcerns, type ConversationStep } from "../../conversations/steps.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { lockConversation, makeRoom, namedItems, write } from "./rows.ts";
import { makeTellAtRest } from "../sessions/turn-endings.ts";

/** @param changed tells readers that the conversation has changed. */
export const makeConversationMemory = Effect.fnUntraced(function* (
  noteChange: (sessionId: string) => Effect.Effect<void, SqlError>,
) {
  const sql = yield* SqlClient.SqlClient;
  const tellAtRest = yield* makeTellAtRest;

  const writes = Effect.fnUntraced(function* (step: ConversationStep) {
    const { id } = step;
    const before = yield* lockConversation(sql, id);
    const finish = Effect.fnUntraced(function* () {
      if (before === null) return;
      const items = yield* namedItems(sql, id, { ids: stepConcerns(step), nativeIds: [] });
      const draft = new ConversationDraft(
        before,
        items.map(({ item }) => item),
      );
      noteStep(draft, step);
      yield* makeRoom(sql, draft);
      yield* tellAtRest(step);
      const { changes } = yield* write(sql, draft);
      if (changes.length > 0) yield* noteChange(id);
    });
    return { columns: {}, finish };
  });

  return yield* makeActorMemory<ConversationSnapshot, ConversationEvent, ConversationCommand, object>({
    kind: "conversation",
    name: "conversationMemory",
    table: "conversations",
    key: "session_id",
    state: "state",
    returning: "session_id",
    complete: ({ state, context }) => storedSnapshot(state, context),
    isOneStatement: () => false,
    writes,
  });
});
