/**
 * Conversations: what people, triggers and the agent said and did in a session, over all its sandboxes. Adapters keep
 * the invariants of journal.ts, and these:
 *  N1 `seq` counts the versions of a conversation's items and of its state, from 1, without gaps, in the order of
 *     commits. A reader that has everything up to a number and reads the changes after it has everything again.
 *  N2 A sandbox writes only while it is its session's current one and has not ended, and only with a higher `rev` than
 *     before, or with a turn at the same `rev`: it can come after the last version before it was written. Any other report
 *     writes nothing.
 *  N3 A closed item keeps its status. An item of an earlier sandbox changes only while it is open.
 *  N4 The items of a sandbox stand in the order in which its agent made them. An item that is reported late takes the last
 *     place, and those that the agent made after it move behind it: at most `ITEMS_MOVED_MAX` of them. Notes of the service and waiting
 *     messages move with the item behind which they stand.
 *  N5 Text from a sandbox is made storable first. No report can make a row that cannot be written or read.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type {
  AgentRequest,
  Author,
  ContentPart,
  ItemError,
  ItemKind,
  ItemStatus,
  NativeItem,
  PlanEntry,
  ToolCall,
  TurnNow,
  ContextUse,
  Usage,
} from "../../../domain/conversation/conversation.ts";
import type { TurnRequest } from "../../../domain/conversation/row-texts.ts";
import type { AttachmentHead } from "../../../domain/conversation/attachment.ts";
import type { RequestAnswer } from "../../../domain/conversation/steering.ts";
import type { ConversationCommand, ConversationSnapshot } from "../../../machines/conversation.ts";
import type { ConversationEvent } from "../../../machines/conversation-events.ts";
import type { BadCursor } from "../errors.ts";
import type { Memory, Stored, UnsettledActor } from "../journal.ts";

/** How many bytes of a conversation are kept: its items, outputs and attachments. */
export const CONVERSATION_KEPT_MAX = 64 * 1024 * 1024;
/** When a conversation is full, room is made down to this size, so that not every write has to make room. */
export const CONVERSATION_TRIM_TO = 56 * 1024 * 1024;
/** The largest record of one item, in bytes. A larger one is kept without its content, and marked `pruned`. */
export const ITEM_KEPT_MAX = 4 * 1024 * 1024;
/** How many items one report moves behind others (N4). */
export const ITEMS_MOVED_MAX = 500;
/** How long an attachment is kept that no message has, ms. */
export const ATTACHMENT_UNUSED_MS = 6 * 60 * 60 * 1000;
/** A reader that misses more versions than this is told `reset`, and reads the newest page instead. */
export const CHANGES_BEHIND_MAX = 2_000;

/** The answer to a request. */
export interface GivenAnswer {
  /** Null if no person answered. */
  readonly by: Author | null;
  readonly at: number;
  readonly answer: RequestAnswer;
}

export interface Item {
  readonly id: string;
  /** The number of this version (N1). */
  readonly seq: number;
  /** Its place: items are shown in this order. A message that the agent accepts moves to the end, and so do items by N4. */
  readonly place: number;
  readonly kind: ItemKind;
  readonly status: ItemStatus;
  readonly role: "user" | "agent" | null;
  /** Null if the runtime has a message of a person that did not come through the service. */
  readonly author: Author | null;
  /** The id of the message that began the turn. */
  readonly turnId: string | null;
  /** The id of the tool call that started the subagent. */
  readonly parentId: string | null;
  readonly content: readonly ContentPart[];
  readonly tool: ToolCall | null;
  readonly plan: readonly PlanEntry[];
  readonly request: AgentRequest | null;
  /** The answer to a request, once a person or the service gave one. */
  readonly answer: GivenAnswer | null;
  readonly model: string | null;
  /** The agent that a person chose for a message. Null means the agent of the message before. */
  readonly agent: string | null;
  /** The effort that a person chose for a message. Absent: as for the message before. */
  readonly effort?: string;
  readonly usage: Usage | null;
  readonly context?: ContextUse;
  readonly compacts?: true;
  readonly error: ItemError | null;
  /** Whether content or output was removed to make room. */
  readonly pruned: boolean;
  readonly createdAt: number;
  readonly completedAt: number | null;
  /** When a message went to the runtime that is to have it. */
  readonly sentAt: number | null;
  /** The runtime's own id. Null until the runtime has the message. */
  readonly nativeId: string | null;
  /** The sandbox that reported it last, and the number of the report. */
  readonly sandboxId: string | null;
  readonly rev: number;
  /** Its number in the order in which that sandbox's agent made its items (N4). Null if not known. */
  readonly order: number | null;
}

