/**
 * Translates a runtime's report of a failed turn into a code and a sentence that says what to do. Every adapter uses it, so that the
 * same failure has the same name under each runtime.
 */
import * as Schema from "effect/Schema";
import { NO_MODEL } from "../../src/domain/sandbox/model.ts";
import { spendRefusalIn } from "../../src/domain/sandbox/spend.ts";
import type { TurnError } from "../../src/domain/session/last-turn.ts";
import { ANSWER_CUT_OFF } from "./adapter.ts";

/** The part of an error that is read, in a message or in `session.error`. */
export const RuntimeError = Schema.Struct({
  name: Schema.String,
  data: Schema.optionalKey(
    Schema.Struct({
      message: Schema.optionalKey(Schema.String),
      statusCode: Schema.optionalKey(Schema.Finite),
    }),
  ),
});
export type RuntimeError = typeof RuntimeError.Type;

export const decodeError = Schema.decodeUnknownOption(RuntimeError);

/** The conversation is longer than the model can read. */
export const isOverflow = ({ name }: RuntimeError): boolean => name === "ContextOverflowError";

/** The model stopped in the middle of its answer. opencode reports it as the end of a message, and not as an error. */
export const LENGTH_REACHED: RuntimeError = { name: "MessageOutputLengthError" };

/** A person or the platform ended the turn. */
export const isAbort = ({ name }: RuntimeError): boolean => name === "MessageAbortedError";

/** opencode puts its own class before the sentence, and a stack after it. */
const CLASS = /^Provider[A-Za-z]*Error: /;

/** The provider's own message, in one line. */
export const providerWords = ({ name, data }: RuntimeError): string => {
  const [line = ""] = (data?.message ?? "").split("\n");
  return line.replace(CLASS, "").trim() || name;
};

const ADVICE = {
  no_model: NO_MODEL,
  unknown_model:
    "The model does not exist at its provider. Correct the session's agent_model or the repository's opencode.json.",
  model_unauthorized: "The model's provider rejected the key. Check the key and its permissions.",
  model_quota:
    "The model's provider does not accept more requests now. Check the quota of the key, or try again later.",
  model_unavailable: "The model's provider is not available. Try again later.",
  model_refused: "The model's provider refused the request.",
  context_exceeded: "The conversation is longer than the model can read. Start a new session.",
  turn_failed: "The agent runtime ended the turn with an error.",
} as const;
type Code = keyof typeof ADVICE;

/** Names of opencode's errors, and of claude-agent-acp's. */
const BY_NAME: ReadonlyMap<string, Code> = new Map([
  ["ProviderAuthError", "model_unauthorized"],
  ["ProviderNoProvidersError", "no_model"],
  ["ProviderModelNotFoundError", "unknown_model"],
  ["ContextOverflowError", "context_exceeded"],
  ["authentication_failed", "model_unauthorized"],
  ["billing_error", "model_quota"],
  ["rate_limit", "model_quota"],
  ["overloaded", "model_unavailable"],
  ["server_error", "model_unavailable"],
  ["model_not_found", "unknown_model"],
]);

/** The code of a provider's answer that is no success. */
const byStatus = (status: number): Code => {
  if (status === 401 || status === 403) return "model_unauthorized";
  if (status === 404) return "unknown_model";
  if (status === 402 || status === 429) return "model_quota";
  return status >= 500 ? "model_unavailable" : "model_refused";
};

const TOO_LONG =
  /context.?(length|window|limit)|maximum context|(prompt|input) is too long|too many (input )?tokens/i;

/** Words of providers and runtimes, for errors without a status. The first that fits counts. */
const BY_WORDS: readonly (readonly [RegExp, Code])[] = [
  [/no providers are available|ProviderNoProvidersError/i, "no_model"],
  [/model.{0,80}(not found|does not exist|not exist)|unknown model|model_not_found/i, "unknown_model"],
  [TOO_LONG, "context_exceeded"],
  [/payment required|insufficient.{0,20}(credit|quota|funds|balance)|credit balance|billing/i, "model_quota"],
  [/quota|rate.?limit|too many requests/i, "model_quota"],
  [
    /unauthori[sz]ed|(invalid|incorrect|missing|expired|no).{0,20}(api.?key|credentials)|authenticat/i,
    "model_unauthorized",
  ],
  [/forbidden|permission.?(error|denied)/i, "model_unauthorized"],
  [
    /overloaded|service unavailable|bad gateway|gateway time-?out|internal server error/i,
    "model_unavailable",
  ],
];

