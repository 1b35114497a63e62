/**
 * What a code host lets a credential do in a time, kept per credential: calls that would be over it are not made.
 *
 *  L1 what the host says counts: no call before the instant that it named, measured by its own clock.
 *  L2 one write at a time, and few calls at once: the host takes more for abuse.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";

const AT_ONCE = 8;
/** Where the host says neither how long nor until when. */
const UNTOLD_MS = 60_000;
/** A host that names a later instant than its hourly window has one is wrong, or lies. */
const LONGEST_MS = 2 * 60 * 60_000;
/** Credentials that are remembered; the one that was asked about longest ago goes. */
const CREDENTIALS_KEPT = 10_000;

export type Headers = Readonly<Record<string, string>>;

/** Milliseconds until the host wants to be asked again; null where the answer tells of no limit. */
export const waitOf = (headers: Headers, now: number): number | null => {
  const after = Number(headers["retry-after"]);
  if (headers["retry-after"] !== undefined && Number.isFinite(after)) return bounded(after * 1000);
  const reset = Number(headers["x-ratelimit-reset"]);
  if (headers["x-ratelimit-remaining"] !== "0" || !Number.isFinite(reset)) return null;
  const theirNow = Date.parse(headers["date"] ?? "");
  return bounded(reset * 1000 - (Number.isFinite(theirNow) ? theirNow : now));
};

const bounded = (ms: number): number => Math.min(Math.max(ms, 0), LONGEST_MS);

/** Whether a 403 or 429 is about a limit, and not about what may be done. */
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
  /** Until when nothing may be asked with this credential; null where something may. */
  readonly closedUntil: (key: string) => Effect.Effect<number | null>;
  /** Runs a call in its turn. */
  readonly inTurn: <A, E>(key: string, isWrite: boolean, call: Effect.Effect<A, E>) => Effect.Effect<A, E>;
  /** Takes notice of an answer's headers. @returns ms to wait. */
  readonly heard: (key: string, headers: Headers, isRefusal: boolean) => Effect.Effect<number>;
}

export const makeLimits = (): Limits => {
  const budgets = new Map<string, Budget>();
  const of = (key: string): Budget => {
    const known = budgets.get(key) ?? {
      calls: Semaphore.makeUnsafe(AT_ONCE),
      writes: Semaphore.makeUnsafe(1),
      closedUntil: 0,
    };
    budgets.delete(key);
    budgets.set(key, known);
    const [oldest] = budgets.keys();
    if (budgets.size > CREDENTIALS_KEPT && oldest !== undefined) budgets.delete(oldest);
    return known;
  };
  return {
    closedUntil: (key) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const { closedUntil } = of(key);
        return closedUntil > now ? closedUntil : null;
      }),
    inTurn: (key, isWrite, call) =>
      Effect.suspend(() => {
        const { calls, writes } = of(key);
        const one = calls.withPermit(call);
        return isWrite ? writes.withPermit(one) : one;
      }),
    heard: (key, headers, isRefusal) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const told = waitOf(headers, now);
        const wait = told ?? (isRefusal ? UNTOLD_MS : 0);
        const budget = of(key);
        budget.closedUntil = Math.max(budget.closedUntil, wait === 0 ? 0 : now + wait);
        return wait;
      }),
  };
};
