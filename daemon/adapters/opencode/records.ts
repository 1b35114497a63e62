/** opencode's records of a conversation, as its listing and its events contain them: the parts of them that are read. */
import * as Schema from "effect/Schema";
import { OUTPUT_KEPT_MAX, TEXT_KEPT_MAX } from "../../../src/domain/conversation/conversation.ts";
import { cutText } from "../../../src/domain/text.ts";
import { RuntimeError } from "../turn-errors.ts";
import { isRestored } from "./ids.ts";

const optional = Schema.optionalKey;
const Fields = Schema.Record(Schema.String, Schema.Unknown);

export const MessageInfo = Schema.Struct({
  id: Schema.String,
  sessionID: Schema.String,
  role: Schema.Literals(["user", "assistant"]),
  time: Schema.Struct({ created: Schema.Finite, completed: optional(Schema.Finite) }),
  /** For a message of the model: the message that it answers. */
  parentID: optional(Schema.String),
  modelID: optional(Schema.String),
  providerID: optional(Schema.String),
  path: optional(Schema.Struct({ root: Schema.String })),
  /** A summary that replaces the conversation before it. */
  summary: optional(Schema.Unknown),
  cost: optional(Schema.Finite),
  tokens: optional(
    Schema.Struct({
      input: Schema.Finite,
      output: Schema.Finite,
      reasoning: Schema.Finite,
      cache: Schema.Struct({ read: Schema.Finite, write: Schema.Finite }),
    }),
  ),
  finish: optional(Schema.String),
  error: optional(RuntimeError),
});
export type MessageInfo = typeof MessageInfo.Type;

const File = Schema.Struct({ mime: Schema.String, filename: optional(Schema.String) });

const Span = Schema.Struct({ start: optional(Schema.Finite), end: optional(Schema.Finite) });

const ToolState = Schema.Struct({
  status: Schema.Literals(["pending", "running", "completed", "error"]),
  input: optional(Schema.Unknown),
  output: optional(Schema.String),
  title: optional(Schema.String),
  error: optional(Schema.String),
  /** Each tool has its own. */
  metadata: optional(Fields),
  time: optional(Span),
  attachments: optional(Schema.Array(File)),
});
export type ToolState = typeof ToolState.Type;

export const Part = Schema.Struct({
  id: Schema.String,
  sessionID: Schema.String,
  messageID: Schema.String,
  type: Schema.String,
  text: optional(Schema.String),
  /** Text that opencode itself added to a person's message. */
  synthetic: optional(Schema.Boolean),
  ignored: optional(Schema.Boolean),
  metadata: optional(Fields),
  mime: optional(Schema.String),
  filename: optional(Schema.String),
  tool: optional(Schema.String),
  callID: optional(Schema.String),
  state: optional(ToolState),
  time: optional(Span),
  /** Of a request for a summary: the conversation was longer than the model can read. */
  overflow: optional(Schema.Boolean),
});
export interface Part extends Readonly<typeof Part.Type> {
  /** How many characters of the text were left out behind its end. */
  readonly dropped?: number;
}

/** The state of a requested summary. */
export type SummaryState = "open" | "made" | "failed";

/** A message with its parts, in their order. */
export interface Recorded {
  readonly info: MessageInfo;
  readonly parts: readonly Part[];
}

/** Metadata that is read. The rest repeats the output, and may be long. */
const READ_METADATA = [
  "output",
  "exit",
  "truncated",
  "interrupted",
  "filediff",
  "files",
  "exists",
  "sessionId",
];

const trimState = ({ metadata, output, ...state }: ToolState): ToolState => {
  const read = READ_METADATA.filter((name) => metadata !== undefined && name in metadata);
  // Once the tool has ended, `output` has what the metadata's output has.
  const names = state.status === "completed" ? read.filter((name) => name !== "output") : read;
  return {
    ...state,
    ...(output !== undefined && { output: cutText(output, OUTPUT_KEPT_MAX) }),
    ...(metadata !== undefined && {
      metadata: Object.fromEntries(names.map((name) => [name, metadata[name]])),
    }),
  };
};

const withText = (part: Part, text: string): Part => {
  const beginning = cutText(text, TEXT_KEPT_MAX);
  return { ...part, text: beginning, ...(beginning !== text && { dropped: text.length - beginning.length }) };
};

/** The part with more text at its end, as much of it as is kept. After a cut no text follows. */
export const longer = (part: Part, more: string): Part =>
  part.dropped === undefined
    ? withText(part, `${part.text ?? ""}${more}`)
    : { ...part, dropped: part.dropped + more.length };

/** The part without what is not read, and within the limits. */
const trimPart = ({ text, state, ...rest }: Part): Part => {
  const part = { ...rest, ...(state !== undefined && { state: trimState(state) }) };
  return text === undefined ? part : withText(part, text);
};