export interface Turn {
  readonly state: TurnNow["state"];
  readonly since: number;
  /** The id of the request that the agent waits for. */
  readonly waitingFor: string | null;
}

/** What a list of sessions shows of a conversation. */
export interface ConversationState {
  readonly turn: Turn;
  /** Sums over all items. */
  readonly usage: Usage;
  /** Whether the queue waits for a person. */
  readonly held: boolean;
}

/** What a session's row shows of its conversation. */
export interface ConversationRowState extends ConversationState {
  /** The request that the agent waits for, in short. Null if it waits for nothing, or if an earlier version stored it. */
  readonly turnRequest: TurnRequest | null;
  /** The first sentence of the agent's last whole message. */
  readonly lastSentence: string | null;
}

export interface Conversation extends ConversationRowState {
  /** The session's id. */
  readonly id: string;
  /** The number of the last version (N1). */
  readonly seq: number;
  /** The number of the last version of `turn`, `usage` and `held`. */
  readonly turnSeq: number;
  /** The sandbox whose report was written last, up to which of its numbers, and the highest `order` of its items. */
  readonly sandbox: { readonly id: string; readonly rev: number; readonly order: number | null } | null;
  /** The size of its items, outputs and attachments. */
  readonly bytes: number;
}

/** One new version, in the order of `seq`. A later version of an item replaces the earlier one whole. */
export type ConversationChange =
  | { readonly type: "item"; readonly seq: number; readonly item: Item }
  | ({ readonly type: "state"; readonly seq: number } & ConversationState);

/** The usage that a write adds to a model. */
export interface AddedUsage {
  readonly model: string;
  readonly usage: Usage;
}

/** A conversation after a write, and what the write changed. */
export interface ChangedConversation {
  readonly conversation: Conversation;
  readonly changes: readonly ConversationChange[];
  /** What this write added to the usage. Absent: nothing. */
  readonly spent?: readonly AddedUsage[];
}

export interface ConversationPage {
  readonly conversation: Conversation;
  /** Newest first, by `place`. */
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  /** Messages that wait or are being sent, oldest first. */
  readonly queue: readonly Item[];
  /** Requests that wait for an answer, oldest first. */
  readonly requests: readonly Item[];
}

/** An item that a search found, with the sentence around the words. */
export interface SearchHit {
  readonly itemId: string;
  readonly at: number;
  readonly text: string;
}

export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly sha256: string;
  /** At most `ATTACHMENT_MAX` bytes. */
  readonly content: Uint8Array;
}

/** A daemon's report, as far as it was read. */
export interface NotedReport {
  readonly sandboxId: string;
  readonly items: readonly NativeItem[];
  /** Null means no news. */
  readonly turn: TurnNow | null;
  /** Everything up to this number was reported. Two reports of the turn with one number are equal. */
  readonly rev: number;
  readonly now: number;
}

/** What the service writes into a conversation by itself. */
export interface ServiceNote {
  readonly id: string;
  readonly text: string;
  readonly author: Author;
  /** Ms since the epoch. */
  readonly at: number;
}

