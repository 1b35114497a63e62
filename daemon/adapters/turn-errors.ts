/**
 * Translates a runtime's report of a failed turn into a code and a sentence that says what to do. Every adapter uses it, so that the
 * same failure has the same name under each runtime.
 */
import * as Schema from "effect/Schema";
import { NO_MODEL } from "../../src/domain/sandbox/model.ts";
import { spendRefusalIn } from "../../src/domain/sandbox/spend.ts";
import type { TurnError } from "../../src/domain/session/last-turn.ts";
import { MODEL_ERRORS, type ModelErrorCode } from "../../src/domain/session/model-errors.ts";
import { ANSWER_CUT_OFF } from "./adapter.ts";
import { quantity } from "../../src/domain/counted.ts";

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

/** Ends of a message that are no success, by the names of opencode's library. */
const FINISHES: ReadonlyMap<string, RuntimeError> = new Map([
  ["length", LENGTH_REACHED],
  ["content-filter", { name: "ContentFilterError" }],
  ["error", { name: "UnknownError" }],
]);

/** @param finish how the model ended its message. Absent: it has not, or was interrupted */
export const errorOfFinish = (finish: string | undefined): RuntimeError | undefined =>
  finish === undefined ? undefined : FINISHES.get(finish);

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
  turn_failed: "The agent runtime ended the turn with an error.",
} as const;
type Code = keyof typeof ADVICE | ModelErrorCode;

/** Names of opencode's errors, and of claude-agent-acp's. */
const BY_NAME: ReadonlyMap<string, Code> = new Map([
  ["ProviderAuthError", "model_unauthorized"],
  ["ProviderNoProvidersError", "no_model"],
  ["ProviderModelNotFoundError", "unknown_model"],
  ["ContextOverflowError", "context_exceeded"],
  ["ContentFilterError", "model_refused"],
  ["authentication_failed", "model_unauthorized"],
  ["billing_error", "model_out_of_credit"],
  ["rate_limit", "model_rate_limited"],
  ["overloaded", "model_unavailable"],
  ["server_error", "model_unavailable"],
  ["model_not_found", "unknown_model"],
]);

const TOO_LONG =
  /context.?(length|window|limit)|maximum context|(prompt|input) is too long|too many (input )?tokens/i;
/** It passes by itself. Providers that tell so name their page of bills, too. */
const TOO_OFTEN = /rate.?limit|too many requests|(retry|try again) in \d/i;
const NO_CREDIT =
  /payment required|insufficient.{0,20}(credit|quota|funds|balance)|credit balance|out of credit/i;
const NO_QUOTA = /quota|billing/i;

/** Providers say with 400, 403 and 429, too, that they want money, and with 400 and 413 that a conversation is too long. */
const byStatus = (status: number, words: string): Code => {
  if (status === 402) return "model_out_of_credit";
  if (status === 429 && NO_QUOTA.test(words) && !TOO_OFTEN.test(words)) return "model_out_of_credit";
  if (status === 429) return "model_rate_limited";
  if ((status === 400 || status === 413) && TOO_LONG.test(words)) return "context_exceeded";
  if ((status === 400 || status === 403) && NO_CREDIT.test(words)) return "model_out_of_credit";
  if (status === 401 || status === 403) return "model_unauthorized";
  if (status === 404) return "unknown_model";
  return status >= 500 ? "model_unavailable" : "model_refused";
};

/** Words of providers and runtimes, for errors without a status. The first that fits counts. */
const BY_WORDS: readonly (readonly [RegExp, Code])[] = [
  [/no providers are available|ProviderNoProvidersError/i, "no_model"],
  [/model.{0,80}(not found|does not exist|not exist)|unknown model|model_not_found/i, "unknown_model"],
  [TOO_LONG, "context_exceeded"],
  [TOO_OFTEN, "model_rate_limited"],
  [NO_CREDIT, "model_out_of_credit"],
  [NO_QUOTA, "model_out_of_credit"],
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

const errorCode = (error: RuntimeError): Code => {
  const namedCode = BY_NAME.get(error.name);
  if (namedCode !== undefined) return namedCode;
  const words = error.data?.message ?? "";
  const status = error.data?.statusCode ?? statusInWords(words);
  if (status !== null) return byStatus(status, words);
  return codeByWords(words) ?? (error.name === "APIError" ? "model_unavailable" : "turn_failed");
};

/** @param again when the provider takes requests again (`retryTime`). Null if it did not say */
const sentence = (code: Code, words: string, again: string | null): TurnError => {
  const advice = code === "no_model" || code === "turn_failed" ? ADVICE[code] : MODEL_ERRORS[code].advice;
  const when = code === "model_rate_limited" ? ` Try again ${again ?? "later"}.` : "";
  return { code, message: `${advice}${when} It said: ${words}` };
};

/** @param again when the provider takes requests again, in words (`retryTime`). Null if not known */
export const turnError = (error: RuntimeError, again: string | null = null): TurnError => {
  if (error.name === LENGTH_REACHED.name) return ANSWER_CUT_OFF;
  const refusal = spendRefusalIn(error.data?.message ?? "");
  // The service's own words, and no provider's.
  return refusal ?? sentence(errorCode(error), providerWords(error), again);
};

/**
 * All attempts at a call of the model failed.
 *
 * @param words its provider's last message
 * @param again as in `turnError`
 */
export const triedInVain = (words: string, again: string | null = null): TurnError => {
  const code = codeByWords(words);
  if (code === "model_out_of_credit" || code === "model_rate_limited") return sentence(code, words, again);
  return sentence(/429/.test(words) ? "model_rate_limited" : "model_unavailable", words, again);
};

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
  message: `${MODEL_ERRORS.model_unavailable.advice} It sent nothing for ${Math.round(silentMs / 1000)} s.`,
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
  message: `The turn was ended after ${quantity(Math.round(turnMs / 60_000), "minute")} (PLATFORM_MAX_TURN_MS). Give the agent smaller tasks.`,
});

export const NO_ANSWER: TurnError = {
  code: "no_answer",
  message: "The turn ended before the model was called. Read the agent runtime's lines in the session's log.",
};
