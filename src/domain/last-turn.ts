/** How a session's last turn ended: what the daemon reports, and what the session says of it. */
import * as Schema from "effect/Schema";
import { cutText, storableText } from "./text.ts";

/** `code` is stable and for programs; `message` says what went wrong, what to do, and what the model's provider said. */
export const TurnError = Schema.Struct({ code: Schema.String, message: Schema.String });
export type TurnError = typeof TurnError.Type;

export const LastTurn = Schema.Struct({
  /** `interrupted`: somebody ended it, or the agent runtime itself ended. */
  state: Schema.Literals(["completed", "failed", "interrupted"]),
  error: Schema.NullOr(TurnError),
  /** When it ended. */
  at: Schema.String,
});
export type LastTurn = typeof LastTurn.Type;

/** The daemon's words: turns are numbered from 1 in each sandbox. */
export const NumberedTurn = Schema.Struct({ number: Schema.Finite, ...LastTurn.fields });
export type NumberedTurn = typeof NumberedTurn.Type;

/** The longest message, in UTF-16 code units. */
export const TURN_MESSAGE_MAX = 1000;
const CODE = /^[a-z_]{1,40}$/;

/** As a row can hold it, since its words are the sandbox's; null where its instant is none. */
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
