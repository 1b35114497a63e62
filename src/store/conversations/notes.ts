/**
 * What a report, an ended sandbox and a new session mean for a conversation's items. Both adapters use it, so that they
 * cannot differ.
 */
import {
  SANDBOX_AUTHOR,
  NO_USAGE,
  type AgentRequest,
  type Author,
  type NativeItem,
} from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import { derivedUuid } from "../../domain/ids.ts";
import { storableText } from "../../domain/text.ts";
import { type ConversationDraft, type ItemVersion, OWN_ITEM } from "./draft.ts";
import type { Conversation, ConversationChange, Item, NotedReport } from "../ports/sessions/conversations.ts";
import type { FireKind } from "../ports/triggers/fires.ts";

/** The id of an item that the runtime made: the same in every report of it. */
const itemId = (sessionId: string, nativeId: string): string => derivedUuid(sessionId, nativeId);

const isText = (id: string | null | undefined) => typeof id === "string";

/** The rows that a report concerns, by their native ids and by ours. */
export const concernedItems = (
  sessionId: string,
  { items, turn }: NotedReport,
): { readonly nativeIds: readonly string[]; readonly ids: readonly string[] } => {
  const nativeIds = items.flatMap(({ native_id, turn_id, parent_id }) => [native_id, turn_id, parent_id]);
  const ids = items.flatMap(({ native_id, message_id }) => [itemId(sessionId, native_id), message_id]);
  return {
    nativeIds: [...new Set([...nativeIds, turn?.waiting_for].filter(isText))],
    ids: [...new Set(ids.filter(isText))],
  };
};

/**
 * The turn has the number of the last version before it. So its line can come after that version was written. If it waits
 * for a request, only the write finds out which one, and whether that is new.
 */
const isLateTurn = (before: Conversation, { turn, rev }: NotedReport): boolean =>
  turn !== null &&
  rev === before.sandbox?.rev &&
  (turn.state !== before.turn.state || turn.waiting_for !== null);

/** Whether a report is new: of another sandbox than the last one, with a higher number, or with a turn that is missing. */
export const isNews = (before: Conversation, report: NotedReport): boolean =>
  before.sandbox?.id !== report.sandboxId || report.rev > before.sandbox.rev || isLateTurn(before, report);

/** Whether the service made the item: a message that was sent. */
const isOurs = (sessionId: string, { id, nativeId }: Item): boolean =>
  nativeId === null || id !== itemId(sessionId, nativeId);

/** Whether a report may replace this version (ports/sessions/conversations.ts N2, N3). */
const mayReplace = (row: Item, { rev }: NativeItem, sandboxId: string): boolean =>
  row.sandboxId === sandboxId ? rev > row.rev : !isClosed(row.status);

interface Reported {
  readonly report: NotedReport;
  readonly agentName: string;
}

/**
 * A message of ours that the runtime has. It stays as it was sent. If the runtime's answer was known before, items that the agent
 * made earlier may have been reported since: the message comes after them (ports/sessions/conversations.ts N4).
 */
const accept = (
  draft: ConversationDraft,
  { row, item }: { readonly row: Item; readonly item: NativeItem },
  { sandboxId, now }: NotedReport,
): void => {
  const isOpen = !isClosed(row.status);
  draft.put(
    {
      ...row,
      nativeId: item.native_id,
      sandboxId,
      rev: item.rev,
      order: item.order ?? null,
      status: isOpen ? "accepted" : row.status,
      completedAt: isOpen ? now : row.completedAt,
    },
    isOpen || item.order !== undefined,
  );
};

const itemAuthor = ({ role, parent_id: parentId }: NativeItem, agentName: string): Author =>
  role === "user" && parentId === null
    ? SANDBOX_AUTHOR
    : { kind: "agent", userId: null, name: agentName, triggerSlug: null, fireId: null };

const itemVersion = (
  draft: ConversationDraft,
  item: NativeItem,
  { report, agentName }: Reported,
): ItemVersion => {
  const row = draft.ofNative(item.native_id);
  const isEnded = row !== undefined && isClosed(row.status);
  return {
    id: row?.id ?? itemId(draft.id, item.native_id),
    kind: item.kind,
    role: item.role,
    author: itemAuthor(item, agentName),
    status: isEnded ? row.status : item.status,
    turnId: draft.ofNative(item.turn_id)?.id ?? row?.turnId ?? null,
    parentId: draft.ofNative(item.parent_id)?.id ?? row?.parentId ?? null,
    content: item.content,
    tool: item.tool,
    plan: item.plan,
    request: item.request,
    answer: row?.answer ?? null,
    model: item.model,
    agent: row?.agent ?? null,
    ...(row?.effort !== undefined && { effort: row.effort }),
    usage: item.usage,
    ...(item.context !== undefined && { context: item.context }),
    ...(item.compacts === true && { compacts: true }),
    error: item.error,
    pruned: row?.pruned ?? false,
    createdAt: item.created_at,
    completedAt: isEnded ? row.completedAt : item.completed_at,
    sentAt: row?.sentAt ?? null,
    nativeId: item.native_id,
    sandboxId: report.sandboxId,
    rev: item.rev,
    order: (row?.sandboxId === report.sandboxId ? row.order : null) ?? item.order ?? null,
  };
};

