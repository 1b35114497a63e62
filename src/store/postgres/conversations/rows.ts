/**
 * The rows of a conversation. A writer calls `locked` first and `write` last, in one transaction: in between no other
 * writer changes the conversation.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { attachedTo } from "../../conversations/attached.ts";
import { ConversationDraft, itemBytes, itemRecord, STRIPPED_MAX } from "../../conversations/draft.ts";
import {
  ITEMS_MOVED_MAX,
  type Conversation,
  type Item,
  type ServiceNote,
} from "../../ports/sessions/conversations.ts";
import { at, jsonb } from "../connection/statement.ts";

export const CONVERSATION_COLUMNS = `
  session_id AS id, seq, turn_seq AS "turnSeq", turn_state AS "turnState", turn_since AS "turnSince",
  turn_waiting_for AS "turnWaitingFor", usage, sandbox_id AS "sandboxId", sandbox_rev::float8 AS "sandboxRev",
  sandbox_order::float8 AS "sandboxOrder",
  turn_request AS "turnRequest", last_sentence AS "lastSentence",
  bytes::float8 AS bytes, coalesce((state_context ->> 'held')::boolean, false) AS held`;

export type ConversationRow = Pick<
  Conversation,
  "id" | "seq" | "turnSeq" | "usage" | "bytes" | "held" | "turnRequest" | "lastSentence"
> & {
  readonly turnState: Conversation["turn"]["state"];
  readonly turnSince: number;
  readonly turnWaitingFor: string | null;
  readonly sandboxId: string | null;
  readonly sandboxRev: number | null;
  readonly sandboxOrder: number | null;
};

/** Sandbox and number are both null or both set (constraint conversations_sandbox_whole). */
export const readConversation = (row: ConversationRow): Conversation => ({
  id: row.id,
  seq: row.seq,
  turnSeq: row.turnSeq,
  turn: { state: row.turnState, since: row.turnSince, waitingFor: row.turnWaitingFor },
  usage: row.usage,
  sandbox:
    row.sandboxId === null || row.sandboxRev === null
      ? null
      : { id: row.sandboxId, rev: row.sandboxRev, order: row.sandboxOrder },
  bytes: row.bytes,
  held: row.held,
  turnRequest: row.turnRequest,
  lastSentence: row.lastSentence,
});

/** An item as one value. Records from before answers and messages of people lack three fields. */
const ITEM = `'{"answer": null, "agent": null, "sentAt": null}'::jsonb || record || jsonb_build_object(
  'id', id, 'seq', seq, 'place', place, 'kind', kind, 'status', status, 'nativeId', native_id, 'sandboxId', sandbox_id,
  'rev', rev, 'order', native_order)`;

const LAST_PLACE = 2_147_483_647;

/** Items of a conversation, newest first, below a place. */
export const newestItems = (
  sql: SqlClient,
  { id, before, limit }: { readonly id: string; readonly before: number | null; readonly limit: number },
) => sql<{ readonly item: Item; readonly place: number }>`
  SELECT ${sql.literal(ITEM)} AS item, place FROM conversation_items
  WHERE session_id = ${id} AND place < ${before ?? LAST_PLACE} ORDER BY place DESC LIMIT ${limit}`;

/** Items whose last version is above a number, in order. */
export const laterItems = (
  sql: SqlClient,
  { id, seq, limit }: { readonly id: string; readonly seq: number; readonly limit: number },
) => sql<{ readonly item: Item; readonly place: number }>`
  SELECT ${sql.literal(ITEM)} AS item, seq AS place FROM conversation_items
  WHERE session_id = ${id} AND seq > ${seq} ORDER BY seq LIMIT ${limit}`;

/** Open items that meet a condition, oldest first. */
export const openItems = (
  sql: SqlClient,
  { id, only }: { readonly id: string; readonly only: Fragment },
) => sql<{ readonly item: Item; readonly place: number }>`
  SELECT ${sql.literal(ITEM)} AS item, place FROM conversation_items
  WHERE session_id = ${id} AND status IN ('queued', 'sending', 'pending', 'running') AND ${only} ORDER BY place`;

/** Items as one list, for a statement that reads them together with their conversation. */
export const listItems = (sql: SqlClient, items: Fragment, order: "ASC" | "DESC" = "ASC") => sql`(
  SELECT coalesce(jsonb_agg(item ORDER BY place ${sql.literal(order)}), '[]') FROM (${items}) AS found
)`;

