/** Conversations: the tables conversations, conversation_items, conversation_outputs and conversation_attachments. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { AttachmentHead } from "../../../domain/conversation/attachment.ts";
import { OUTPUT_KEPT_MAX } from "../../../domain/conversation/conversation.ts";
import { storableText } from "../../../domain/text.ts";
import { conversation } from "../../../machines/conversation.ts";
import { ConversationDraft } from "../../conversations/draft.ts";
import {
  closeItems,
  concernedItems,
  emptyConversation,
  isNews,
  lateFrom,
  newRequest,
  noteReport,
  putPrompt,
  type Beginning,
} from "../../conversations/notes.ts";
import { conversationChanges, pageOfItems, readItemPlace } from "../../conversations/pages.ts";
import { cutBytes, storableReport } from "../../conversations/reports.ts";
import {
  ATTACHMENT_UNUSED_MS,
  Conversations,
  CONVERSATION_KEPT_MAX,
  type Attachment,
  type ChangedConversation,
  type Item,
  type NotedReport,
  type ServiceNote,
} from "../../ports/sessions/conversations.ts";
import { firstTransition } from "../../../machines/transition.ts";
import { Waiting } from "../../waiting.ts";
import { sessionWaitingEvent, turnChangedEvents } from "../../event-rows.ts";
import { makeSignal } from "../connection/signals.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, toStored } from "../connection/statement.ts";
import { ReportGuesses, writeGuessed } from "./guesses.ts";
import { makeConversationMemory } from "./memory.ts";
import {
  readConversation,
  CONVERSATION_COLUMNS,
  itemsFrom,
  laterItems,
  listItems,
  lockConversation,
  makeRoom,
  namedItems,
  newestItems,
  openItems,
  pruneOutputs,
  write,
  writeMarked,
  type ConversationRow,
} from "./rows.ts";
import { searchIn } from "./search.ts";
import { addAllWords } from "./wordless.ts";
import { EventLog } from "../events/event-log.ts";
import { addSpent } from "../projects/project-usage.ts";
import { keeping } from "../events/transition-rows.ts";

const CHANNEL = "platform_conversations";

/** A conversation begins with the machine's first snapshot, which the table has as its defaults. */
const START = conversation.start({});

type Service = (typeof Conversations)["Service"];

const firstConversation = ([row]: readonly ConversationRow[]) =>
  row === undefined ? null : readConversation(row);

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;

  /** Waits for a deletion of the session that is under way, and makes nothing for a deleted one. */
  const begin = (id: string, now: number) => sql<Beginning>`
    WITH session AS (
      SELECT * FROM project_sessions WHERE id = ${id} AND deleted_at IS NULL FOR SHARE
    ), opened AS (
      INSERT INTO conversations (session_id, turn_since, created_at)
      SELECT id, ${at(now)}::timestamptz, ${at(now)}::timestamptz FROM session ON CONFLICT DO NOTHING
      RETURNING session_id
    )${keeping(sql, firstTransition(START, { now }), { kind: "conversation", id, version: 1, given: "opened" })}
    SELECT session.id, session.initial_prompt AS "initialPrompt", session.created_by AS "createdBy",
      users.name AS "userName", session.trigger_slug AS "triggerSlug", session.fire_id AS "fireId",
      fires.kind AS "fireKind", session.created_at AS "createdAt",
      session.bootstrap_accepted_at AS "bootstrapAcceptedAt"
    FROM session JOIN opened ON opened.session_id = session.id JOIN users ON users.id = session.created_by
    LEFT JOIN fires ON fires.id = session.fire_id`;

  return Effect.fnUntraced(function* (id: string, now: number) {
    const [beginning] = yield* begin(id, now);
    if (beginning === undefined) return null;
    const draft = new ConversationDraft(emptyConversation(id, now));
    putPrompt(draft, beginning);
    return yield* write(sql, draft);
  });
});

/** The agent's name if the sandbox is the session's current one and has not ended, and the rows that a report concerns. */
interface Fence {
  readonly projectId: string;
  readonly agentName: string;
  readonly items: readonly Item[];
}

