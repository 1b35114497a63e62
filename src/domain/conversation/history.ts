/**
 * The history of a conversation: what a runtime in a fresh sandbox gets, so that it goes on as if it had never ended
 * (docs/decisions/0045). It is made of the items that the service keeps, and belongs to no one runtime.
 *
 *  H1 A message that the runtime does not have yet is not part of it: the runtime gets it as a message.
 *  H2 It has at most `HISTORY_ITEMS_MAX` items and `HISTORY_BYTES_MAX` bytes: the newest. `summary` tells what is older.
 *  H3 If the runtime has replaced messages by a summary of its own, to fit the model's context, the summary is used.
 *  H4 Each of its items is closed. An open one is interrupted.
 *  H5 It has no thoughts: providers accept only thoughts that they signed. Of subagents, it has the tool call that
 *     started them. Files are named only.
 */
import * as Schema from "effect/Schema";
import {
  ItemError,
  OUTPUT_INLINE_MAX,
  PlanEntry,
  contentText,
  Usage,
  type ItemStatus,
  type ToolCall,
} from "./conversation.ts";
import { EARLIER, makeRecap, UNSEEN, type Recalled } from "./recap.ts";

export const HISTORY_ITEMS_MAX = 2000;
/** Bytes of JSON. */
export const HISTORY_BYTES_MAX = 2 * 1024 * 1024;
/**
 * How many bytes before the runtime's own summary are part of the history: opencode keeps up to 15,000 tokens of the newest
 * messages beside its summary.
 */
const KEPT_BEFORE_SUMMARY = 60 * 1024;

export const PastItem = Schema.Struct({
  kind: Schema.Literals(["message", "tool", "plan"]),
  role: Schema.Literals(["user", "agent"]),
  /** A message of a person is `completed`. */
  status: Schema.Literals(["completed", "failed", "interrupted"]),
  text: Schema.String,
  files: Schema.Array(Schema.Struct({ name: Schema.String, media_type: Schema.String })),
  tool: Schema.NullOr(
    Schema.Struct({
      name: Schema.String,
      title: Schema.NullOr(Schema.String),
      input: Schema.Unknown,
      output: Schema.String,
    }),
  ),
  plan: Schema.Array(PlanEntry),
  /** `provider/model`. */
  model: Schema.NullOr(Schema.String),
  agent: Schema.NullOr(Schema.String),
  /** Of a call of the model, whose last item this is. */
  usage: Schema.NullOr(Usage),
  error: Schema.NullOr(ItemError),
  /** ms since the epoch. */
  created_at: Schema.Finite,
  completed_at: Schema.NullOr(Schema.Finite),
});
export type PastItem = typeof PastItem.Type;

export const History = Schema.Struct({
  /** What came before the items. */
  summary: Schema.NullOr(Schema.String),
  /** Oldest first, at least one. */
  items: Schema.Array(PastItem),
});
export type History = typeof History.Type;

/** What a history needs of an item. */
export interface HistoryItem extends Recalled {
  readonly model: string | null;
  readonly agent: string | null;
  readonly usage: Usage | null;
  readonly error: ItemError | null;
  readonly pruned: boolean;
  readonly completedAt: number | null;
}

const NOT_KEPT = "[This output is no longer kept.]";
const NOT_WHOLE = "\n[The rest of this output is left out.]";

/** The first item is at `start`; the runtime's own summary at `summaryAt`, or -1. */
interface Span {
  readonly start: number;
  readonly summaryAt: number;
  readonly items: readonly PastItem[];
}

/** Finds the newest items within the limits (H2, H3). */
const findSpan = (items: readonly HistoryItem[]): Span => {
  const summaryAt = items.findLastIndex((item) => ownSummary(item) !== "");
  const past: PastItem[] = [];
  let room = HISTORY_BYTES_MAX;
  for (let at = items.length - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (at === summaryAt) room = Math.min(room, KEPT_BEFORE_SUMMARY);
    const one = item === undefined ? null : toPastItem(item);
    if (one === null) continue;
    room -= Buffer.byteLength(JSON.stringify(one));
    if (room < 0 || past.length === HISTORY_ITEMS_MAX)
      return { start: at + 1, summaryAt, items: past.toReversed() };
    past.push(one);
  }
  return { start: 0, summaryAt, items: past.toReversed() };
};

/** How many of the items, given oldest first, are too old for the history. */
export const tooOld = (items: readonly HistoryItem[]): number => findSpan(items).start;

/**
 * @param items the newest items, oldest first
 * @param older the conversation's first message if it is not among them. Null if they are the whole conversation
 * @returns null if no runtime has had any of them
 */
export const makeHistory = (items: readonly HistoryItem[], older: HistoryItem | null): History | null => {
  const { start, summaryAt, items: past } = findSpan(items);
  if (past.length === 0) return null;
  const own = items[summaryAt];
  if (own !== undefined && start <= summaryAt) return { summary: ownSummary(own), items: past };
  const leftOut = items.slice(summaryAt + 1, start);
  if (own !== undefined)
    return { summary: [ownSummary(own), makeRecap(leftOut, false, EARLIER) ?? ""].join("\n\n"), items: past };
  const summary = makeRecap([...(older === null ? [] : [older]), ...leftOut], older !== null, EARLIER);
  return { summary, items: past };
};

/** The text with which the runtime replaced the conversation before it. "": the item is another one. */
const ownSummary = ({ kind, role, content }: HistoryItem): string =>
  kind === "note" && role === "agent" ? contentText(content) : "";

/** Null if the item is no part of a history. */
const toPastItem = (item: HistoryItem): PastItem | null => {
  const { kind, role, status, content, tool, plan, parentId } = item;
  if ((kind !== "message" && kind !== "tool" && kind !== "plan") || role === null) return null;
  // H1: a message that the runtime has refused was never its own.
  if (parentId !== null || UNSEEN.has(status) || (role === "user" && status === "failed")) return null;
  const text = contentText(content);
  const files = content.flatMap((part) =>
    part.type === "file" ? [{ name: part.name, media_type: part.media_type }] : [],
  );
  if (kind === "message" && text === "" && files.length === 0 && item.error === null) return null;
  return {
    kind,
    role,
    status: role === "user" ? "completed" : closeStatus(status),
    text,
    files,
    tool: tool === null ? null : toPastTool(tool, item.pruned),
    plan,
    model: item.model,
    agent: item.agent,
    usage: item.usage,
    error: item.error,
    created_at: item.createdAt,
    completed_at: item.completedAt,
  };
};

/** H4. */
const closeStatus = (status: ItemStatus): PastItem["status"] =>
  status === "completed" || status === "failed" ? status : "interrupted";

const toPastTool = (
  { name, title, input, output, truncated }: ToolCall,
  isPruned: boolean,
): PastItem["tool"] => {
  // The runtime's own cut says so in the output. Ours is at the limit, where a character may be split.
  const isCut = truncated && Buffer.byteLength(output) > OUTPUT_INLINE_MAX - 4;
  const visibleOutput = isPruned && output === "" ? NOT_KEPT : output;
  return { name, title, input, output: isCut ? output + NOT_WHOLE : visibleOutput };
};
