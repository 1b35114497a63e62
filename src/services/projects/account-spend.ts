/** What the core and other features ask about limits of spend. The feature `spend` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { CallEstimate, EndedCall, LimitedSession, SpendingCaller } from "../../domain/sandbox/spend.ts";
import type { Stored } from "../../store/ports/journal.ts";

export interface AccountSpendPort {
  /** The sessions for which the calls of a sandbox count. Null if it has ended, or nothing is counted. */
  readonly callerIn: (sandboxId: string) => Stored<SpendingCaller | null>;
  /** Reserves the estimate, or says in a sentence why the call may not pass. Null if it passes. */
  readonly reserve: (call: CallEstimate) => Stored<string | null>;
  /** Ends the reservation, and counts what was spent. Without the reservation, nothing is counted: it may be done again. */
  readonly settle: (call: EndedCall) => Stored<void>;
  /** Keeps the reservations of calls under way. One that is not kept ends by itself, and its call is counted as the estimate. */
  readonly renew: (ids: readonly string[]) => Stored<void>;
  /** False: no limit is set in the account, as far as this process knows. It may be some seconds late. */
  readonly mayLimit: (accountId: string) => boolean;
  /** Whether the account has limits, as late as `mayLimit`. */
  readonly isLimited: (accountId: string) => Stored<boolean>;
  /** A limit was set in the account. */
  readonly limitSet: (accountId: string) => void;
  /** Whether a limit applies to the session, and the sentence of one that is reached. */
  readonly standing: (
    session: LimitedSession,
  ) => Stored<{ readonly applies: boolean; readonly reached: string | null }>;
}

/** Without the feature, nothing is limited. */
export const AccountSpend = Context.Reference<AccountSpendPort>("platform/services/AccountSpend", {
  defaultValue: () => ({
    callerIn: () => Effect.succeed(null),
    reserve: () => Effect.succeed(null),
    settle: () => Effect.void,
    renew: () => Effect.void,
    mayLimit: () => false,
    isLimited: () => Effect.succeed(false),
    limitSet: () => undefined,
    standing: () => Effect.succeed({ applies: false, reached: null }),
  }),
});
