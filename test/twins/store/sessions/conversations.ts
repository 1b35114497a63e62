/** Conversations in memory: see postgres/conversations/conversations.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { OUTPUT_KEPT_MAX } from "../../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../../src/domain/conversation/growing.ts";
import { hasWords, searchedText, searchWords } from "../../../../src/domain/conversation/search.ts";
import { storableText } from "../../../../src/domain/text.ts";
import {
  conversation as conversationMachine,
  type ConversationCommand,
  type ConversationSnapshot,
} from "../../../../src/machines/conversation.ts";
import type { ConversationEvent } from "../../../../src/machines/conversation-events.ts";
import { ATTACHMENT_MAX } from "../../../../src/domain/conversation/attachment.ts";
import { attachedTo } from "../../../../src/store/conversations/attached.ts";
import { itemBytes, ConversationDraft, STRIPPED_MAX } from "../../../../src/store/conversations/draft.ts";
import {
  closeItems,
  concernedItems,
  emptyConversation,
  isNews,
  lateFrom,
  newRequest,
  noteReport,
  putPrompt,
} from "../../../../src/store/conversations/notes.ts";
import { noteStep, storedSnapshot, stepConcerns } from "../../../../src/store/conversations/steps.ts";
import {
  conversationChanges,
  pageOfItems,
  readItemPlace,
} from "../../../../src/store/conversations/pages.ts";
import { sessionWaitingEvent, turnChangedEvents } from "../../../../src/store/event-rows.ts";
import { cutBytes, storableReport } from "../../../../src/store/conversations/reports.ts";
import {
  ATTACHMENT_UNUSED_MS,
  Conversations,
  CONVERSATION_KEPT_MAX,
  ITEMS_MOVED_MAX,
  type ChangedConversation,
  type Conversation,
  type ConversationPage,
  type Item,
  type SearchHit,
  type ServiceNote,
} from "../../../../src/store/ports/sessions/conversations.ts";
import { hitIn } from "../../../../src/store/session-hits.ts";
import { firstTransition } from "../../../../src/machines/transition.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { addSpent } from "../projects/project-usage.ts";
import { tellAtRest } from "./turn-endings.ts";
import { Tables, type ConversationRow, type TableSet } from "../tables.ts";

type Service = (typeof Conversations)["Service"];

const START = conversationMachine.start({});

const inOrder = (row: ConversationRow): readonly Item[] =>
  [...row.items.values()].toSorted((a, b) => a.place - b.place);

/** Stores a draft's versions and wakes readers. */
const write = (tables: TableSet, row: ConversationRow, draft: ConversationDraft): ChangedConversation => {
  const { items, ...changed } = draft.finish();
  for (const item of items) row.items.set(item.id, item);
  for (const id of attachedTo(items)) {
    const kept = row.attachments.get(id);
    if (kept !== undefined) row.attachments.set(id, { ...kept, expiresAt: null });
  }
  tables.conversations.set(draft.id, { ...row, conversation: changed.conversation });
  if (changed.changes.length > 0) tables.conversationsWaiting.wake(draft.id);
  return changed;
};

/** A list's first parts, until `surplus` bytes of them are found. */
const oldest = <A>(parts: readonly A[], sizeOf: (part: A) => number, surplus: number): readonly A[] => {
  let found = 0;
  return parts.filter((part) => {
    const isTaken = found < surplus;
    found += sizeOf(part);
    return isTaken;
  });
};

const sizeOfOutput = (row: ConversationRow, id: string): number =>
  Buffer.byteLength(row.outputs.get(id) ?? "");

const pruneOutputs = (row: ConversationRow, draft: ConversationDraft): void => {
  if (draft.surplus === 0) return;
  const kept = inOrder(row).filter(({ id }) => row.outputs.has(id));
  const pruned = oldest(kept, ({ id }) => sizeOfOutput(row, id), draft.surplus);
  draft.know(pruned);
  for (const { id } of pruned) {
    draft.pruneOutput(id, sizeOfOutput(row, id));
    row.outputs.delete(id);
  }
};

const makeRoom = (row: ConversationRow, draft: ConversationDraft): void => {
  pruneOutputs(row, draft);
  if (draft.surplus === 0) return;
  const large = inOrder(row).filter(
    (item) =>
      isClosed(item.status) &&
      item.status !== "accepted" &&
      item.status !== "cancelled" &&
      itemBytes(item) > STRIPPED_MAX,
  );
  const aged = oldest(large, itemBytes, draft.surplus);
  draft.know(aged);
  for (const { id } of aged) draft.strip(id);
};

const open = (tables: TableSet, id: string, now: number): Conversation | null => {
  const known = tables.conversations.get(id);
  if (known !== undefined) return known.conversation;
  const session = tables.sessions.get(id)?.record;
  if (session === undefined || session.deletedAt !== null) return null;
  const conversation = emptyConversation(id, now);
  const draft = new ConversationDraft(conversation);
  putPrompt(draft, {
    ...session,
    userName: tables.users.get(session.createdBy)?.name ?? "",
    fireKind: tables.fires.get(session.fireId ?? "")?.kind ?? null,
  });
  const row = {
    conversation,
    snapshot: storedSnapshot("idle", {}),
    version: 1,
    turnToTell: null,
    items: new Map(),
    outputs: new Map(),
    attachments: new Map(),
  };
  tables.keep({ kind: "conversation", id }, firstTransition(START, { now }), 1);
  return write(tables, row, draft).conversation;
};