export class Conversations extends Context.Service<
  Conversations,
  {
    /**
     * The session's conversation. If it has none yet, makes it, with the initial prompt as its first message: its id is the
     * session's, its author the user or the trigger. Null for an unknown or deleted session.
     */
    readonly open: (sessionId: string, now: number) => Stored<Conversation | null>;
    /**
     * The memory of the conversation's actor. A save writes what the step means for messages and requests, too. Load gives
     * null before `open`.
     */
    readonly memory: Memory<ConversationSnapshot, ConversationEvent, ConversationCommand>;
    /** Conversations with pending commands. */
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /** Null before `open`, and once the session is deleted. */
    readonly get: (sessionId: string) => Stored<Conversation | null>;
    /** The states of several sessions' conversations, without those that have none. */
    readonly states: (sessionIds: readonly string[]) => Stored<ReadonlyMap<string, ConversationState>>;
    /**
     * Writes a report of the session's current sandbox (N2, N3). Returns null and writes nothing if the sandbox is not
     * current any more, or if the conversation was not opened. A report that was written before changes nothing.
     */
    readonly note: (sessionId: string, report: NotedReport) => Stored<ChangedConversation | null>;
    /**
     * Adds a note of the service as the last item, unless the conversation has one with its id. False: nothing was added, or there is no
     * conversation.
     */
    readonly addNote: (sessionId: string, note: ServiceNote) => Stored<boolean>;
    /** Closes the items that an ended sandbox left open, and its turn. Null if there is no conversation. */
    readonly close: (
      sessionId: string,
      end: { readonly sandboxId: string; readonly as: "interrupted" | "lost"; readonly now: number },
    ) => Stored<ChangedConversation | null>;
    /** One consistent snapshot. `before` is a former page's `nextCursor`; null: the newest page. */
    readonly page: (
      sessionId: string,
      request: { readonly before: string | null; readonly limit: number },
    ) => Stored<ConversationPage | null, BadCursor>;
    /** The newest messages, and answers of people, in which the words of a search are. Newest first. */
    readonly search: (
      sessionId: string,
      request: { readonly search: string; readonly limit: number },
    ) => Stored<readonly SearchHit[]>;
    /**
     * The changes after a number, in order, at most `limit`. `seq`: up to which number they reach. `reset`: the number is
     * too old or unknown; the reader starts again with the newest page. Null if there is no conversation.
     */
    readonly changedAfter: (
      sessionId: string,
      seq: number,
      limit: number,
    ) => Stored<{
      readonly changes: readonly ConversationChange[];
      readonly seq: number;
      readonly reset: boolean;
    } | null>;
    /**
     * Completes when something may have changed: at a commit's signal, on every node. The reader's poll makes up for
     * lost signals.
     */
    readonly changed: (sessionId: string) => Effect.Effect<void>;
    /**
     * Keeps a tool's whole output, up to `OUTPUT_KEPT_MAX` bytes, in place of the former one. False, and nothing is
     * kept: the item is unknown or not of this sandbox, or its output was pruned.
     */
    readonly keepOutput: (
      sessionId: string,
      output: { readonly itemId: string; readonly sandboxId: string; readonly text: string },
    ) => Stored<boolean>;
    /** One item. Null if the conversation does not have it. */
    readonly item: (sessionId: string, itemId: string) => Stored<Item | null>;
    /** Null if none is kept. A short output is in its item alone. */
    readonly output: (sessionId: string, itemId: string) => Stored<string | null>;
    /**
     * Keeps an attachment; a second call with its id changes nothing. `full`: the conversation has no room for it, and
     * nothing is kept. Null if there is no conversation. Without a message that has it, it expires after
     * `ATTACHMENT_UNUSED_MS`. A message that names it is written together with the end of that limit.
     */
    readonly keepAttachment: (
      sessionId: string,
      attachment: Attachment & { readonly now: number },
    ) => Stored<"kept" | "full" | null>;
    readonly attachment: (sessionId: string, id: string) => Stored<Attachment | null>;
    /** Those of the named attachments that the conversation has, in the order of the names. */
    readonly attachmentHeads: (
      sessionId: string,
      ids: readonly string[],
    ) => Stored<readonly AttachmentHead[]>;
    /** Removes expired attachments of a few conversations, and returns how many. */
    readonly pruneAttachments: (now: number) => Stored<number>;
  }
>()("platform/store/Conversations") {}
