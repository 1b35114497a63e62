/** What a conversation's machine remembers and hears: conversation.ts has the rules M1 to M9. */
import type { Author, ItemError } from "../domain/conversation/conversation.ts";
import type { MessageDraft, RequestAnswer } from "../domain/conversation/steering.ts";

export interface ConversationContext {
  /** The sandbox whose runtime takes messages. Null if none does now. */
  readonly sandboxId: string | null;
  /** The number of the newest turn that has begun in that sandbox. */
  readonly turn: number;
  /** How many of its turns have ended. */
  readonly ended: number;
  /** Up to which change of the conversation the newest report goes. */
  readonly seq: number;
  /** Open requests, the oldest first. */
  readonly requests: readonly string[];
  /** Those of them that are plans. If no turn runs, they keep no message waiting (conversation.ts M9). */
  readonly plans: readonly string[];
  /** Open requests that have their answer. */
  readonly answered: readonly string[];
  /** Messages that wait, the next one first. */
  readonly queue: readonly string[];
  /** The message that is on its way to the runtime. */
  readonly sending: string | null;
  /** The last messages that left the queue for good (conversation.ts M8). */
  readonly settled: readonly string[];
  /** The queue waits for a person (conversation.ts M4). */
  readonly held: boolean;
  /** The turn of the message on its way ends as soon as it has a number. */
  readonly stopping: boolean;
  /** Whether a person may answer requests of this session. */
  readonly attended: boolean;
}
export type ConversationState = "idle" | "sending" | "running" | "requires_action";

export type ConversationEvent =
  | {
      readonly type: "message.posted";
      readonly messageId: string;
      readonly isUrgent: boolean;
      readonly message: MessageDraft;
    }
  | { readonly type: "message.cancelled"; readonly messageId: string }
  /** The runtime has the message. It begins the turn of this number. */
  | (Outcome<"message.accepted"> & { readonly turn: number })
  /** The runtime does not rest: the turn of this number runs. */
  | (Outcome<"message.deferred"> & { readonly turn: number })
  /** The message will never be accepted. */
  | (Outcome<"message.refused"> & { readonly error: ItemError })
  | { readonly type: "queue.resumed" }
  | { readonly type: "interrupt.requested" }
  | {
      readonly type: "runtime.reported";
      readonly sandboxId: string;
      /** Up to which change of the conversation this report goes. */
      readonly seq: number;
      /** How many turns have ended. */
      readonly ended: number;
      /** Whether another turn runs. */
      readonly isWorking: boolean;
      readonly requests: readonly string[];
      /** Those of the requests that are plans. */
      readonly plans: readonly string[];
      readonly isAttended: boolean;
    }
  /** The sandbox has ended, or another one takes its place. */
  | { readonly type: "runtime.gone"; readonly sandboxId: string }
  | {
      readonly type: "answer.given";
      readonly requestId: string;
      readonly answer: RequestAnswer;
      /** Null if no person answers. */
      readonly by: Author | null;
      /** The message that begins the next turn: with it the agent carries an approved plan out. */
      readonly begins?: { readonly messageId: string; readonly message: MessageDraft };
    };

interface Outcome<Type extends string> {
  readonly type: Type;
  readonly messageId: string;
  readonly sandboxId: string;
}