const noteItem = (draft: ConversationDraft, item: NativeItem, report: Reported): void => {
  const row = draft.ofNative(item.native_id);
  if (row !== undefined) {
    const isNewer = !isOurs(draft.id, row) && mayReplace(row, item, report.report.sandboxId);
    // Fields that a report does not have stay as they are.
    if (isNewer) draft.put({ ...row, ...itemVersion(draft, item, report) });
    return;
  }
  const message = draft.get(item.message_id);
  if (message?.nativeId === null) return accept(draft, { row: message, item }, report.report);
  // An id of ours that equals the derived one is the sender's: the item cannot have it, too.
  if (draft.get(itemId(draft.id, item.native_id)) === undefined) draft.put(itemVersion(draft, item, report));
};

/** The orders of the items of a report that are not known as the runtime's yet. */
const newOrders = (draft: Pick<ConversationDraft, "ofNative">, { items }: NotedReport): readonly number[] =>
  items.flatMap(({ native_id: id, order }) =>
    order === undefined || draft.ofNative(id) !== undefined ? [] : [order],
  );

/**
 * From which order on a report moves items that were reported before (ports/sessions/conversations.ts N4). Null if it has nothing late.
 *
 * @param draft the rows that the report concerns
 */
export const lateFrom = (
  { sandbox }: Conversation,
  report: NotedReport,
  draft: Pick<ConversationDraft, "ofNative">,
): number | null => {
  const last = sandbox?.id === report.sandboxId ? sandbox.order : null;
  const first = Math.min(...newOrders(draft, report));
  return last !== null && first < last ? first : null;
};

/** Writes a report that is news. The draft knows the rows that it concerns, and those behind which its late items come. */
export const noteReport = (draft: ConversationDraft, before: Conversation, report: Reported): void => {
  const { items, turn, sandboxId, rev, now } = report.report;
  const former = before.sandbox?.id === sandboxId ? before.sandbox.order : null;
  const orders = newOrders(draft, report.report);
  const late = lateFrom(before, report.report, draft);
  for (const item of items) noteItem(draft, item, report);
  if (late !== null) draft.arrange(sandboxId, late);
  const allOrders = former === null ? orders : [former, ...orders];
  draft.setSandbox({ id: sandboxId, rev, order: allOrders.length === 0 ? null : Math.max(...allOrders) });
  if (turn === null) return;
  const since = turn.state === before.turn.state ? before.turn.since : now;
  draft.setTurn({ state: turn.state, since, waitingFor: draft.ofNative(turn.waiting_for)?.id ?? null });
};

/** A request with which the agent begins to ask a person. */
export interface NewRequest {
  readonly id: string;
  readonly reason: AgentRequest["kind"];
}

/** The request with which a report has the agent begin to ask a person. Null if it asks nothing new. */
export const newRequest = (
  items: readonly Item[],
  changes: readonly ConversationChange[],
): NewRequest | null => {
  const before = new Set(items.map(({ id }) => id));
  const requests = changes.flatMap((change) => {
    if (change.type !== "item") return [];
    const { id, kind, status, request } = change.item;
    const isNew = kind === "request" && !isClosed(status) && !before.has(id);
    return isNew ? [{ id, reason: request?.kind ?? "question" }] : [];
  });
  return requests[0] ?? null;
};

/** Closes the open items of an ended sandbox. Its turn ends unless a later sandbox has begun another. */
export const closeItems = (
  draft: ConversationDraft,
  { sandbox, turn }: Conversation,
  end: {
    readonly items: readonly Item[];
    readonly sandboxId: string;
    readonly as: "interrupted" | "lost";
    readonly now: number;
  },
): void => {
  for (const item of end.items) draft.put({ ...item, status: end.as, completedAt: end.now });
  if (sandbox?.id === end.sandboxId && turn.state !== "idle")
    draft.setTurn({ state: "idle", since: end.now, waitingFor: null });
};

/** What a new conversation takes from its session. */
export interface Beginning {
  readonly id: string;
  readonly initialPrompt: string | null;
  readonly createdBy: string;
  readonly userName: string;
  readonly triggerSlug: string | null;
  readonly fireId: string | null;
  /** Null if a person made the session. */
  readonly fireKind: FireKind | null;
  readonly createdAt: number;
  readonly bootstrapAcceptedAt: number | null;
}

const beginner = ({ createdBy, userName, triggerSlug, fireId, fireKind }: Beginning): Author =>
  triggerSlug === null
    ? { kind: "user", userId: createdBy, name: userName, triggerSlug: null, fireId: null }
    : {
        kind: "trigger",
        userId: fireKind === "manual" ? createdBy : null,
        name: triggerSlug,
        triggerSlug,
        fireId,
      };

/** The conversation of a session, still empty. */
export const emptyConversation = (id: string, now: number): Conversation => ({
  id,
  seq: 0,
  turnSeq: 0,
  turn: { state: "idle", since: now, waitingFor: null },
  usage: NO_USAGE,
  sandbox: null,
  bytes: 0,
  held: false,
  turnRequest: null,
  lastSentence: null,
});

/** The initial prompt is the first message. A session of an older version may have it accepted already. */
export const putPrompt = (draft: ConversationDraft, beginning: Beginning): void => {
  const { id, initialPrompt, createdAt, bootstrapAcceptedAt } = beginning;
  if (initialPrompt === null) return;
  draft.put({
    ...OWN_ITEM,
    id,
    kind: "message",
    role: "user",
    author: beginner(beginning),
    status: bootstrapAcceptedAt === null ? "queued" : "accepted",
    turnId: id,
    content: [{ type: "text", text: storableText(initialPrompt) }],
    createdAt,
    completedAt: bootstrapAcceptedAt,
  });
};
