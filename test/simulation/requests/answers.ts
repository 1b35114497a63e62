/** What callers learn from the answers of endpoints and of the webhook receiver. */
import { STOP_REASONS, type StopReason } from "../../../src/domain/session/session.ts";
import { Internal, Unavailable } from "../../../src/http/api/errors.ts";
import type { Answer } from "../../../src/http/webhooks/webhook-answers.ts";
import type { Attempt } from "../ledger.ts";

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

/** What an endpoint's answer says of the session that it made. */
export const sessionIdOf = (value: unknown): string | null => {
  const fields = fieldsOf(value);
  const id = fields["session_id"] ?? fields["id"];
  return typeof id === "string" ? id : null;
};

/** Why the session was stopped that a stop found. Null: it ran, or the answer is about something else. */
export const stopReasonOf = (value: unknown): StopReason | null => {
  const reason = fieldsOf(value)["stopReason"];
  return STOP_REASONS.find((known) => known === reason) ?? null;
};

/** What a webhook's sender learns from an answer. */
export const answerOf = (answer: Answer): Pick<Attempt, "answer" | "sessionId"> => {
  if ("body" in answer) {
    const sessionId = sessionIdOf(answer.body);
    const { status } = answer.body as { readonly status?: string };
    if (status === "pong") return { answer: "pong", sessionId };
    if (status === "skipped") return { answer: "filtered", sessionId };
    return { answer: sessionId === null ? "queued" : "fired", sessionId };
  }
  const cannotSay = answer.error instanceof Unavailable || answer.error instanceof Internal;
  return { answer: cannotSay ? "unavailable" : "refused", sessionId: null };
};