const makeNote = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const log = yield* EventLog;
  const guesses = new ReportGuesses();
  /** Null if nothing is written, and the report must be decided under the lock. */
  const noteByGuess = Effect.fnUntraced(function* (id: string, report: NotedReport) {
    const guess = guesses.guessDraft(id, report);
    if (guess === null) return null;
    const { items, ...changed } = guess.draft.finish();
    const { sandboxId } = report;
    const { remembered } = guess;
    const mark = yield* writeGuessed(sql, { items, ...changed }, { mark: remembered.mark, sandboxId });
    if (mark === null) guesses.forget(id);
    else guesses.note(report, { ...remembered, ...changed, mark });
    return mark === null ? null : changed;
  });
  const noteByDecision = Effect.fnUntraced(function* (id: string, report: NotedReport) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return null;
    // A statement of its own: it sees what was committed while this one waited for the lock.
    const [fence] = yield* sql<Fence>`
      SELECT project_id AS "projectId", agent_name AS "agentName", ${listItems(sql, namedItems(sql, id, concernedItems(id, report)))} AS items
      FROM project_sessions AS session
      WHERE id = ${id} AND state_context ->> 'sandboxId' = ${report.sandboxId} AND EXISTS (
        SELECT FROM session_sandboxes AS sandbox
        WHERE sandbox.id = ${report.sandboxId}::uuid AND sandbox.status IN ('provisioning', 'active')
      )`;
    if (fence === undefined) return null;
    if (!isNews(before, report)) return { conversation: before, changes: [] };
    const draft = new ConversationDraft(before, fence.items);
    const late = lateFrom(before, report, draft);
    const { sandboxId } = report;
    const behind = late === null ? [] : yield* itemsFrom(sql, { id, sandboxId, order: late });
    draft.know(behind.map(({ item }) => item));
    noteReport(draft, before, { report, agentName: fence.agentName });
    yield* addSpent(sql, fence.projectId, { now: report.now, spent: draft.spent });
    yield* makeRoom(sql, draft);
    const { changed, mark } = yield* writeMarked(sql, draft);
    const itemsInReach = [...fence.items, ...behind.map(({ item }) => item)];
    const place = { projectId: fence.projectId, sessionId: id, at: report.now };
    const request = newRequest(itemsInReach, changed.changes);
    yield* log.append([
      ...turnChangedEvents(place, before, changed),
      ...(request === null ? [] : [sessionWaitingEvent(place, request)]),
    ]);
    // A transaction that fails to commit leaves a mark that no row has.
    guesses.note(report, { ...changed, agentName: fence.agentName, mark, items: new Map() });
    return changed;
  });
  return { guessed: noteByGuess, decided: noteByDecision };
});

const makeAddNote = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (id: string, note: ServiceNote) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return null;
    const [former] = yield* namedItems(sql, id, { ids: [note.id], nativeIds: [] });
    if (former !== undefined) return { conversation: before, changes: [] };
    const draft = new ConversationDraft(before);
    draft.putNote(note);
    yield* makeRoom(sql, draft);
    return yield* write(sql, draft);
  });
});

const makeClose = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const log = yield* EventLog;
  return Effect.fnUntraced(function* (id: string, end: Parameters<Service["close"]>[1]) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return null;
    const rows = yield* openItems(sql, { id, only: sql`sandbox_id = ${end.sandboxId}` });
    const items = rows.map(({ item }) => item);
    const draft = new ConversationDraft(before, items);
    closeItems(draft, before, { ...end, items });
    const change = yield* write(sql, draft);
    const [session] = yield* sql<{ readonly projectId: string }>`
      SELECT project_id AS "projectId" FROM project_sessions WHERE id = ${id}`;
    if (session !== undefined)
      yield* log.append(turnChangedEvents({ ...session, sessionId: id, at: end.now }, before, change));
    return change;
  });
});

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(CONVERSATION_COLUMNS);
  const get = (id: string) =>
    Effect.map(
      sql<ConversationRow>`SELECT ${columns} FROM conversations WHERE session_id = ${id}`,
      firstConversation,
    );
  const states: Service["states"] = (ids) =>
    sql<ConversationRow>`SELECT ${columns} FROM conversations WHERE session_id = ANY(${[...ids]}::uuid[])`.pipe(
      Effect.map(
        (rows) =>
          new Map(rows.map(readConversation).map(({ id, turn, usage, held }) => [id, { turn, usage, held }])),
      ),
      onSharedConnection,
      toStored("conversations.states"),
    );
  const page: Service["page"] = Effect.fnUntraced(
    function* (id, { before, limit }) {
      const place = yield* readItemPlace(before);
      const newest = newestItems(sql, { id, before: place, limit: limit + 1 });
      const queue = openItems(sql, { id, only: sql`status IN ('queued', 'sending')` });
      const requests = openItems(sql, { id, only: sql`kind = 'request'` });
      const [row] = yield* sql<ConversationRow & Record<"items" | "queue" | "requests", readonly Item[]>>`
      SELECT ${columns}, ${listItems(sql, newest, "DESC")} AS items, ${listItems(sql, queue)} AS queue,
        ${listItems(sql, requests)} AS requests
      FROM conversations WHERE session_id = ${id}`;
      if (row === undefined) return null;
      return {
        conversation: readConversation(row),
        ...pageOfItems(row.items, limit),
        queue: row.queue,
        requests: row.requests,
      };
    },
    onSharedConnection,
    toStored("conversations.page"),
  );
  const changedAfter: Service["changedAfter"] = Effect.fnUntraced(function* (id, seq, limit) {
    const [row] = yield* sql<ConversationRow & { readonly items: readonly Item[] }>`
      SELECT ${columns}, ${listItems(sql, laterItems(sql, { id, seq, limit }))} AS items
      FROM conversations WHERE session_id = ${id}`;
    return row === undefined ? null : conversationChanges(readConversation(row), row.items, { seq, limit });
  }, toStored("conversations.changedAfter"));
  return { get, states, page, changedAfter, ...searchIn(sql) };
});

