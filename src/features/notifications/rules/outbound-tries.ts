/** When a delivery is sent again, and when a receiver that fails is given up (api.md 12). */
import { cutText, storableText } from "../../../domain/text.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The pause before each try, ms. So a delivery has eight tries within about 28 hours. */
const PAUSES_MS = [0, 5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const;
/** A pause is up to a tenth shorter or longer, so that the tries of an outage do not come back together. */
const JITTER = 0.1;
/** A receiver may ask for a longer pause, but for no longer one than this, ms. */
export const RETRY_AFTER_MAX_MS = 10 * HOUR;

/** From the request to the answer, ms. */
export const TRY_TIMEOUT_MS = 15 * SECOND;
/** How much of the answer's body is kept, bytes. */
export const ANSWER_KEPT = 1024;
/** How long a receiver fails before it is shown with a warning. */
export const WARN_AFTER_MS = DAY;
/** How long a receiver fails before it is disabled, if people were warned for a day. */
export const DISABLE_AFTER_MS = 5 * DAY;
const WARNED_FOR_MS = DAY;
/** How long both secrets sign after a rotation, ms. */
export const PREVIOUS_SECRET_MS = DAY;

/** What became of one request. */
export interface TryOutcome {
  /** The answer's. Null without an answer. */
  readonly status: number | null;
  /** Why there was no answer, or why the answer is none, as a sentence. */
  readonly error: string | null;
  /** The first kilobyte of the answer's body. */
  readonly answer: string;
  readonly tookMs: number;
  /** Milliseconds from now, if the receiver said so. */
  readonly retryAfterMs: number | null;
  /** No later try can succeed. `cancelled`: no request was made, so the receiver's health stays as it is. */
  readonly ends?: "failed" | "cancelled";
}

export const isAccepted = ({ status }: TryOutcome): boolean =>
  status !== null && status >= 200 && status < 300;

/** The receiver wants nothing more. */
const GONE = 410;

export type Verdict =
  | { readonly is: "delivered" }
  | { readonly is: "again"; readonly dueAt: number }
  | { readonly is: "failed"; readonly isGone: boolean }
  /** It may not be sent any more. The receiver's health stays as it is. */
  | { readonly is: "cancelled" };

/**
 * What follows from a try.
 *
 * @param tries how many there were, with this one.
 * @param jitter from 0 to 1.
 */
export const tryVerdict = (
  outcome: TryOutcome,
  { tries, now, jitter }: { readonly tries: number; readonly now: number; readonly jitter: number },
): Verdict => {
  if (isAccepted(outcome)) return { is: "delivered" };
  if (outcome.ends === "cancelled") return { is: "cancelled" };
  const pause = PAUSES_MS[tries];
  if (outcome.status === GONE || outcome.ends === "failed" || pause === undefined)
    return { is: "failed", isGone: outcome.status === GONE };
  const retryAfter = Math.min(outcome.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
  return {
    is: "again",
    dueAt: now + Math.max(Math.round(pause * (1 - JITTER + 2 * JITTER * jitter)), retryAfter),
  };
};

/** The value of a `Retry-After` header in ms from now: seconds, or an HTTP date. Null if it is neither. */
export const retryAfterMs = (value: string | undefined, now: number): number | null => {
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * SECOND;
  const at = /^[A-Z][a-z]{2}, /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(at - now, 0);
};

/** An answer's first bytes as text that can be stored. */
export const keptAnswer = (bytes: Uint8Array): string =>
  cutText(storableText(Buffer.from(bytes.subarray(0, ANSWER_KEPT)).toString("utf8")), ANSWER_KEPT);

export const DISABLED_REASONS = ["requested", "gone", "failing", "backlog"] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Since when every request to a receiver failed, and since when people are warned. Null if it does not fail. */
export interface Health {
  readonly failingSince: number | null;
  readonly warnedAt: number | null;
}

/** A receiver's health after one more try. `disable`: it must be disabled for this reason. */
export const healthAfter = (
  { failingSince, warnedAt }: Health,
  verdict: Verdict,
  now: number,
): Health & { readonly disable: DisabledReason | null } => {
  if (verdict.is === "cancelled") return { failingSince, warnedAt, disable: null };
  if (verdict.is === "delivered") return { failingSince: null, warnedAt: null, disable: null };
  const since = failingSince ?? now;
  const warning = warnedAt ?? (now - since >= WARN_AFTER_MS ? now : null);
  const isOver = now - since >= DISABLE_AFTER_MS && warning !== null && now - warning >= WARNED_FOR_MS;
  const isGone = verdict.is === "failed" && verdict.isGone;
  return { failingSince: since, warnedAt: warning, disable: isGone ? "gone" : isOver ? "failing" : null };
};
