/**
 * How the provider of a model refuses calls: the codes of failed turns, with all words for people. The daemon ends turns with them, a
 * fallback says why it takes over, and the page says who failed. The page loads this file, so it imports nothing.
 */

interface ModelWords {
  /** Why the turn goes on with another agent. Null if it does not. */
  readonly reason: string | null;
  /** What the provider did, after its name. */
  readonly did: string;
  /** Whether another key may help. */
  readonly isAboutKey: boolean;
}

interface ModelError extends ModelWords {
  /** The beginning of the turn's error: what happened, and what to do. */
  readonly advice: string;
}

/** The subject of a limit of one session. A reached one is told by these words alone, in the error of a turn. */
export const THIS_SESSION = "this session";

/** Whether the limit of spend that an error names is the session's own, and not the account's. */
export const isSessionLimit = (message: string): boolean =>
  message.includes(` for ${THIS_SESSION} is reached`);

export const MODEL_ERRORS = {
  unknown_model: {
    advice:
      "The model does not exist at its provider. Correct the session's agent_model or the repository's opencode.json.",
    reason: "the model does not exist",
    did: "does not have the model",
    isAboutKey: false,
  },
  model_unauthorized: {
    advice: "The model's provider rejected the key. Check the key and its permissions.",
    reason: "the key was rejected",
    did: "refused the key",
    isAboutKey: true,
  },
  model_out_of_credit: {
    advice:
      "The model's provider wants money: the credit or the quota of the key is used up. Pay there, or use another key.",
    reason: "out of credit",
    did: "wants money: the credit or the quota of the key is used up",
    isAboutKey: true,
  },
  model_rate_limited: {
    advice: "The model's provider gets too many requests, and takes no more of them for now.",
    reason: "too many requests",
    did: "takes no more requests for now",
    isAboutKey: false,
  },
  model_unavailable: {
    advice: "The model's provider is not available. Try again later.",
    reason: "not available",
    did: "did not respond",
    isAboutKey: false,
  },
  model_refused: {
    advice: "The model's provider refused the request.",
    reason: "the request was refused",
    did: "refused the request",
    isAboutKey: false,
  },
  context_exceeded: {
    advice: "The conversation is longer than the model can read. Start a new session.",
    reason: null,
    did: "cannot read a conversation of this length",
    isAboutKey: false,
  },
} as const satisfies Readonly<Record<string, ModelError>>;

export type ModelErrorCode = keyof typeof MODEL_ERRORS;

/** Of older conversations, when one code meant both `model_out_of_credit` and `model_rate_limited`. */
const FORMER: Readonly<Record<string, ModelWords>> = {
  model_quota: {
    reason: "out of credit, or too many requests",
    did: "accepted no more requests: the key's quota was used up, or there were too many",
    isAboutKey: true,
  },
};

const ALL: Readonly<Record<string, ModelWords>> = { ...FORMER, ...MODEL_ERRORS };

/** The words of a failed turn's code. Null if its cause is not the provider of its model. */
export const modelErrorWords = (code: string): ModelWords | null =>
  Object.hasOwn(ALL, code) ? (ALL[code] ?? null) : null;

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Shorter waits are told in seconds. */
const IN_SECONDS_MS = 2 * MINUTE_MS;
/** A longer wait is a mistake, as if the provider's clock were wrong. */
const WAIT_MAX_MS = 31 * DAY_MS;

/**
 * When to try again, in words.
 *
 * @param header the provider's `Retry-After`: seconds, or a date as HTTP writes it
 * @param nowMs when it came, ms since the epoch
 * @returns `in 20 s`, `after 14:05 UTC` or `after 2026-12-01 14:05 UTC`. Null if it says nothing useful
 */
export const retryTime = (header: string, nowMs: number): string | null => {
  const text = header.trim();
  const waitMs = /^\d{1,9}(\.\d{1,9})?$/.test(text)
    ? Number(text) * SECOND_MS
    : text.endsWith(" GMT")
      ? Date.parse(text) - nowMs
      : Number.NaN;
  if (!(waitMs > 0 && waitMs <= WAIT_MAX_MS)) return null;
  if (waitMs <= IN_SECONDS_MS) return `in ${Math.ceil(waitMs / SECOND_MS)} s`;
  const instant = new Date(Math.ceil((nowMs + waitMs) / MINUTE_MS) * MINUTE_MS).toISOString();
  // A time of day alone would be that of today.
  const day = waitMs < DAY_MS - MINUTE_MS ? "" : `${instant.slice(0, 10)} `;
  return `after ${day}${instant.slice(11, 16)} UTC`;
};
