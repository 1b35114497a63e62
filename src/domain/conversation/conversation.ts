/**
 * A session's conversation: its items, as the daemon reports them and the service keeps them. Nothing here belongs to
 * one agent runtime.
 *
 *  V1 An item has one id for ever. A later version of it has a higher `rev`, and replaces the earlier one whole.
 *  V2 A closed item (`isClosed` of growing.ts) gets no other status.
 *  V3 A text that grows keeps its beginning: a delta names the offset at which it continues.
 *  V4 Items are shown in the order in which the agent made them (`order`), in whatever order they are reported.
 */
import * as Schema from "effect/Schema";

/** How much of a tool's output an item holds, in bytes. The rest is kept apart. */
export const OUTPUT_INLINE_MAX = 64 * 1024;
/** How much of a tool's output is kept in all, in bytes. */
export const OUTPUT_KEPT_MAX = 1024 * 1024;

/** How much of an item's text is kept, in UTF-16 code units. Its end says how much is missing. */
export const TEXT_KEPT_MAX = 1024 * 1024;

export const ItemKind = Schema.Literals(["message", "thought", "tool", "plan", "request", "note"]);
export type ItemKind = typeof ItemKind.Type;

/** Statuses of a message that a person or a trigger sends. */
export const MessageStatus = Schema.Literals(["queued", "sending", "accepted", "cancelled", "failed"]);
export type MessageStatus = typeof MessageStatus.Type;

/** Statuses of every other item. `lost`: its sandbox ended before the item did. */
export const WorkStatus = Schema.Literals([
  "pending",
  "running",
  "completed",
  "failed",
  "interrupted",
  "lost",
]);
export type WorkStatus = typeof WorkStatus.Type;
export type ItemStatus = MessageStatus | WorkStatus;

/** Who said something. */
export interface Author {
  readonly kind: "user" | "trigger" | "service" | "agent" | "sandbox";
  /** The user; for a trigger, the user who fired it. Null if no person is concerned. */
  readonly userId: string | null;
  /** The user's name, the trigger's slug, or the agent's name. */
  readonly name: string;
  readonly triggerSlug: string | null;
  readonly fireId: string | null;
}

/** The author of what the service itself says. */
export const SERVICE_AUTHOR: Author = {
  kind: "service",
  userId: null,
  name: "platform",
  triggerSlug: null,
  fireId: null,
};

/** The author of a message that reached the agent runtime without the platform: no person is known to have sent it. */
export const SANDBOX_AUTHOR: Author = {
  kind: "sandbox",
  userId: null,
  name: "Sent from inside the sandbox",
  triggerSlug: null,
  fireId: null,
};

export const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  name: Schema.String,
  media_type: Schema.String,
  /** The id of a kept attachment. Null if the file lies in the workspace. */
  attachment_id: Schema.NullOr(Schema.String),
});
export type FilePart = typeof FilePart.Type;

/** One part of an item's content. */
export const ContentPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  FilePart,
]);
export type ContentPart = typeof ContentPart.Type;

/** The text of an item's content, without its files. */
export const contentText = (content: readonly ContentPart[]): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");

/** The ids of the attachments in an item's content. */
export const attachmentIds = (content: readonly ContentPart[]): readonly string[] =>
  content.flatMap((part) =>
    part.type === "file" && part.attachment_id !== null ? [part.attachment_id] : [],
  );

/** The work of a tool, in the words of the Agent Client Protocol. */
export const ToolKind = Schema.Literals([
  "read",
  "edit",
  "delete",
  "move",
  "search",
  "execute",
  "think",
  "fetch",
  "other",
]);
export type ToolKind = typeof ToolKind.Type;

/** A file that a tool changed. */
export const FileChange = Schema.Struct({
  path: Schema.String,
  operation: Schema.Literals(["add", "update", "delete", "move"]),
  /** A unified diff. Null if the runtime reports none. */
  patch: Schema.NullOr(Schema.String),
});
export type FileChange = typeof FileChange.Type;

export const ToolCall = Schema.Struct({
  name: Schema.String,
  kind: ToolKind,
  title: Schema.NullOr(Schema.String),
  /** The arguments, as the model gave them. */
  input: Schema.Unknown,
  /** The first `OUTPUT_INLINE_MAX` bytes. */
  output: Schema.String,
  /** Whether `output` is only the beginning. */
  truncated: Schema.Boolean,
  changes: Schema.Array(FileChange),
  /** The code with which a command ended. Absent: it runs, or the runtime does not tell. */
  exit_code: Schema.optionalKey(Schema.Finite),
});
export type ToolCall = typeof ToolCall.Type;

export const PlanEntry = Schema.Struct({
  text: Schema.String,
  status: Schema.Literals(["pending", "running", "completed", "cancelled"]),
});
export type PlanEntry = typeof PlanEntry.Type;

/** One question of a request. */
export const Question = Schema.Struct({
  title: Schema.String,
  text: Schema.String,
  options: Schema.Array(Schema.Struct({ label: Schema.String, description: Schema.NullOr(Schema.String) })),
  /** Whether several options may be chosen. */
  multiple: Schema.Boolean,
});
export type Question = typeof Question.Type;

/** A plan that waits for a person's approval, before the agent works by it. */
export const ProposedPlan = Schema.Struct({
  /** Markdown. */
  text: Schema.String,
  /** The ways in which the agent may go on, the usual one first. */
  modes: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String })),
  /** The agent waits within its turn, and goes on with it after the approval. Absent: its turn has ended. */
  in_turn: Schema.optionalKey(Schema.Literal(true)),
});
export type ProposedPlan = typeof ProposedPlan.Type;

