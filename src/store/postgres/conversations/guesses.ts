/**
 * The fast path of a report: one statement instead of a transaction with six round trips. While a text grows, each
 * report concerns only what the one before it has written. So it is decided on what this process remembers of that.
 *
 *  G1 Remembered values never decide. The statement writes only if the conversation's row is still the version that this
 *     process wrote (its xmin), and if the sandbox is current. Otherwise nothing is written, and the report is decided
 *     under the conversation's lock.
 *  G2 The statement waits for no lock, because it would then judge by what was true before it waited. Every write to a
 *     conversation makes a new version of its row, also one that changes nothing else. So a sandbox's end that closed the
 *     items after this statement's snapshot shows as another version.
 *  G3 Reports that need other rows are not guessed: an item or a turn that was not reported before, another state of the
 *     turn, a request, usage, and a conversation that is too large.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { BoundedMap } from "../../../ground/bounded-map.ts";
import type { NativeItem } from "../../../domain/conversation/conversation.ts";
import { isClosed } from "../../../domain/conversation/growing.ts";
import { itemBytes, ConversationDraft } from "../../conversations/draft.ts";
import { isNews, noteReport } from "../../conversations/notes.ts";
import type {
  ChangedConversation,
  Conversation,
  Item,
  NotedReport,
} from "../../ports/sessions/conversations.ts";
import { jsonb } from "../connection/statement.ts";
import { INSERTED_ITEMS, itemColumns, writtenState } from "./rows.ts";

/** Conversations in which a text grows. Beyond that, the earliest noted one is forgotten. */
const REMEMBERED_MAX = 1_000;
/** A longer item is not remembered. */
const ITEM_BYTES_MAX = 64 * 1024;

interface Known {
  readonly item: Item;
  /** Its links, as the runtime names them: they are resolved already (G3). */
  readonly links: string;
}

interface Remembered {
  readonly conversation: Conversation;
  readonly agentName: string;
  /** The version of the conversation's row. */
  readonly mark: string;
  /** Open items that were reported, by native id. */
  readonly items: ReadonlyMap<string, Known>;
}

const itemLinks = ({ turn_id: turn, parent_id: parent, message_id: message }: NativeItem): string =>
  JSON.stringify([turn, parent, message]);

/** Whether every name in these links has an item. */
const isResolved = (native: NativeItem, item: Item): boolean =>
  native.message_id === null &&
  native.kind !== "request" &&
  (native.turn_id === null || item.turnId !== null) &&
  (native.parent_id === null || item.parentId !== null);

export class ReportGuesses {
  readonly #left = new BoundedMap<string, Remembered>(REMEMBERED_MAX);

  /** Remembers what a report has written. `items`: what is known besides, and did not change. */
  note(report: NotedReport, memory: Remembered & Pick<ChangedConversation, "changes">): void {
    const { changes, ...rest } = memory;
    const { id } = rest.conversation;
    this.#left.delete(id);
    const items = new Map(rest.items);
    const byNative = new Map(report.items.map((native) => [native.native_id, native]));
    for (const change of changes) {
      if (change.type !== "item" || change.item.nativeId === null) continue;
      const { nativeId, status } = change.item;
      const native = byNative.get(nativeId);
      items.delete(nativeId);
      if (native === undefined || isClosed(status) || !isResolved(native, change.item)) continue;
      if (itemBytes(change.item) <= ITEM_BYTES_MAX)
        items.set(nativeId, { item: change.item, links: itemLinks(native) });
    }
    if (items.size === 0) return;
    this.#left.set(id, { ...rest, items });
  }

  /** The write as it is if nothing else has changed meanwhile. Null if the rows must be read first (G3). */
  guessDraft(
    id: string,
    report: NotedReport,
  ): { readonly draft: ConversationDraft; readonly remembered: Remembered } | null {
    const memory = this.#left.get(id);
    if (memory === undefined || report.items.length === 0) return null;
    const { conversation, agentName, items } = memory;
    if (conversation.sandbox?.id !== report.sandboxId || !isNews(conversation, report)) return null;
    if (report.turn !== null && report.turn.waiting_for !== null) return null;
    const formerItems = report.items.map((native) => {
      const cached = items.get(native.native_id);
      return cached?.links === itemLinks(native) ? cached.item : null;
    });
    if (formerItems.includes(null)) return null;
    const draft = new ConversationDraft(
      conversation,
      formerItems.filter((item) => item !== null),
    );
    noteReport(draft, conversation, { report, agentName });
    const isSameTurn = report.turn === null || report.turn.state === conversation.turn.state;
    return draft.spent.length > 0 || draft.surplus > 0 || !isSameTurn ? null : { draft, remembered: memory };
  }

  forget(id: string): void {
    this.#left.delete(id);
  }
}

/** Writes a guessed draft. @returns the row's new version; null if nothing is written (G1). */
export const writeGuessed = Effect.fnUntraced(function* (
  sql: SqlClient,
  { conversation, items }: ReturnType<ConversationDraft["finish"]>,
  { mark, sandboxId }: { readonly mark: string; readonly sandboxId: string },
) {
  const { id, sandbox } = conversation;
  const [written] = yield* sql<{ readonly mark: string }>`
    WITH held AS MATERIALIZED (
      SELECT session_id AS id FROM conversations WHERE session_id = ${id} AND xmin::text = ${mark} AND EXISTS (
        SELECT FROM project_sessions AS session JOIN session_sandboxes AS sandbox ON sandbox.session_id = session.id
        WHERE session.id = ${id}::uuid AND session.state_context ->> 'sandboxId' = ${sandboxId}
          AND sandbox.id = ${sandboxId}::uuid AND sandbox.status IN ('provisioning', 'active')
      ) FOR NO KEY UPDATE SKIP LOCKED
    ), moved AS (
      UPDATE conversations SET ${writtenState(sql, conversation)},
        sandbox_id = ${sandbox?.id ?? null}, sandbox_rev = ${sandbox?.rev ?? null}
      FROM held WHERE session_id = held.id RETURNING xmin::text AS mark
    ), written AS (
      ${sql.literal(INSERTED_ITEMS.into)}
      SELECT ${id}::uuid, ${sql.literal(INSERTED_ITEMS.columns)}
      FROM moved, jsonb_to_recordset(${jsonb(items.map(itemColumns))}::jsonb) AS ${sql.literal(INSERTED_ITEMS.row)}
      ${sql.literal(INSERTED_ITEMS.replacing)}
    )
    SELECT mark FROM moved`;
  return written?.mark ?? null;
});