/** Outputs and attachments. */
const makeKeeping = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const keepOutput = Effect.fnUntraced(function* (
    id: string,
    itemOutput: Parameters<Service["keepOutput"]>[1],
  ) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return null;
    const { itemId, sandboxId } = itemOutput;
    const [found] = yield* namedItems(sql, id, { ids: [itemId], nativeIds: [] });
    if (found === undefined || found.item.sandboxId !== sandboxId || found.item.pruned) return null;
    const text = cutBytes(storableText(itemOutput.text), OUTPUT_KEPT_MAX);
    const bytes = Buffer.byteLength(text);
    const [former] = yield* sql<{ readonly bytes: number }>`
      SELECT bytes FROM conversation_outputs WHERE session_id = ${id} AND item_id = ${itemId}`;
    yield* sql`
      INSERT INTO conversation_outputs (session_id, item_id, text, bytes) VALUES (${id}, ${itemId}, ${text}, ${bytes})
      ON CONFLICT (session_id, item_id) DO UPDATE SET text = excluded.text, bytes = excluded.bytes`;
    const draft = new ConversationDraft(before);
    draft.resize(bytes - (former?.bytes ?? 0));
    yield* makeRoom(sql, draft);
    return yield* write(sql, draft);
  });
  const keepAttachment = Effect.fnUntraced(function* (
    id: string,
    { now, ...attachment }: Parameters<Service["keepAttachment"]>[1],
  ) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return null;
    const [room] = yield* sql<{ readonly outputs: number; readonly isKept: boolean }>`
      SELECT (SELECT coalesce(sum(bytes), 0)::integer FROM conversation_outputs WHERE session_id = ${id}) AS outputs,
        EXISTS (SELECT FROM conversation_attachments WHERE session_id = ${id} AND id = ${attachment.id}) AS "isKept"`;
    if (room?.isKept === true) return { conversation: before, changes: [] };
    const { length } = attachment.content;
    if (before.bytes - (room?.outputs ?? 0) + length > CONVERSATION_KEPT_MAX) return "full";
    yield* sql`
      INSERT INTO conversation_attachments (session_id, id, name, media_type, sha256, content, created_at, expires_at)
      VALUES (${id}, ${attachment.id}, ${attachment.name}, ${attachment.mediaType}, ${attachment.sha256},
        ${Buffer.from(attachment.content)}, ${at(now)}, ${at(now + ATTACHMENT_UNUSED_MS)})`;
    const draft = new ConversationDraft(before);
    draft.resize(length);
    yield* pruneOutputs(sql, draft);
    return yield* write(sql, draft);
  });
  const item: Service["item"] = (id, itemId) =>
    namedItems(sql, id, { ids: [itemId], nativeIds: [] }).pipe(
      Effect.map(([row]) => row?.item ?? null),
      toStored("conversations.item"),
    );
  const output: Service["output"] = (id, itemId) =>
    sql<{ readonly text: string }>`
      SELECT text FROM conversation_outputs WHERE session_id = ${id} AND item_id = ${itemId}`.pipe(
      Effect.map(([row]) => row?.text ?? null),
      toStored("conversations.output"),
    );
  const attachment: Service["attachment"] = (id, attachmentId) =>
    sql<Attachment>`
      SELECT id, name, media_type AS "mediaType", sha256, content FROM conversation_attachments
      WHERE session_id = ${id} AND id = ${attachmentId}`.pipe(
      Effect.map(([row]) => row ?? null),
      toStored("conversations.attachment"),
    );
  return { keepOutput, keepAttachment, item, output, attachment };
});

