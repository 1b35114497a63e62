/**
 * Turns a history (src/domain/conversation/history.ts) into opencode's records: messages, and the events that make them. Pure.
 *
 *  N1 All ids rise in the history's order, are older than those of later messages, and say that the record is restored. So
 *     nothing else needs to remember which records are restored, and none becomes an item a second time.
 *  N2 Times do not fall, and are not in the future: opencode orders messages by their times first.
 *  N3 Each message is closed. The last one of an unfinished turn is aborted, as after an interrupt, so opencode does not
 *     go on with it.
 *  N4 A call of the model is a message. It ends with the item that has its usage, or where a text follows a tool call.
 */
import { isRecord } from "../../../src/ground/record.ts";
import type { PlanEntry, Usage } from "../../../src/domain/conversation/conversation.ts";
import type { History, PastItem } from "../../../src/domain/conversation/history.ts";
import { splitModel, UNKNOWN_MODEL } from "./api.ts";
import { RESTORED, timedId } from "./ids.ts";

/** Where the history goes. */
export interface Place {
  /** opencode's id of the agent session. */
  readonly session: string;
  /** Absolute. */
  readonly directory: string;
  /** Of messages that name none. */
  readonly agent: string;
  readonly model: string | null;
  /** ms since the epoch. */
  readonly nowMs: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** A message as opencode lists it. */
export interface ListedMessage {
  readonly info: Fields;
  readonly parts: readonly Fields[];
}

export interface SyncEvent {
  readonly id: string;
  readonly aggregateID: string;
  readonly seq: number;
  readonly type: string;
  readonly data: Fields;
}

/** How many events one call has, and how many bytes of JSON if there are several. */
const BATCH_EVENTS = 50;
const BATCH_BYTES = 512 * 1024;
/** How far before now the ids lie. Within one ms there is room for 4,096. */
const IDS_BEFORE_MS = 60_000;

const BEGINNING = "The beginning of this conversation is not known any more.";
const ABORTED = { name: "MessageAbortedError", data: { message: "Aborted" } };
/** opencode's own words. */
const TOOL_ABORTED = "Tool execution aborted";

/** The messages, oldest first. */
export const restoredMessages = ({ summary, items }: History, place: Place): readonly ListedMessage[] => {
  const writer = new Writer(place);
  const [first] = items;
  if (summary !== null) writer.told(summary, first?.created_at ?? 0);
  else if (first?.role === "agent") writer.told(BEGINNING, first.created_at);
  for (const item of items) {
    if (item.role === "user") writer.asked(item);
    else writer.worked(item);
  }
  writer.close();
  return writer.messages;
};

/** The events that make the messages in a session that has only been created, in their order. */
export const messageEvents = (
  messages: readonly ListedMessage[],
  { session, nowMs }: Place,
): readonly SyncEvent[] =>
  messages
    .flatMap(({ info, parts }) => [
      { type: "message.updated.1", data: { sessionID: session, info } },
      ...parts.map((part) => ({
        type: "message.part.updated.1",
        data: { sessionID: session, part, time: nowMs },
      })),
    ])
    .map(({ type, data }, at) => ({
      id: timedId("evt", { ms: nowMs - IDS_BEFORE_MS, count: at, rest: RESTORED }),
      aggregateID: session,
      // The session's creation is 0.
      seq: at + 1,
      type,
      data,
    }));

export const eventBatches = (events: readonly SyncEvent[]): readonly (readonly SyncEvent[])[] => {
  const batches: SyncEvent[][] = [];
  let room = 0;
  for (const event of events) {
    const bytes = Buffer.byteLength(JSON.stringify(event));
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === BATCH_EVENTS || bytes > room) {
      batches.push([event]);
      room = BATCH_BYTES - bytes;
    } else {
      batch.push(event);
      room -= bytes;
    }
  }
  return batches;
};

/** A call of the model that is being put together. */
interface Step {
  readonly id: string;
  readonly createdMs: number;
  readonly model: string;
  readonly parts: Fields[];
  readonly items: PastItem[];
}

class Writer {
  readonly messages: ListedMessage[] = [];
  readonly #place: Place;
  #count = 0;
  #lastMs = 0;
  #agent: string;
  #model: string;
  /** The message that the next call answers. */
  #parent = "";
  #step: Step | null = null;

  constructor(place: Place) {
    this.#place = place;
    this.#agent = place.agent;
    this.#model = place.model ?? UNKNOWN_MODEL;
  }

  /** A text for the agent that no person wrote. */
  told(text: string, atMs: number): void {
    this.#ask([{ type: "text", text, synthetic: true }], atMs);
  }

  asked({ text, files, agent, model, created_at: atMs }: PastItem): void {
    this.#agent = agent ?? this.#agent;
    this.#model = model ?? this.#model;
    const fileNames = files.map(({ name, media_type: type }) => `${name} (${type})`).join(", ");
    const notice = `Files that were attached to this message, and are not in this sandbox: ${fileNames}`;
    const parts = [
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...(files.length === 0 ? [] : [{ type: "text", text: notice, synthetic: true }]),
    ];
    this.#ask(parts, atMs);
  }

