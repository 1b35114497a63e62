/** How a session's last turn ended, as the daemon reports it and the session shows it. */
import * as Schema from "effect/Schema";
import { cutText, storableText } from "../text.ts";

/**
 * `code` is stable and for programs. `message` says what went wrong, what to do, and what the model's provider
 * answered.
 */
export const TurnError = Schema.Struct({ code: Schema.String, message: Schema.String });
export type TurnError = typeof TurnError.Type;

export const LastTurn = Schema.Struct({
  /** `interrupted`: a user ended the turn, or the agent runtime itself ended. */
  state: Schema.Literals(["completed", "failed", "interrupted"]),
  error: Schema.NullOr(TurnError),
  /** When it ended. */
  at: Schema.String,
});
export type LastTurn = typeof LastTurn.Type;

/** A turn as the conversation counts it: also one that the runtime never began. */
export const ConversationTurn = Schema.Struct({
  number: Schema.Finite,
  /** The message or prompt that began it. Null if the runtime began it on its own. */
  message_id: Schema.NullOr(Schema.String),
});
export type ConversationTurn = typeof ConversationTurn.Type;

/**
 * The daemon's report. Each sandbox numbers its turns from 1. `conversation`: the same turn as the conversation counts it;
 * null for a runtime without one, absent from daemons of former versions.
 */
export const NumberedTurn = Schema.Struct({
  number: Schema.Finite,
  ...LastTurn.fields,
  conversation: Schema.optionalKey(Schema.NullOr(ConversationTurn)),
});
export type NumberedTurn = typeof NumberedTurn.Type;

/** The longest message, in UTF-16 code units. */
export const TURN_MESSAGE_MAX = 1000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CODE = /^[a-z_]{1,40}$/;

/** The turn in a form that a row can store, since its text comes from the sandbox. Null if its instant is invalid. */
export const storableTurn = ({ state, error, at }: LastTurn): LastTurn | null => {
  const instant = Date.parse(at);
  if (Number.isNaN(instant)) return null;
  return {
    state,
    error: error === null ? null : storableError(error),
    at: new Date(instant).toISOString(),
  };
};

const storableError = ({ code, message }: TurnError): TurnError => ({
  code: CODE.test(code) ? code : "turn_failed",
  message: cutText(storableText(message), TURN_MESSAGE_MAX),
});

/** The conversation's turn in a form that a row can store. Null without a turn, or if its number is invalid. */
export const storableConversationTurn = (
  turn: ConversationTurn | null | undefined,
): ConversationTurn | null => {
  if (turn == null || !Number.isSafeInteger(turn.number) || turn.number < 0) return null;
  const { number, message_id: id } = turn;
  return { number, message_id: id !== null && UUID.test(id) ? id : null };
};