/** A sandbox's items from an order on, and what stands behind them without being an agent's: the newest. */
const itemsFrom = (row: ConversationRow, sandboxId: string, order: number): readonly Item[] => {
  const isMade = (item: Item) => item.sandboxId === sandboxId && item.order !== null && item.order >= order;
  const first = Math.min(
    ...inOrder(row)
      .filter(isMade)
      .map(({ place }) => place),
  );
  return inOrder(row)
    .filter((item) => isMade(item) || (item.sandboxId === null && item.place > first))
    .slice(-ITEMS_MOVED_MAX);
};

const note = (
  tables: TableSet,
  id: string,
  given: Parameters<Service["note"]>[1],
): ChangedConversation | null => {
  const report = storableReport(given);
  const row = tables.conversations.get(id);
  const session = tables.sessions.get(id)?.record;
  const isCurrent = session?.sandboxId === report.sandboxId && tables.isSandboxLive(report.sandboxId);
  if (row === undefined || session === undefined || !isCurrent) return null;
  const { conversation: before } = row;
  if (!isNews(before, report)) return { conversation: before, changes: [] };
  const { ids, nativeIds } = concernedItems(id, report);
  const [named, native] = [new Set(ids), new Set(nativeIds)];
  const items = [...row.items.values()].filter(
    (item) => named.has(item.id) || (item.nativeId !== null && native.has(item.nativeId)),
  );
  const draft = new ConversationDraft(before, items);
  const late = lateFrom(before, report, draft);
  const behind = late === null ? [] : itemsFrom(row, report.sandboxId, late);
  draft.know(behind);
  noteReport(draft, before, { report, agentName: session.agentName });
  addSpent(tables, session.projectId, { now: report.now, spent: draft.spent });
  makeRoom(row, draft);
  const changed = write(tables, row, draft);
  const place = { projectId: session.projectId, sessionId: id, at: report.now };
  const request = newRequest([...items, ...behind], changed.changes);
  tables.events.append([
    ...turnChangedEvents(place, before, changed),
    ...(request === null ? [] : [sessionWaitingEvent(place, request)]),
  ]);
  return changed;
};

const close = (tables: TableSet, id: string, end: Parameters<Service["close"]>[1]) => {
  const row = tables.conversations.get(id);
  if (row === undefined) return null;
  const items = inOrder(row).filter(
    ({ sandboxId, status }) => sandboxId === end.sandboxId && !isClosed(status),
  );
  const draft = new ConversationDraft(row.conversation, items);
  closeItems(draft, row.conversation, { ...end, items });
  const changed = write(tables, row, draft);
  const session = tables.sessions.get(id)?.record;
  if (session !== undefined) {
    const place = { projectId: session.projectId, sessionId: id, at: end.now };
    tables.events.append(turnChangedEvents(place, row.conversation, changed));
  }
  return changed;
};

/** Adds to a conversation what another store's step says in it. Does nothing without a conversation. */
export const noteIn = (tables: TableSet, id: string, put: (draft: ConversationDraft) => void): void => {
  const row = tables.conversations.get(id);
  if (row === undefined) return;
  const draft = new ConversationDraft(row.conversation);
  put(draft);
  makeRoom(row, draft);
  write(tables, row, draft);
};

const addNote = (tables: TableSet, id: string, added: ServiceNote): boolean => {
  const row = tables.conversations.get(id);
  if (row === undefined || row.items.has(added.id)) return false;
  noteIn(tables, id, (draft) => draft.putNote(added));
  return true;
};

const memoryOf = (tables: TableSet) =>
  makeActorMemory<ConversationSnapshot, ConversationEvent, ConversationCommand, ConversationRow>(tables, {
    kind: "conversation",
    rows: tables.conversations,
    outbox: tables.conversationOutbox,
    finish: (row, step) => {
      const moved = { ...row, turnToTell: tellAtRest(tables, row, step) };
      const concern = new Set(stepConcerns(step));
      const items = [...row.items.values()].filter((item) => concern.has(item.id));
      const draft = new ConversationDraft(row.conversation, items);
      noteStep(draft, step);
      makeRoom(moved, draft);
      write(tables, moved, draft);
    },
  });

const page = (
  row: ConversationRow | undefined,
  before: number | null,
  limit: number,
): ConversationPage | null => {
  if (row === undefined) return null;
  const all = inOrder(row);
  const older = all.filter(({ place }) => before === null || place < before).toReversed();
  return {
    conversation: row.conversation,
    ...pageOfItems(older.slice(0, limit + 1), limit),
    queue: all.filter(({ status }) => status === "queued" || status === "sending"),
    requests: all.filter(({ kind, status }) => kind === "request" && !isClosed(status)),
  };
};

