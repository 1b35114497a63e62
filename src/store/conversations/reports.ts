/** Makes a daemon's report storable. Both adapters use it. The report may contain anything that its schema allows. */
import { createHash } from "node:crypto";
import {
  OUTPUT_INLINE_MAX,
  type ContextUse,
  type NativeItem,
  type TurnNow,
  type Usage,
} from "../../domain/conversation/conversation.ts";
import { parseUuid } from "../../domain/ids.ts";
import { cutText, storableText } from "../../domain/text.ts";
import type { NotedReport } from "../ports/sessions/conversations.ts";

/** A deeper value, such as a tool's input, is cut off: jsonb has a limit, too. */
const DEPTH_MAX = 64;
/** Longest native id that is kept as it is. An index entry must fit a page of the database. */
const NATIVE_ID_MAX = 200;
const NAME_MAX = 500;
/** The end of the year 9999, which every format can hold. */
const LAST_INSTANT = 253_402_300_799_999;
/** Of tokens and dollars: sums stay exact. */
const COUNT_MAX = 1_000_000_000_000;

const storableValue = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return storableText(value);
  // -0 is 0 in the database.
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : null;
  if (typeof value !== "object" || value === null) return typeof value === "boolean" ? value : null;
  if (depth === 0) return null;
  if (Array.isArray(value)) return value.map((part) => storableValue(part, depth - 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [storableText(name), storableValue(part, depth - 1)]),
  );
};

/** JSON of any form, in the form in which jsonb returns it. */
const storable = <A>(value: A): A => storableValue(value, DEPTH_MAX) as A;

const within = (value: number, max: number): number => Math.max(0, Math.min(value, max));
const whole = (value: number, max: number): number => Math.trunc(within(value, max));

const storableId = (id: string): string => {
  const text = storableText(id);
  return text.length <= NATIVE_ID_MAX ? text : createHash("sha256").update(text).digest("hex");
};
const nullable = <A, B>(value: A | null, of: (value: A) => B): B | null =>
  value === null ? null : of(value);

/** The first bytes of a text, in whole characters. */
export const cutBytes = (text: string, max: number): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let end = max;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
};

const storableTool = (tool: NonNullable<NativeItem["tool"]>): NonNullable<NativeItem["tool"]> => {
  const output = cutBytes(tool.output, OUTPUT_INLINE_MAX);
  return {
    ...tool,
    name: cutText(tool.name, NAME_MAX),
    title: nullable(tool.title, (title) => cutText(title, NAME_MAX)),
    output,
    truncated: tool.truncated || output.length < tool.output.length,
  };
};

const storableUsage = (usage: Usage): Usage => ({
  input_tokens: whole(usage.input_tokens, COUNT_MAX),
  output_tokens: whole(usage.output_tokens, COUNT_MAX),
  cached_tokens: whole(usage.cached_tokens, COUNT_MAX),
  cost_usd: within(usage.cost_usd, COUNT_MAX),
});

const storableContext = ({ tokens, size }: ContextUse): ContextUse => ({
  tokens: whole(tokens, COUNT_MAX),
  size: nullable(size, (value) => whole(value, COUNT_MAX)),
});

const storableItem = (report: NativeItem): NativeItem => {
  const item = storable(report);
  return {
    ...item,
    native_id: storableId(report.native_id),
    rev: wholeRev(report.rev),
    ...(report.order !== undefined && { order: wholeRev(report.order) }),
    message_id: item.message_id === null ? null : parseUuid(item.message_id),
    turn_id: nullable(report.turn_id, storableId),
    parent_id: nullable(report.parent_id, storableId),
    tool: nullable(item.tool, storableTool),
    model: nullable(item.model, (model) => cutText(model, NAME_MAX)),
    usage: nullable(report.usage, storableUsage),
    ...(report.context !== undefined && { context: storableContext(report.context) }),
    created_at: whole(report.created_at, LAST_INSTANT),
    completed_at: nullable(report.completed_at, (instant) => whole(instant, LAST_INSTANT)),
  };
};

const wholeRev = (rev: number): number => whole(rev, Number.MAX_SAFE_INTEGER);

const storableTurnNow = ({ state, waiting_for: waitingFor }: TurnNow): TurnNow => ({
  state,
  waiting_for: nullable(waitingFor, storableId),
});

/** The report with one version of each item, the newest, as the agent made the items, or else as they were reported. */
export const storableReport = ({ items, turn, rev, ...report }: NotedReport): NotedReport => {
  const newest = new Map<string, NativeItem>();
  for (const item of items.map(storableItem).toSorted((a, b) => a.rev - b.rev))
    newest.set(item.native_id, item);
  const inOrder = [...newest.values()].toSorted((a, b) => (a.order ?? a.rev) - (b.order ?? b.rev));
  return { ...report, items: inOrder, turn: nullable(turn, storableTurnNow), rev: wholeRev(rev) };
};