/** Items with these ids, or these native ones. */
export const namedItems = (
  sql: SqlClient,
  id: string,
  { ids, nativeIds }: { readonly ids: readonly string[]; readonly nativeIds: readonly string[] },
) => sql<{ readonly item: Item; readonly place: number }>`
  SELECT ${sql.literal(ITEM)} AS item, place FROM conversation_items
  WHERE session_id = ${id} AND (id = ANY(${[...ids]}::uuid[]) OR native_id = ANY(${[...nativeIds]}::text[]))`;

/** A sandbox's items from an order on, and what stands behind them without being an agent's: the newest (ports/sessions/conversations.ts N4). */
export const itemsFrom = (
  sql: SqlClient,
  { id, sandboxId, order }: { readonly id: string; readonly sandboxId: string; readonly order: number },
) => sql<{ readonly item: Item; readonly place: number }>`
  SELECT ${sql.literal(ITEM)} AS item, place FROM conversation_items
  WHERE session_id = ${id} AND (
    sandbox_id = ${sandboxId}::uuid AND native_order >= ${order}::bigint
    OR sandbox_id IS NULL AND place > (
      SELECT min(place) FROM conversation_items
      WHERE session_id = ${id} AND sandbox_id = ${sandboxId}::uuid AND native_order >= ${order}::bigint
    )
  )
  ORDER BY place DESC LIMIT ${ITEMS_MOVED_MAX}`;

/** Locks the conversation until the transaction ends. Null if the conversation does not exist. */
export const lockConversation = (sql: SqlClient, id: string) =>
  Effect.map(
    sql<ConversationRow>`
      SELECT ${sql.literal(CONVERSATION_COLUMNS)} FROM conversations WHERE session_id = ${id} FOR NO KEY UPDATE`,
    ([row]) => (row === undefined ? null : readConversation(row)),
  );

export const itemColumns = (item: Item) => ({
  id: item.id,
  seq: item.seq,
  place: item.place,
  native_id: item.nativeId,
  sandbox_id: item.sandboxId,
  rev: item.rev,
  native_order: item.order,
  kind: item.kind,
  status: item.status,
  record: itemRecord(item),
  bytes: itemBytes(item),
});

/** Whether a row of conversation_items is a message that is whole. */
export const isWholeMessage = (row: string): string =>
  `${row}.kind = 'message' AND ${row}.status IN ('accepted', 'completed', 'failed', 'interrupted', 'lost')`;

/** The answers of people in the record of a row of conversation_items, a line each: see searchedText of the domain. */
export const answeredText = (
  row: string,
): string => `(SELECT string_agg(line, chr(10)) FROM jsonb_array_elements_text(
    jsonb_path_query_array(${row}.record, '$.answer.answer.answers[*][*]')
      || jsonb_path_query_array(${row}.record, '$.answer.answer.message ? (@ != null)')) AS line)`;

/** The parts of a statement that writes items, given as a list of `itemColumns`. */
export const INSERTED_ITEMS = {
  into: `INSERT INTO conversation_items (session_id, id, seq, place, native_id, sandbox_id, rev, native_order,
        kind, status, record, bytes, words)`,
  columns: `r.id, r.seq, r.place, r.native_id, r.sandbox_id, r.rev, r.native_order, r.kind, r.status, r.record, r.bytes,
        CASE WHEN ${isWholeMessage("r")} THEN coalesce(message_words(r.record), '')
          WHEN r.kind = 'request' THEN message_words(jsonb_build_object('content', jsonb_build_array(
            jsonb_build_object('text', ${answeredText("r")})))) END`,
  row: `r(id uuid, seq integer, place integer,
        native_id text, sandbox_id uuid, rev bigint, native_order bigint, kind text, status text, record jsonb, bytes integer)`,
  replacing: `ON CONFLICT (session_id, id) DO UPDATE SET seq = excluded.seq, place = excluded.place,
        native_id = excluded.native_id, sandbox_id = excluded.sandbox_id, rev = excluded.rev,
        native_order = excluded.native_order, kind = excluded.kind, status = excluded.status, record = excluded.record, bytes = excluded.bytes,
        words = excluded.words`,
} as const;

/** The columns that each write of a draft sets. */
export const writtenState = (sql: SqlClient, conversation: Conversation): Fragment => {
  const { seq, turnSeq, turn, turnRequest, lastSentence, usage, bytes } = conversation;
  return sql`seq = ${seq}, turn_seq = ${turnSeq}, turn_state = ${turn.state}, turn_since = ${at(turn.since)},
    turn_waiting_for = ${turn.waitingFor}, turn_request = ${turnRequest && jsonb(turnRequest)},
    last_sentence = ${lastSentence}, usage = ${jsonb(usage)}, bytes = ${bytes}`;
};

