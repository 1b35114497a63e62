/** Which limits apply to a call, and whether it passes. Pure, and shared by both adapters. */
import { SERVICE_AUTHOR } from "../../../domain/conversation/conversation.ts";
import { derivedUuid } from "../../../domain/ids.ts";
import type {
  LimitAmount,
  LimitScope,
  LimitState,
  SpendCount,
  SpendScope,
  SpendSums,
} from "../../../domain/sandbox/spend.ts";
import { limitNears, SPEND_SCOPES, sumIn } from "../../../domain/sandbox/spend.ts";

/** A sum, as a reservation names it. */
export const countKey = ({ scope, subject, period }: SpendCount): string => `${scope}/${subject}/${period}`;

/** A day of an account's month. Nothing limits it. */
export const accountDay = (day: string): SpendCount => ({ scope: "account", subject: "", period: day });

interface Limit extends LimitAmount {
  readonly scope: LimitScope;
  readonly subject: string;
}

/** The limit of a sum. A session's own comes before the one for each session (ports/spend.ts S4). */
const findLimit = <L extends Limit>({ scope, subject }: SpendCount, limits: readonly L[]): L | undefined =>
  limits.find((limit) => limit.scope === scope && limit.subject === subject) ??
  (scope === "session" ? limits.find((limit) => limit.scope === "each_session") : undefined);

/** Each sum that has a limit, in the order of `SPEND_SCOPES`. */
export const limitedCounts = <L extends Limit>(
  counts: readonly SpendCount[],
  limits: readonly L[],
): readonly { readonly count: SpendCount; readonly limit: L }[] =>
  counts
    .flatMap((count) => {
      const limit = findLimit(count, limits);
      return limit === undefined ? [] : [{ count, limit }];
    })
    .toSorted(
      (one, other) => SPEND_SCOPES.indexOf(one.count.scope) - SPEND_SCOPES.indexOf(other.count.scope),
    );

export interface CountSums {
  readonly spent: SpendSums;
  readonly reserved: SpendSums;
  readonly name: string;
}

export const NO_SPEND: SpendSums = { tokens: 0, cost: 0 };

export const addSums = (one: SpendSums, other: SpendSums): SpendSums => ({
  tokens: one.tokens + other.tokens,
  cost: one.cost + other.cost,
});

/** @param sums by `countKey` */
export const limitStates = (
  sumsWithLimit: ReturnType<typeof limitedCounts>,
  sums: ReadonlyMap<string, CountSums>,
): readonly LimitState[] =>
  sumsWithLimit.map(({ count, limit: { unit, amount } }) => {
    const { spent, reserved, name } = sums.get(countKey(count)) ?? {
      spent: NO_SPEND,
      reserved: NO_SPEND,
      name: "",
    };
    const scope: SpendScope = count.scope;
    return { scope, unit, amount, name, spent: sumIn({ unit }, spent), reserved: sumIn({ unit }, reserved) };
  });

export const isReached = ({ spent, reserved, amount }: LimitState): boolean => spent + reserved >= amount;

/** The limit that a call does not pass (ports/spend.ts S1). @param cost null: its model has no price */
export const refusingLimit = (
  states: readonly LimitState[],
  cost: number | null,
): { readonly limit: LimitState; readonly lacksPrice: boolean } | null => {
  const reachedLimit = states.find(isReached);
  if (reachedLimit !== undefined) return { limit: reachedLimit, lacksPrice: false };
  const unpricedLimit = cost === null ? states.find(({ unit }) => unit === "usd") : undefined;
  return unpricedLimit === undefined ? null : { limit: unpricedLimit, lacksPrice: true };
};

interface Near {
  readonly sessionId: string;
  readonly count: SpendCount;
  readonly limit: LimitState;
  readonly now: number;
}

/** The note in a conversation when four fifths of a limit are spent. Both adapters write it with the call that spends them. */
export const nearNote = ({ sessionId, count, limit, now }: Near) => ({
  sessionId,
  id: derivedUuid(sessionId, `spend ${countKey(count)} ${limit.unit} ${limit.amount} ${now}`),
  text: limitNears(limit),
  author: SERVICE_AUTHOR,
  at: now,
});