const decodePart = Schema.decodeUnknownOption(Part);
const decodeInfo = Schema.decodeUnknownOption(MessageInfo);

/** Null for a record of another form. */
export const readPart = (record: unknown): Part | null => {
  const part = decodePart(record);
  return part._tag === "Some" ? trimPart(part.value) : null;
};

/** Null for a record of another form, and for a restored one: it is an item already. */
export const readInfo = (record: unknown): MessageInfo | null => {
  const info = decodeInfo(record);
  return info._tag === "Some" && !isRestored(info.value.id) ? info.value : null;
};

/** One entry of a listing. Null as in `readInfo`. Parts of another form are left out. */
export const readMessage = (record: {
  readonly info: unknown;
  readonly parts: readonly unknown[];
}): Recorded | null => {
  const info = readInfo(record.info);
  return info === null ? null : { info, parts: record.parts.flatMap((part) => readPart(part) ?? []) };
};

/** A question or a permission for which the agent waits. */
export const PendingRequest = Schema.Struct({
  id: Schema.String,
  sessionID: Schema.String,
  questions: optional(
    Schema.Array(
      Schema.Struct({
        question: Schema.String,
        header: optional(Schema.String),
        options: optional(
          Schema.Array(Schema.Struct({ label: Schema.String, description: optional(Schema.String) })),
        ),
        multiple: optional(Schema.Boolean),
      }),
    ),
  ),
  permission: optional(Schema.String),
  patterns: optional(Schema.Array(Schema.String)),
  always: optional(Schema.Array(Schema.String)),
  /** Of a permission to change files: what would change. */
  metadata: optional(
    Schema.Struct({
      filepath: optional(Schema.Unknown),
      diff: optional(Schema.Unknown),
      files: optional(Schema.Unknown),
    }),
  ),
  tool: optional(Schema.Struct({ messageID: Schema.String, callID: Schema.String })),
});
export type PendingRequest = typeof PendingRequest.Type;
export const decodeAsked = Schema.decodeUnknownOption(PendingRequest);

const Session = Schema.Struct({
  id: Schema.String,
  title: optional(Schema.String),
  parentID: optional(Schema.String),
  time: optional(Schema.Struct({ created: Schema.Finite })),
});
export const decodeSession = Schema.decodeUnknownOption(Session);

const madeAt = (session: unknown): number => {
  const record = decodeSession(session);
  return record._tag === "Some" ? (record.value.time?.created ?? 0) : 0;
};

/** @param sessions as opencode lists them: those first that have changed last */
export const oldestFirst = (sessions: readonly unknown[]): readonly unknown[] =>
  sessions.toSorted((a, b) => madeAt(a) - madeAt(b));

const ConversationEvent = Schema.Struct({
  type: Schema.String,
  properties: Schema.Struct({
    sessionID: optional(Schema.String),
    info: optional(Schema.Unknown),
    part: optional(Schema.Unknown),
    messageID: optional(Schema.String),
    partID: optional(Schema.String),
    field: optional(Schema.String),
    delta: optional(Schema.String),
    status: optional(Schema.Struct({ type: Schema.String })),
    error: optional(Schema.Unknown),
    requestID: optional(Schema.String),
    reply: optional(Schema.String),
    answers: optional(Schema.Array(Schema.Array(Schema.String))),
  }),
});
export type EventProperties = (typeof ConversationEvent.Type)["properties"];
export const decodeConversationEvent = Schema.decodeUnknownOption(ConversationEvent);

/** Whether the model goes on with the message. */
export const isOpen = ({ role, time, error }: MessageInfo): boolean =>
  role === "assistant" && time.completed === undefined && error === undefined;

const RANKS = { pending: 0, running: 1, completed: 2, error: 2 } as const;

/**
 * Whether a record of a part is from before the known one. `isNews` says that it is an event: of two records of a
 * running tool, the event is newer than a listing.
 */
export const isOlder = (part: Part, former: Part, isNews: boolean): boolean => {
  if (part.state !== undefined && former.state !== undefined) {
    const [rank, knownRank] = [RANKS[part.state.status], RANKS[former.state.status]];
    return rank < knownRank || (rank === knownRank && rank < RANKS.completed && !isNews);
  }
  if (part.time?.end !== undefined) return false;
  return former.time?.end !== undefined || (part.text ?? "").length < (former.text ?? "").length;
};

/** The part, ended if it is a tool call that goes on. */
export const interruptPart = (part: Part, atMs: number): Part => {
  const { state } = part;
  if (state === undefined || state.status === "completed" || state.status === "error") return part;
  const metadata = { ...state.metadata, interrupted: true };
  return { ...part, state: { ...state, status: "error", metadata, time: { ...state.time, end: atMs } } };
};