const codeByWords = (words: string): Code | null =>
  BY_WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? null;

/** A status that a runtime tells in words only, e.g. `API Error: 402 …` or `unexpected status 429 Too Many Requests`. */
const STATUS_IN_WORDS =
  /\b(?:API Error|status(?: code)?|HTTP(?:\/1\.1)?)[ :=]{1,3}([45]\d\d)\b|^([45]\d\d)[ :]/i;

const statusInWords = (words: string): number | null => {
  const match = STATUS_IN_WORDS.exec(words);
  return match === null ? null : Number(match[1] ?? match[2]);
};

const codeOf = (error: RuntimeError): Code => {
  const known = BY_NAME.get(error.name);
  if (known !== undefined) return known;
  const words = error.data?.message ?? "";
  const status = error.data?.statusCode ?? statusInWords(words);
  // Providers say it with 400 or 413.
  if (status === 400 || status === 413) return TOO_LONG.test(words) ? "context_exceeded" : byStatus(status);
  if (status !== null) return byStatus(status);
  return codeByWords(words) ?? (error.name === "APIError" ? "model_unavailable" : "turn_failed");
};

const sentence = (code: Code, words: string): TurnError => ({
  code,
  message: `${ADVICE[code]} It said: ${words}`,
});

export const turnError = (error: RuntimeError): TurnError => {
  if (error.name === LENGTH_REACHED.name) return ANSWER_CUT_OFF;
  const refusal = spendRefusalIn(error.data?.message ?? "");
  // The service's own words, and no provider's.
  return refusal ?? sentence(codeOf(error), providerWords(error));
};

/** All attempts at a call of the model failed. `words` is its provider's last message. */
export const triedInVain = (words: string): TurnError =>
  sentence(
    /429/.test(words) || codeByWords(words) === "model_quota" ? "model_quota" : "model_unavailable",
    words,
  );

/** The note for people while a call of the model is repeated. */
export const retryNote = ({ attempt, message }: { readonly attempt: number; readonly message: string }) => {
  const times = attempt === 1 ? "once" : `${attempt} times`;
  const words = providerWords({ name: "nothing", data: { message } });
  return `The model's provider failed ${times}, and is asked again. It said: ${words}`;
};

/** The runtime calls the model without end. */
export const tooManyCalls = (calls: number): TurnError => ({
  code: "too_many_model_calls",
  message:
    `The turn was ended after ${calls} calls of the model. A provider that sends no finish_reason makes the runtime ask ` +
    "again without end. Check the provider, or give the agent smaller tasks.",
});

/** The runtime calls the model again and again, and gets nothing from it. */
export const callsInVain = (calls: number): TurnError => ({
  code: "too_many_model_calls",
  message:
    `The turn was ended after ${calls} calls of the model in a row that brought neither new text nor a finished tool. ` +
    "A provider that ends its answer early, or answers with something else, makes the runtime ask again without end. Check the provider.",
});

/** The model's provider keeps a call open. */
export const silentModel = (silentMs: number): TurnError => ({
  code: "model_unavailable",
  message: `${ADVICE.model_unavailable} It sent nothing for ${Math.round(silentMs / 1000)} s.`,
});

/** The runtime works, and does not ask the model. */
export const notAsked = (silentMs: number): TurnError => ({
  code: "no_answer",
  message:
    `The turn was ended because the agent runtime did not call the model for ${Math.round(silentMs / 1000)} s. It may wait for a ` +
    "server of tools. Read the agent runtime's lines in the session's log.",
});

/** The turn ended with its runtime's process. */
export const RUNTIME_ENDED: TurnError = {
  code: "runtime_ended",
  message: "The agent runtime ended or restarted during the turn. Send the message again.",
};

/** A person stopped the turn, and only the end of the runtime's process ended it. */
export const NOT_STOPPED: TurnError = {
  code: "agent_not_stopping",
  message:
    "The agent did not end its turn when it was told to stop, so its process was ended and is started again. The conversation goes on.",
};

/** PLATFORM_MAX_TURN_MS. */
export const tooLong = (turnMs: number): TurnError => ({
  code: "turn_too_long",
  message: `The turn was ended after ${Math.round(turnMs / 60_000)} minutes (PLATFORM_MAX_TURN_MS). Give the agent smaller tasks.`,
});

export const NO_ANSWER: TurnError = {
  code: "no_answer",
  message: "The turn ended before the model was called. Read the agent runtime's lines in the session's log.",
};