  worked(item: PastItem): void {
    const step = this.#stepFor(item);
    step.items.push(item);
    const end = this.#time(item.completed_at ?? item.created_at);
    const time = { start: Math.min(this.#past(item.created_at), end), end };
    if (item.kind === "message" && item.text === "") return;
    const part = item.kind === "message" ? { type: "text", text: item.text, time } : this.#tool(item, time);
    step.parts.push({ ...part, id: this.#id("prt"), sessionID: this.#place.session, messageID: step.id });
  }

  /** Ends the last call. */
  close(): void {
    const step = this.#step;
    this.#step = null;
    if (step === null || step.parts.length === 0) return;
    const { id, createdMs, model, parts, items } = step;
    const usage = items.findLast((item) => item.usage !== null)?.usage ?? null;
    this.messages.push({
      info: {
        id,
        sessionID: this.#place.session,
        role: "assistant",
        time: { created: createdMs, completed: this.#lastMs },
        parentID: this.#parent,
        ...splitModel(model),
        mode: this.#agent,
        agent: this.#agent,
        path: { cwd: this.#place.directory, root: this.#place.directory },
        cost: usage?.cost_usd ?? 0,
        tokens: toTokens(usage),
        ...historyEnd(items),
      },
      parts,
    });
  }

  #ask(parts: readonly Fields[], atMs: number): void {
    this.close();
    const id = this.#id("msg");
    this.#parent = id;
    const ids = { sessionID: this.#place.session, messageID: id };
    this.messages.push({
      info: {
        id,
        sessionID: this.#place.session,
        role: "user",
        time: { created: this.#time(atMs) },
        agent: this.#agent,
        model: splitModel(this.#model),
      },
      parts: parts.map((part) => ({ ...part, id: this.#id("prt"), ...ids })),
    });
  }

  /** N4. */
  #stepFor({ kind, model, created_at: atMs }: PastItem): Step {
    const step = this.#step;
    const last = step?.items.at(-1);
    const isNext =
      last === undefined || last.usage !== null || (kind === "message" && last.kind !== "message");
    const name = model ?? this.#model;
    if (step !== null && !isNext && step.model === name) return step;
    this.close();
    this.#model = name;
    const next = { id: this.#id("msg"), createdMs: this.#time(atMs), model: name, parts: [], items: [] };
    this.#step = next;
    return next;
  }

  #tool({ tool, plan, status, error }: PastItem, time: Fields): Fields {
    const { name, title, input, output } = tool ?? planTool(plan);
    const common = { input: isRecord(input) ? input : {}, time };
    const call = { type: "tool", callID: `call_${RESTORED}${this.#count}`, tool: name };
    if (status === "completed")
      return { ...call, state: { status, ...common, output, title: title ?? "", metadata: {} } };
    if (status === "failed")
      return { ...call, state: { status: "error", ...common, error: error?.message ?? "The tool failed." } };
    // The model gets the output so far, if there is any.
    const metadata = { interrupted: true, ...(output !== "" && { output }) };
    return { ...call, state: { status: "error", ...common, error: TOOL_ABORTED, metadata } };
  }

  /** N1. */
  #id(prefix: "msg" | "prt"): string {
    this.#count += 1;
    return timedId(prefix, { ms: this.#place.nowMs - IDS_BEFORE_MS, count: this.#count, rest: RESTORED });
  }

  #past(ms: number): number {
    return Math.max(0, Math.min(Math.trunc(ms), this.#place.nowMs));
  }

  /** N2. */
  #time(ms: number): number {
    this.#lastMs = Math.max(this.#lastMs, this.#past(ms));
    return this.#lastMs;
  }
}

/** How the call ended (N3). opencode does not show a failed one to the model. */
const historyEnd = (items: readonly PastItem[]): Fields => {
  const error = items.findLast((item) => item.kind === "message")?.error ?? null;
  if (items.some(({ status }) => status === "interrupted")) return { error: ABORTED };
  if (error !== null) return { error: { name: "UnknownError", data: { message: error.message } } };
  return { finish: items.some(({ kind }) => kind !== "message") ? "tool-calls" : "stop" };
};

/** The prompt's tokens include those that the provider had cached. */
const toTokens = (usage: Usage | null) => {
  const { input_tokens: input, output_tokens: output, cached_tokens: cached } = usage ?? NOTHING;
  const cache = { read: cached, write: 0 };
  return { input: Math.max(0, input - cached), output, reasoning: 0, cache };
};
const NOTHING = { input_tokens: 0, output_tokens: 0, cached_tokens: 0 };

const TASK_STATUS = {
  pending: "pending",
  running: "in_progress",
  completed: "completed",
  cancelled: "cancelled",
} as const;

/** The call of opencode's tool that wrote a plan. */
const planTool = (plan: readonly PlanEntry[]): NonNullable<PastItem["tool"]> => {
  const todos = plan.map(({ text, status }) => ({
    content: text,
    status: TASK_STATUS[status],
    priority: "medium",
  }));
  return {
    name: "todowrite",
    title: `${plan.length} todos`,
    input: { todos },
    output: JSON.stringify(todos, null, 2),
  };
};
