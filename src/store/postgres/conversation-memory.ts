/** The memory of a conversation's actor: its snapshot and commands, and the items that its steps write. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type {
  ConversationCommand,
  ConversationEvent,
  ConversationSnapshot,
} from "../../machines/conversation.ts";
import { ConversationDraft } from "../conversation-draft.ts";
import { noteStep, snapshotOf, stepConcerns, type ConversationStep } from "../conversation-steps.ts";
import { transitionOf } from "../../machines/transition.ts";
import { Fenced, type Memory, type PendingCommand } from "../ports/journal.ts";
import { json, stored } from "./connection/statement.ts";
import { locked, makeRoom, namedItems, write } from "./conversation-rows.ts";
import { appendFor, noteCrash, pendingColumn, removeCommands, unsettledActors } from "./outbox.ts";
import { keeping } from "./transition-rows.ts";
import { makeTellAtRest } from "./turn-endings.ts";

interface MemoryRow {
  readonly state: ConversationSnapshot["state"];
  readonly context: Partial<ConversationSnapshot["context"]>;
  readonly version: number;
  readonly pending: readonly PendingCommand<ConversationCommand>[];
}

const KIND = "conversation";

/** @param changed tells readers that the conversation has changed. */
export const makeConversationMemory = Effect.fnUntraced(function* (
  changed: (sessionId: string) => Effect.Effect<void, SqlError>,
) {
  const sql = yield* SqlClient.SqlClient;
  const tellAtRest = yield* makeTellAtRest;

  const load = (id: string) =>
    Effect.map(
      sql<MemoryRow>`
        SELECT state, state_context AS context, version, ${pendingColumn(sql, { kind: KIND, id })}
        FROM conversations WHERE session_id = ${id}`,
      ([row]) => {
        if (row === undefined) return null;
        const { state, context, version, pending } = row;
        return { snapshot: snapshotOf(state, context), version, pending };
      },
    );

  const save = Effect.fnUntraced(function* (step: ConversationStep) {
    const { id, version, after, completes } = step;
    const before = yield* locked(sql, id);
    const moved = yield* sql`
      WITH saved AS (
        UPDATE conversations SET state = ${after.state}, state_context = ${json(after.context)}, version = version + 1
        WHERE session_id = ${id} AND version = ${version} RETURNING 1
      )${keeping(sql, transitionOf(step), { kind: KIND, id, version: version + 1, given: "saved" })}
      SELECT 1 FROM saved`;
    if (before === null || moved.length === 0) return yield* new Fenced({ id });
    const actor = { kind: KIND, id } as const;
    if (completes !== null) yield* removeCommands(sql, actor, [completes]);
    const pending = yield* appendFor(sql, actor, step);
    const named = yield* namedItems(sql, id, { ids: stepConcerns(step), nativeIds: [] });
    const draft = new ConversationDraft(
      before,
      named.map(({ item }) => item),
    );
    noteStep(draft, step);
    yield* makeRoom(sql, draft);
    yield* tellAtRest(step);
    const { changes } = yield* write(sql, draft);
    if (changes.length > 0) yield* changed(id);
    return { version: version + 1, pending };
  });

  const memory: Memory<ConversationSnapshot, ConversationEvent, ConversationCommand> = {
    load: (id) => load(id).pipe(stored("conversationMemory.load")),
    save: (step) => sql.withTransaction(save(step)).pipe(stored("conversationMemory.save")),
    complete: (id, commandIds) =>
      removeCommands(sql, { kind: KIND, id }, commandIds).pipe(stored("conversationMemory.complete")),
    crashed: (id, commandId, crash) =>
      noteCrash(sql, { kind: KIND, id }, { ...crash, commandId }).pipe(stored("conversationMemory.crashed")),
  };
  const unsettled = unsettledActors(sql, KIND).pipe(stored("conversationMemory.unsettled"));
  return { memory, unsettled };
});