/** What the agent waits for. */
export const AgentRequest = Schema.Struct({
  kind: Schema.Literals(["permission", "question", "plan"]),
  /** For a permission: what the agent asks to do, and the paths or commands concerned. */
  title: Schema.String,
  patterns: Schema.Array(Schema.String),
  /** For a permission to run a command: the whole command, as it will run. Absent if the runtime does not tell it. */
  command: Schema.optionalKey(Schema.String),
  /** For a permission: the patterns that the answer `always` allows from then on. Absent if the runtime does not tell them. */
  always: Schema.optionalKey(Schema.Array(Schema.String)),
  /** For a permission to change files: the changes, as they will be made. Absent if the runtime does not tell them. */
  changes: Schema.optionalKey(Schema.Array(FileChange)),
  questions: Schema.Array(Question),
  /** For a plan. Absent for all others. */
  plan: Schema.optionalKey(ProposedPlan),
});
export type AgentRequest = typeof AgentRequest.Type;

/** The request of an agent that has proposed a plan. */
export const planRequest = (plan: ProposedPlan): AgentRequest => ({
  kind: "plan",
  title: "",
  patterns: [],
  questions: [],
  plan,
});

/** Tokens and cost of one call of a model, or a sum of them. */
export const Usage = Schema.Struct({
  input_tokens: Schema.Finite,
  output_tokens: Schema.Finite,
  cached_tokens: Schema.Finite,
  /** US dollars. 0 if the runtime knows no price. */
  cost_usd: Schema.Finite,
});
export type Usage = typeof Usage.Type;

export const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };

/** How full the model's context is after one of the agent's calls. */
export const ContextUse = Schema.Struct({
  /** What the next call begins with. */
  tokens: Schema.Finite,
  /** How many tokens the model's context can hold. Null if the runtime does not know. */
  size: Schema.NullOr(Schema.Finite),
});
export type ContextUse = typeof ContextUse.Type;

export const ItemError = Schema.Struct({ code: Schema.String, message: Schema.String });
export type ItemError = typeof ItemError.Type;

/** An item as the daemon reports it. Its ids are the runtime's own. */
export const NativeItem = Schema.Struct({
  /** Unique in the sandbox, and the same in every report of the item. */
  native_id: Schema.String,
  /** The daemon's number of this version. It rises with every report of the sandbox. */
  rev: Schema.Finite,
  /** Counts the items in the order in which the agent made them, with gaps. Absent: a daemon from before this field. */
  order: Schema.optionalKey(Schema.Finite),
  kind: ItemKind,
  role: Schema.NullOr(Schema.Literals(["user", "agent"])),
  status: WorkStatus,
  /** Our id of the message that a person sent. Null for all other items. */
  message_id: Schema.NullOr(Schema.String),
  /** The native id of the message that began the turn. */
  turn_id: Schema.NullOr(Schema.String),
  /** For an item of a subagent: the native id of the tool call that started it. */
  parent_id: Schema.NullOr(Schema.String),
  content: Schema.Array(ContentPart),
  tool: Schema.NullOr(ToolCall),
  plan: Schema.Array(PlanEntry),
  request: Schema.NullOr(AgentRequest),
  /** `provider/model`. */
  model: Schema.NullOr(Schema.String),
  usage: Schema.NullOr(Usage),
  /** Absent: not told, or a call of a subagent. */
  context: Schema.optionalKey(ContextUse),
  /** The runtime replaced the conversation before this item with a summary. */
  compacts: Schema.optionalKey(Schema.Literal(true)),
  error: Schema.NullOr(ItemError),
  /** ms since the epoch, by the sandbox's clock. */
  created_at: Schema.Finite,
  completed_at: Schema.NullOr(Schema.Finite),
});
export type NativeItem = typeof NativeItem.Type;

/** The fields that most items leave empty. */
export const EMPTY_ITEM = {
  message_id: null,
  parent_id: null,
  content: [],
  tool: null,
  plan: [],
  request: null,
  model: null,
  usage: null,
  error: null,
} as const satisfies Partial<NativeItem>;

/** Text that was added to an item's last text part since its last report. It may be lost. */
export const TextDelta = Schema.Struct({
  native_id: Schema.String,
  /** The text's length before, in UTF-16 code units. */
  offset: Schema.Finite,
  text: Schema.String,
});
export type TextDelta = typeof TextDelta.Type;

/** The runtime's present state. */
export const TurnNow = Schema.Struct({
  state: Schema.Literals(["idle", "running", "requires_action"]),
  /** The native id of the request that the agent waits for. */
  waiting_for: Schema.NullOr(Schema.String),
  /** No turn runs: the last one has ended with a plan, for which the agent waits. */
  rests: Schema.optionalKey(Schema.Literal(true)),
  /** The runtime's own title of the conversation. Absent: it has none, or does not tell it. */
  title: Schema.optionalKey(Schema.String),
});
export type TurnNow = typeof TurnNow.Type;

/** Whether a turn runs. It may wait for a person. */
export const isTurnOpen = ({ state, rests }: TurnNow): boolean => state !== "idle" && rests !== true;

/** One line of the daemon's report of the conversation. */
export const ConversationReport = Schema.Union([
  Schema.Struct({ type: Schema.Literal("item"), item: NativeItem }),
  Schema.Struct({ type: Schema.Literal("delta"), delta: TextDelta }),
  Schema.Struct({
    type: Schema.Literal("turn"),
    turn: TurnNow,
    /** How many turns of this sandbox have ended. They are numbered from 1. */
    ended: Schema.Finite,
    /** Everything up to this number was reported. */
    rev: Schema.Finite,
  }),
]);
export type ConversationReport = typeof ConversationReport.Type;
