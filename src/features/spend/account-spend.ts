/** What the core and other features ask about limits of spend (services/projects/account-spend.ts). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { limitNeedsPrice, limitReached } from "../../domain/sandbox/spend.ts";
import { BoundedMap } from "../../ground/bounded-map.ts";
import { AccountSpend } from "../../services/projects/account-spend.ts";
import { Spend } from "./ports/spend.ts";
import { isReached } from "./rules/limits.ts";

/** How long an answer about an account without limits is used, ms. Fires of webhooks ask often. A call of a model never asks this. */
const UNLIMITED_MS = 5_000;
/** How many such accounts are kept. */
const ACCOUNTS_MAX = 10_000;

export const accountSpendLayer = Layer.effect(
  AccountSpend,
  Effect.gen(function* () {
    const spend = yield* Spend;
    const clock = yield* Clock.Clock;
    /** Until when an account counts as one without limits. */
    const withoutLimits = new BoundedMap<string, number>(ACCOUNTS_MAX);
    const mayLimit = (accountId: string) =>
      (withoutLimits.get(accountId) ?? 0) <= clock.currentTimeMillisUnsafe();
    const hasLimits = Effect.fnUntraced(function* (accountId: string) {
      const has = yield* spend.hasLimits(accountId);
      if (!has) withoutLimits.set(accountId, clock.currentTimeMillisUnsafe() + UNLIMITED_MS);
      return has;
    });
    return {
      callerIn: spend.callerIn,
      reserve: (call) =>
        spend
          .reserve({ ...call, now: clock.currentTimeMillisUnsafe() })
          .pipe(
            Effect.map((refusal) =>
              refusal === null
                ? null
                : refusal.lacksPrice
                  ? limitNeedsPrice(call.model, refusal.limit)
                  : limitReached(refusal.limit),
            ),
          ),
      settle: (call) => spend.settle({ ...call, now: clock.currentTimeMillisUnsafe() }),
      renew: (ids) => spend.renew(ids, clock.currentTimeMillisUnsafe()),
      mayLimit,
      isLimited: (accountId) => (mayLimit(accountId) ? hasLimits(accountId) : Effect.succeed(false)),
      limitSet: (accountId) => void withoutLimits.delete(accountId),
      standing: Effect.fnUntraced(function* (session) {
        if (!(yield* hasLimits(session.accountId))) return { applies: false, reached: null };
        const limits = yield* spend.ofSession(session, clock.currentTimeMillisUnsafe());
        const reachedLimit = limits.find((limit) => isReached({ ...limit, reserved: 0 }));
        return {
          applies: limits.length > 0,
          reached: reachedLimit === undefined ? null : limitReached(reachedLimit),
        };
      }),
    };
  }),
);
