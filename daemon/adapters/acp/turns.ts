/**
 * How a turn over the Agent Client Protocol ends, and when it is stopped because its model fails (TurnLimits).
 *
 * The protocol reports neither calls of a model nor attempts. So a call is counted when a new message of the agent
 * begins, or when the agent goes on after a tool. An agent that reports nothing for long counts as failing, unless a
 * tool runs or a person is asked.
 */
import type { TurnEnd } from "../../report.ts";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import * as Schema from "effect/Schema";
import type { Usage } from "../../../src/domain/conversation/conversation.ts";
import type { TurnError } from "../../../src/domain/session/last-turn.ts";
import { NO_USAGE } from "../../../src/domain/conversation/conversation.ts";
import type { GatewayRefusal } from "../../agent/gateway-calls.ts";
import { type Tokens, usageIn } from "../../../src/domain/sandbox/model-tokens.ts";
import { ANSWER_CUT_OFF } from "../adapter.ts";
import { turnError } from "../turn-errors.ts";
import { quantity } from "../../../src/domain/counted.ts";

/** Counts the calls of the model in one turn. */
export class ModelCalls {
  readonly #messages = new Set<string>();
  #afterTool = false;
  #count = 0;

  /** @returns how many there were so far */
  take(update: SessionUpdate): number {
    const { sessionUpdate: kind } = update;
    if (kind === "tool_call_update" && (update.status === "completed" || update.status === "failed"))
      this.#afterTool = true;
    else if (kind === "agent_message_chunk" && update.messageId) {
      if (!this.#messages.has(update.messageId)) this.#next();
      this.#messages.add(update.messageId);
    } else if ((kind === "agent_message_chunk" || kind === "tool_call") && this.#afterTool) this.#next();
    return this.#count;
  }

  #next(): void {
    this.#count += 1;
    this.#afterTool = false;
  }
}

const optional = Schema.optionalKey;
const Tokens = optional(Schema.NullOr(Schema.Finite));
const Answer = Schema.Struct({
  stopReason: Schema.String,
  usage: optional(
    Schema.NullOr(
      Schema.Struct({
        inputTokens: Schema.Finite,
        outputTokens: Schema.Finite,
        thoughtTokens: Tokens,
        cachedReadTokens: Tokens,
        cachedWriteTokens: Tokens,
      }),
    ),
  ),
  /** gemini's. */
  _meta: optional(
    Schema.NullOr(
      Schema.Struct({
        quota: optional(
          Schema.Struct({
            // Others have fields of other names there.
            token_count: Schema.Struct({
              input_tokens: optional(Schema.Finite),
              output_tokens: optional(Schema.Finite),
            }),
          }),
        ),
      }),
    ),
  ),
});
const decodeAnswer = Schema.decodeUnknownOption(Answer);

const COMPLETED: TurnEnd = { state: "completed", error: null };
export const INTERRUPTED: TurnEnd = { state: "interrupted", error: null };

const failedEnd = (code: string, message: string): TurnEnd => ({ state: "failed", error: { code, message } });

const ENDS: Readonly<Record<string, TurnEnd>> = {
  end_turn: COMPLETED,
  cancelled: INTERRUPTED,
  max_tokens: { state: "failed", error: ANSWER_CUT_OFF },
  max_turn_requests: failedEnd(
    "too_many_model_calls",
    "The agent ended the turn because it called its model too often. Give it smaller tasks.",
  ),
  refusal: failedEnd("model_refused", "The agent refused to go on with the conversation."),
};

const decodeReason = Schema.decodeUnknownOption(Schema.Struct({ stopReason: Schema.String }));

/** The end that the agent's answer to a prompt tells. An answer in another form is no success. */
const turnEnd = (answer: unknown): TurnEnd => {
  const stop = decodeReason(answer);
  const reason = stop._tag === "Some" ? stop.value.stopReason : null;
  if (reason !== null && Object.hasOwn(ENDS, reason)) return ENDS[reason] ?? COMPLETED;
  const reasonText =
    reason === null ? "no reason" : `the unknown reason ${JSON.stringify(reason.slice(0, 100))}`;
  return failedEnd(
    "turn_failed",
    `The agent ended the turn with ${reasonText}. What it wrote may be incomplete.`,
  );
};

/**
 * The end of a turn that the agent calls complete. Some agents tell the provider's refusal as a text of theirs, and name no usage if no
 * call of the turn was answered.
 *
 * @param refusal the provider's last answer, if it was seen and no success
 * @param words the agent's last text
 */
export const endOfAnswer = (answer: unknown, refusal: GatewayRefusal | null, words: string): TurnEnd => {
  const end = turnEnd(answer);
  const answerUsage = decodeAnswer(answer);
  const isUntold = answerUsage._tag === "None" || (answerUsage.value.usage ?? null) === null;
  const isTold = refusal !== null && refusal.words !== "" && words.includes(refusal.words);
  return end.state === "completed" && refusal !== null && (isUntold || isTold)
    ? { state: "failed", error: refusedBy(refusal) }
    : end;
};

/** The protocol's own error for an agent without credentials. */
const AUTH_REQUIRED = -32_000;

/** JSON-RPC's name of an error, which says nothing more. */
const PREFIX = /^Internal error: /;

/**
 * The end of a turn whose prompt the agent answered with an error.
 *
 * @param refusal the provider's last answer, if it was seen and no success
 */
export const endOfRefusal = (
  { code, message, name }: { readonly code: number; readonly message: string; readonly name: string | null },
  refusal: Pick<GatewayRefusal, "status" | "again"> | null,
): TurnEnd => {
  const words = message.replace(PREFIX, "");
  // gemini's code is the status, and 500 where it does not know that. Then the words say more.
  const status = refusal?.status ?? (code >= 400 && code <= 499 ? code : null);
  const error = { message: words, ...(status !== null && { statusCode: status }) };
  const fallbackName = code >= 500 && code <= 599 ? "APIError" : "AgentError";
  const ownName = name ?? (code === AUTH_REQUIRED ? "ProviderAuthError" : fallbackName);
  return { state: "failed", error: turnError({ name: ownName, data: error }, refusal?.again) };
};

/** The end of a turn whose calls the model's gateway refuses. */
export const refusedBy = ({ status, words, again }: GatewayRefusal): TurnError =>
  turnError({ name: "APIError", data: { message: words || `HTTP ${status}`, statusCode: status } }, again);

/** A rejected key and a lack of credit stay as they are. One refusal may be that of a lesser call, e.g. for a title. */
const FINAL: ReadonlySet<string> = new Set([
  "model_unauthorized",
  "model_out_of_credit",
  "spend_limit",
  "model_without_price",
]);

/** Whether another try cannot help, although the agent may go on with that for minutes. */
export const isFinal = (refusal: GatewayRefusal): boolean =>
  refusal.times > 1 && FINAL.has(refusedBy(refusal).code);

/**
 * The turn's usage, as the agent tells it. Null if it is unknown. Some agents do not tell that of a stopped turn.
 *
 * @param costUsd by how much the session's cost has grown
 * @param passed the tokens of the turn's calls, as far as they were seen
 */
export const turnUsage = (
  answer: unknown,
  { costUsd, passed }: { readonly costUsd: number; readonly passed: Tokens | null },
): Usage | null => {
  const answerFields = decodeAnswer(answer);
  const reportedUsage = answerFields._tag === "Some" ? (answerFields.value.usage ?? null) : null;
  const { _meta: beyond = null } = answerFields._tag === "Some" ? answerFields.value : {};
  const quota = beyond?.quota?.token_count;
  const cachedTokens = reportedUsage?.cachedReadTokens ?? 0;
  const usage: Usage = {
    ...NO_USAGE,
    ...quota,
    ...(passed !== null && usageIn(passed)),
    ...(reportedUsage !== null && {
      input_tokens: reportedUsage.inputTokens + cachedTokens + (reportedUsage.cachedWriteTokens ?? 0),
      output_tokens: reportedUsage.outputTokens + (reportedUsage.thoughtTokens ?? 0),
      cached_tokens: cachedTokens,
    }),
    cost_usd: costUsd,
  };
  return Object.values(usage).every((value) => value === 0) ? null : usage;
};

/** The agent tells nothing any more. */
export const toldNothing = (ms: number): TurnError => ({
  code: "model_unavailable",
  message:
    `The turn was ended because the agent runtime reported nothing for ${quantity(Math.round(ms / 1000), "second")}. ` +
    "Its model may not answer. Try again later.",
});

/** The session's cost so far, US dollars. Null if not told, or in another currency. */
export const costIn = ({
  cost,
}: {
  readonly cost?: { amount: number; currency: string } | null;
}): number | null => (cost?.currency === "USD" ? cost.amount : null);