/** Stores a draft's versions. */
export const write = (sql: SqlClient, draft: ConversationDraft) =>
  Effect.map(writeMarked(sql, draft), ({ changed }) => changed);

/** The same. `mark` is the new version of the conversation's row. */
export const writeMarked = Effect.fnUntraced(function* (sql: SqlClient, draft: ConversationDraft) {
  const { items, ...changed } = draft.finish();
  const attachmentIds = attachedTo(items);
  // As text: a sandbox may name what is no id.
  if (attachmentIds.length > 0)
    yield* sql`
      UPDATE conversation_attachments SET expires_at = NULL
      WHERE session_id = ${draft.id} AND id::text = ANY(${[...attachmentIds]}::text[])`;
  const { id, sandbox } = changed.conversation;
  const [row] = yield* sql<{ readonly mark: string }>`
    WITH written AS (
      ${sql.literal(INSERTED_ITEMS.into)}
      SELECT ${id}::uuid, ${sql.literal(INSERTED_ITEMS.columns)}
      FROM jsonb_to_recordset(${jsonb(items.map(itemColumns))}::jsonb) AS ${sql.literal(INSERTED_ITEMS.row)}
      ${sql.literal(INSERTED_ITEMS.replacing)}
    )
    UPDATE conversations SET ${writtenState(sql, changed.conversation)},
      sandbox_id = ${sandbox?.id ?? null}, sandbox_rev = ${sandbox?.rev ?? null}, sandbox_order = ${sandbox?.order ?? null}
    WHERE session_id = ${id} RETURNING xmin::text AS mark`;
  return { changed, mark: row?.mark ?? "" };
});

/** Removes the oldest outputs while the conversation is too large. */
export const pruneOutputs = Effect.fnUntraced(function* (sql: SqlClient, draft: ConversationDraft) {
  if (draft.surplus === 0) return;
  const prunedItems = yield* sql<{ readonly id: string; readonly bytes: number }>`
    WITH aged AS (
      SELECT output.item_id AS id, output.bytes, sum(output.bytes) OVER (ORDER BY item.place) AS upto
      FROM conversation_outputs AS output
      JOIN conversation_items AS item ON item.session_id = output.session_id AND item.id = output.item_id
      WHERE output.session_id = ${draft.id}
    )
    DELETE FROM conversation_outputs AS output USING aged
    WHERE output.session_id = ${draft.id} AND output.item_id = aged.id AND aged.upto - aged.bytes < ${draft.surplus}
    RETURNING output.item_id AS id, output.bytes`;
  const ids = prunedItems.map(({ id }) => id);
  draft.know((yield* namedItems(sql, draft.id, { ids, nativeIds: [] })).map(({ item }) => item));
  const place = (id: string) => draft.get(id)?.place ?? 0;
  for (const { id, bytes } of prunedItems.toSorted((a, b) => place(a.id) - place(b.id)))
    draft.pruneOutput(id, bytes);
});

/** Makes room in a conversation that is too large: first by its outputs, then by the content of its oldest items. */
export const makeRoom = Effect.fnUntraced(function* (sql: SqlClient, draft: ConversationDraft) {
  yield* pruneOutputs(sql, draft);
  if (draft.surplus === 0) return;
  const agedItems = yield* sql<{ readonly item: Item }>`
    SELECT ${sql.literal(ITEM)} AS item FROM conversation_items
    WHERE session_id = ${draft.id} AND place <= (
      SELECT max(place) FROM (
        SELECT place, bytes, sum(bytes) OVER (ORDER BY place) AS upto FROM conversation_items
        WHERE session_id = ${draft.id} AND ${stripable(sql)}
      ) AS large WHERE upto - bytes < ${draft.surplus}
    ) AND ${stripable(sql)} ORDER BY place`;
  draft.know(agedItems.map(({ item }) => item));
  for (const { item } of agedItems) draft.strip(item.id);
});

/** Closed items whose content may be removed. Messages that people sent stay. */
const stripable = (sql: SqlClient) =>
  sql`status IN ('completed', 'failed', 'interrupted', 'lost') AND bytes > ${STRIPPED_MAX}`;

/** Adds a note of the service to a session's conversation, in the caller's transaction. Does nothing if the session has none yet. */
export const putNote = Effect.fnUntraced(function* (
  sql: SqlClient,
  note: ServiceNote & { readonly sessionId: string },
) {
  const before = yield* lockConversation(sql, note.sessionId);
  if (before === null) return;
  const draft = new ConversationDraft(before);
  draft.putNote(note);
  yield* makeRoom(sql, draft);
  yield* write(sql, draft);
});
