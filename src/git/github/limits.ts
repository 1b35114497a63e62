/**
 * A code host's rate limits for each credential. Calls over a limit are not made.
 *
 *  L1 The host's own answer decides: no call before the instant that it named, measured by its own clock.
 *  L2 One write at a time, and few concurrent calls: the host treats more as abuse.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import { BoundedMap } from "../../ground/bounded-map.ts";

const AT_ONCE = 8;
/** The wait if the host names neither a duration nor an instant. */
const UNTOLD_MS = 60_000;
/** The host's window is an hour, so a longer wait is an error or a lie. */
const LONGEST_MS = 2 * 60 * 60_000;
/** How many credentials are remembered. The least recently used one is dropped. */
const CREDENTIALS_KEPT = 10_000;

export type Headers = Readonly<Record<string, string>>;

/** The wait in milliseconds that the host asks for. Null if the answer names no limit. */
export const wantedWait = (headers: Headers, now: number): number | null => {
  const after = Number(headers["retry-after"]);
  if (headers["retry-after"] !== undefined && Number.isFinite(after)) return boundWait(after * 1000);
  const reset = Number(headers["x-ratelimit-reset"]);
  if (headers["x-ratelimit-remaining"] !== "0" || !Number.isFinite(reset)) return null;
  const theirNow = Date.parse(headers["date"] ?? "");
  return boundWait(reset * 1000 - (Number.isFinite(theirNow) ? theirNow : now));
};

const boundWait = (ms: number): number => Math.min(Math.max(ms, 0), LONGEST_MS);

/** Whether a 403 or 429 is about a rate limit, as opposed to a permission. */
export const isLimited = (status: number, headers: Headers, message: string): boolean =>
  status === 429 ||
  (status === 403 &&
    (headers["retry-after"] !== undefined ||
      headers["x-ratelimit-remaining"] === "0" ||
      /rate limit|abuse detection/i.test(message)));

interface Budget {
  readonly calls: Semaphore.Semaphore;
  readonly writes: Semaphore.Semaphore;
  /** ms since the epoch. */
  closedUntil: number;
}

export interface Limits {
  /** When this credential may be used again. Null if it may be used now. */
  readonly closedUntil: (key: string) => Effect.Effect<number | null>;
  /** Runs a call in its turn. */
  readonly inTurn: <A, E>(key: string, isWrite: boolean, call: Effect.Effect<A, E>) => Effect.Effect<A, E>;
  /** Records the limits in an answer's headers. @returns ms to wait. */
  readonly heard: (key: string, headers: Headers, isRefusal: boolean) => Effect.Effect<number>;
}

export const makeLimits = (): Limits => {
  const budgets = new BoundedMap<string, Budget>(CREDENTIALS_KEPT);
  const budgetFor = (key: string): Budget => {
    const budget = budgets.get(key) ?? {
      calls: Semaphore.makeUnsafe(AT_ONCE),
      writes: Semaphore.makeUnsafe(1),
      closedUntil: 0,
    };
    budgets.set(key, budget);
    return budget;
  };
  return {
    closedUntil: (key) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const { closedUntil } = budgetFor(key);
        return closedUntil > now ? closedUntil : null;
      }),
    inTurn: (key, isWrite, call) =>
      Effect.suspend(() => {
        const { calls, writes } = budgetFor(key);
        const one = calls.withPermit(call);
        return isWrite ? writes.withPermit(one) : one;
      }),
    heard: (key, headers, isRefusal) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const announcedWait = wantedWait(headers, now);
        const wait = announcedWait ?? (isRefusal ? UNTOLD_MS : 0);
        const budget = budgetFor(key);
        budget.closedUntil = Math.max(budget.closedUntil, wait === 0 ? 0 : now + wait);
        return wait;
      }),
  };
};
