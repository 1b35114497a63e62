/**
 * How the service steers the agent in a sandbox: what it sends to the daemon, and what the daemon answers.
 *
 *  Y1 A message has one id for ever. Handed over again, it is in the runtime once.
 *  Y2 The daemon numbers the turns of its sandbox from 1. A message that is handed over begins one turn.
 *  Y3 An interrupt names its turn, so it never ends a later one.
 *  Y4 Attachments travel apart from their message, once it is known which of them the daemon needs.
 */
import * as Schema from "effect/Schema";
import { AttachmentHead } from "./attachment.ts";
import { type Author, type FilePart, ItemError } from "./conversation.ts";

/** The longest text of one message, in bytes of UTF-8. */
export const MESSAGE_TEXT_MAX = 128 * 1024;
/** How many messages of a session may wait. */
export const QUEUE_MAX = 20;

/** With these words an approved plan goes back to the agent, as a message of the person who approved it. */
export const PLAN_APPROVED = "The plan is approved. Carry it out.";

/** What a person says. */
export interface MessageDraft {
  readonly author: Author;
  readonly text: string;
  readonly files: readonly FilePart[];
  /** `provider/model`. Null means the model of the message before. */
  readonly model: string | null;
  /** Null means the agent of the message before. */
  readonly agent: string | null;
  /** How hard the model thinks. Absent: as for the message before. */
  readonly effort?: string;
}

/** `POST /platform/messages`: a message for the agent. */
export const OutgoingMessage = Schema.Struct({
  /** Our id. */
  id: Schema.String,
  /** When it was handed over for the first time, ms since the epoch. */
  sent_at: Schema.Finite,
  text: Schema.String,
  /** Files that the daemon must have before the agent gets the message. Absent: none. */
  attachments: Schema.optionalKey(Schema.Array(AttachmentHead)),
  /** `provider/model`. Null means the model of the message before. */
  model: Schema.NullOr(Schema.String),
  /** Null means the agent of the message before. */
  agent: Schema.NullOr(Schema.String),
  /** How hard the model thinks, in the runtime's words; `default`: the model's own. Absent: as for the message before. */
  effort: Schema.optionalKey(Schema.String),
});
export type OutgoingMessage = typeof OutgoingMessage.Type;

const TurnNumber = Schema.Finite;

/** The daemon's answer to a message. */
export const MessageHandedOver = Schema.Union([
  /** The runtime has the message, and this turn is its turn. */
  Schema.Struct({ outcome: Schema.Literal("accepted"), turn: TurnNumber }),
  /** The runtime is at work on this turn and has not got the message. */
  Schema.Struct({ outcome: Schema.Literal("busy"), turn: TurnNumber }),
  /** The runtime will never accept the message. */
  Schema.Struct({ outcome: Schema.Literal("refused"), error: ItemError }),
  /** The daemon has not got these attachments yet. It takes them now, and then the message again. */
  Schema.Struct({ outcome: Schema.Literal("incomplete"), attachments: Schema.Array(Schema.String) }),
]);
export type MessageHandedOver = typeof MessageHandedOver.Type;

/** `POST /platform/interrupt`: ends the turn of that number. Answered with `{interrupted: boolean}`. */
export const InterruptOrder = Schema.Struct({ turn: TurnNumber });
export type InterruptOrder = typeof InterruptOrder.Type;

/** An answer to a request of the agent. */
export const RequestAnswer = Schema.Union([
  /** To a permission. `message` tells the agent why. */
  Schema.Struct({
    choice: Schema.Literals(["once", "always", "reject"]),
    message: Schema.NullOr(Schema.String),
  }),
  /** To a question: for each of its questions the chosen labels or free text. */
  Schema.Struct({ answers: Schema.Array(Schema.Array(Schema.String)) }),
  /** To a plan. `mode`: one of the plan's modes. */
  Schema.Struct({ approve: Schema.Literal(true), mode: Schema.String }),
  /**
   * No person answers: `unattended`, the session has none; `expired`, none answered in time; `message`, to a plan: a person wrote a
   * message instead.
   */
  Schema.Struct({ declined: Schema.Literals(["unattended", "expired", "message"]) }),
]);
export type RequestAnswer = typeof RequestAnswer.Type;

/** `POST /platform/answer`: a request by its native id. Answered with `{answered: boolean}`: false if it is closed. */
export const AnswerOrder = Schema.Struct({ request_id: Schema.String, answer: RequestAnswer });
export type AnswerOrder = typeof AnswerOrder.Type;

/** A model that a runtime offers. An absent field is not known. */
export const OfferedModel = Schema.Struct({
  /** `provider/model`, or the runtime's own name. */
  id: Schema.String,
  name: Schema.String,
  /** How hard it can think, in the runtime's words. Absent: the runtime does not say. */
  efforts: Schema.optionalKey(Schema.Array(Schema.String)),
  writes_text: Schema.optionalKey(Schema.Boolean).annotate({
    description: "False: an agent cannot work with it. Absent: it is not known.",
  }),
  calls_tools: Schema.optionalKey(Schema.Boolean).annotate({
    description: "False: it can talk, and change nothing. Absent: it is not known.",
  }),
  context: Schema.optionalKey(Schema.Finite).annotate({
    description: "How many tokens its context holds. Absent: it is not known.",
  }),
});
export type OfferedModel = typeof OfferedModel.Type;

/** `GET /platform/models`: what the runtime offers to this session. */
export const RuntimeOffers = Schema.Struct({
  models: Schema.Array(OfferedModel),
  agents: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.NullOr(Schema.String) })),
  /** The `provider/model` that is used if a message names none. Null if the runtime does not say. */
  default_model: Schema.NullOr(Schema.String),
  /** The effort that is used if a message names none. Absent: the model's own. */
  default_effort: Schema.optionalKey(Schema.String),
  /** What a message may begin with, as `/name`: the runtime's commands and the project's own. Absent: the runtime names none. */
  commands: Schema.optionalKey(
    Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.NullOr(Schema.String) })),
  ),
});
export type RuntimeOffers = typeof RuntimeOffers.Type;