/** How many conversations one call of `pruneAttachments` looks at. */
const PRUNED_AT_ONCE = 20;

const makeAttachments = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const attachmentHeads: Service["attachmentHeads"] = (id, ids) =>
    sql<AttachmentHead>`
      SELECT id, name, media_type, sha256, octet_length(content) AS bytes FROM conversation_attachments
      WHERE session_id = ${id} AND id::text = ANY(${[...ids]}::text[])
      ORDER BY array_position(${[...ids]}::text[], id::text)`.pipe(toStored("conversations.attachmentHeads"));
  /** A message that takes the lock first has its attachments kept. */
  const pruneOne = Effect.fnUntraced(function* (id: string, now: number) {
    const before = yield* lockConversation(sql, id);
    if (before === null) return 0;
    const rows = yield* sql<{ readonly bytes: number }>`
      DELETE FROM conversation_attachments WHERE session_id = ${id} AND expires_at <= ${at(now)}
      RETURNING octet_length(content) AS bytes`;
    const draft = new ConversationDraft(before);
    for (const { bytes } of rows) draft.resize(-bytes);
    yield* write(sql, draft);
    return rows.length;
  });
  const pruneAttachments: Service["pruneAttachments"] = Effect.fnUntraced(function* (now) {
    const sessions = yield* sql<{ readonly id: string }>`
      SELECT DISTINCT session_id AS id FROM conversation_attachments WHERE expires_at <= ${at(now)}
      LIMIT ${PRUNED_AT_ONCE}`;
    const counts = yield* Effect.forEach(sessions, ({ id }) => sql.withTransaction(pruneOne(id, now)));
    return counts.reduce((sum, count) => sum + count, 0);
  }, toStored("conversations.pruneAttachments"));
  return { attachmentHeads, pruneAttachments };
});

export const layer = Layer.effect(
  Conversations,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const waiting = new Waiting();
    yield* Effect.forkScoped(addAllWords(sql));
    const { say } = yield* makeSignal(CHANNEL, (sessionId) => {
      waiting.wake(sessionId);
    });
    const ofActor = yield* makeConversationMemory((sessionId) => say([sessionId]));
    const [open, { guessed, decided }, close] = [yield* makeOpen, yield* makeNote, yield* makeClose];
    const addNote = yield* makeAddNote;
    const { get, ...reads } = yield* makeReads;
    const { keepOutput, keepAttachment, ...ofFiles } = yield* makeKeeping;

    const attachments = yield* makeAttachments;

    /** One transaction, whose commit wakes readers if it changed anything. */
    const writing = <A extends ChangedConversation | "full" | null, E>(
      id: string,
      work: Effect.Effect<A, E>,
    ) =>
      sql.withTransaction(
        Effect.tap(work, (answer) =>
          answer === null || answer === "full" || answer.changes.length === 0 ? Effect.void : say([id]),
        ),
      );
    return {
      ...reads,
      ...ofFiles,
      ...attachments,
      ...ofActor,
      open: (id, now) =>
        Effect.gen(function* () {
          const present = yield* get(id);
          if (present !== null) return present;
          const change = yield* writing(id, open(id, now));
          // Another caller may have made it first.
          return change?.conversation ?? (yield* get(id));
        }).pipe(toStored("conversations.open")),
      get: (id) => get(id).pipe(onSharedConnection, toStored("conversations.get")),
      note: (id, newReport) =>
        Effect.gen(function* () {
          const report = storableReport(newReport);
          const change = yield* guessed(id, report);
          if (change === null) return yield* writing(id, decided(id, report));
          if (change.changes.length > 0) yield* say([id]);
          return change;
        }).pipe(toStored("conversations.note")),
      addNote: (id, note) =>
        writing(id, addNote(id, note)).pipe(
          Effect.map((change) => change !== null && change.changes.length > 0),
          toStored("conversations.addNote"),
        ),
      close: (id, end) => writing(id, close(id, end)).pipe(toStored("conversations.close")),
      changed: (id) => waiting.wait(id),
      keepOutput: (id, output) =>
        writing(id, keepOutput(id, output)).pipe(
          Effect.map((result) => result !== null),
          toStored("conversations.keepOutput"),
        ),
      keepAttachment: (id, attachment) =>
        writing(id, keepAttachment(id, attachment)).pipe(
          Effect.map((result) => (result === null || result === "full" ? result : "kept")),
          toStored("conversations.keepAttachment"),
        ),
    };
  }),
);