const keepOutput = (tables: TableSet, id: string, given: Parameters<Service["keepOutput"]>[1]): boolean => {
  const row = tables.conversations.get(id);
  const item = row?.items.get(given.itemId);
  if (row === undefined || item?.sandboxId !== given.sandboxId || item.pruned) return false;
  const text = cutBytes(storableText(given.text), OUTPUT_KEPT_MAX);
  const draft = new ConversationDraft(row.conversation);
  draft.resize(Buffer.byteLength(text) - sizeOfOutput(row, item.id));
  row.outputs.set(item.id, text);
  makeRoom(row, draft);
  write(tables, row, draft);
  return true;
};

const keepAttachment = (
  tables: TableSet,
  id: string,
  { now, ...attachment }: Parameters<Service["keepAttachment"]>[1],
): "kept" | "full" | null => {
  const row = tables.conversations.get(id);
  if (row === undefined) return null;
  if (row.attachments.has(attachment.id)) return "kept";
  const { length } = attachment.content;
  const outputs = [...row.outputs.keys()].reduce((sum, itemId) => sum + sizeOfOutput(row, itemId), 0);
  if (row.conversation.bytes - outputs + length > CONVERSATION_KEPT_MAX) return "full";
  if (length > ATTACHMENT_MAX) throw new Error("an attachment is too large");
  row.attachments.set(attachment.id, { attachment, expiresAt: now + ATTACHMENT_UNUSED_MS });
  const draft = new ConversationDraft(row.conversation);
  draft.resize(length);
  pruneOutputs(row, draft);
  write(tables, row, draft);
  return "kept";
};

const attachmentHeads = (row: ConversationRow | undefined, ids: readonly string[]) =>
  [...new Set(ids)].flatMap((id) => {
    const kept = row?.attachments.get(id)?.attachment;
    if (kept === undefined) return [];
    const { content, mediaType, ...head } = kept;
    return [{ ...head, media_type: mediaType, bytes: content.length }];
  });

const pruneAttachments = (tables: TableSet, now: number): number => {
  let count = 0;
  for (const row of tables.conversations.values()) {
    const expired = [...row.attachments].filter(
      ([, { expiresAt }]) => expiresAt !== null && expiresAt <= now,
    );
    const draft = new ConversationDraft(row.conversation);
    for (const [id, { attachment }] of expired) {
      row.attachments.delete(id);
      draft.resize(-attachment.content.length);
    }
    if (expired.length > 0) write(tables, row, draft);
    count += expired.length;
  }
  return count;
};

/** Items that have the words, newest first. */
export const searchHits = (row: ConversationRow | undefined, search: string): readonly SearchHit[] => {
  const words = searchWords(search);
  return [...(row?.items.values() ?? [])]
    .toSorted((one, other) => other.place - one.place)
    .filter((item) => hasWords(item, words))
    .map((item) => hitIn({ itemId: item.id, at: item.createdAt, text: searchedText(item) ?? "" }, words));
};

export const layer = Layer.effect(
  Conversations,
  Effect.map(Tables, (tables) => {
    const rowOf = (id: string) => tables.conversations.get(id);
    return {
      ...memoryOf(tables),
      open: (id, now) => Effect.sync(() => open(tables, id, now)),
      get: (id) => Effect.sync(() => rowOf(id)?.conversation ?? null),
      states: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids.flatMap((id) => {
                const found = rowOf(id)?.conversation;
                return found === undefined
                  ? []
                  : [[id, { turn: found.turn, usage: found.usage, held: found.held }]];
              }),
            ),
        ),
      note: (id, report) => Effect.sync(() => note(tables, id, report)),
      addNote: (id, given) => Effect.sync(() => addNote(tables, id, given)),
      close: (id, end) => Effect.sync(() => close(tables, id, end)),
      page: (id, { before, limit }) =>
        Effect.map(readItemPlace(before), (place) => page(rowOf(id), place, limit)),
      search: (id, { search, limit }) => Effect.sync(() => searchHits(rowOf(id), search).slice(0, limit)),
      changedAfter: (id, seq, limit) =>
        Effect.sync(() => {
          const row = rowOf(id);
          if (row === undefined) return null;
          const later = [...row.items.values()].filter((item) => item.seq > seq);
          const items = later.toSorted((a, b) => a.seq - b.seq).slice(0, limit);
          return conversationChanges(row.conversation, items, { seq, limit });
        }),
      changed: (id) => tables.conversationsWaiting.wait(id),
      keepOutput: (id, output) => Effect.sync(() => keepOutput(tables, id, output)),
      item: (id, itemId) => Effect.sync(() => rowOf(id)?.items.get(itemId) ?? null),
      output: (id, itemId) => Effect.sync(() => rowOf(id)?.outputs.get(itemId) ?? null),
      keepAttachment: (id, attachment) => Effect.sync(() => keepAttachment(tables, id, attachment)),
      attachment: (id, attachmentId) =>
        Effect.sync(() => rowOf(id)?.attachments.get(attachmentId)?.attachment ?? null),
      attachmentHeads: (id, ids) => Effect.sync(() => attachmentHeads(rowOf(id), ids)),
      pruneAttachments: (now) => Effect.sync(() => pruneAttachments(tables, now)),
    };
  }),
);
