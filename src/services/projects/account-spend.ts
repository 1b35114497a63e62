/** What the core and other features ask about limits of spend. The feature `spend` answers. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { SpendingSession, SpendSums } from "../../domain/sandbox/spend.ts";
import type { Stored } from "../../store/ports/journal.ts";

/** A call of a model, before it passes. */
export interface CallEstimate {
  /** Of the reservation. */
  readonly id: string;
  readonly sessionId: string;
  /** For the words of a refusal. */
  readonly model: string;
  readonly tokens: number;
  /** Billionths of a dollar. Null: the model has no known price. */
  readonly cost: number | null;
}

/** A call that ended. */
export interface EndedCall {
  readonly id: string;
  readonly sessionId: string;
  /** Null: it cost nothing. */
  readonly spent: SpendSums | null;
}

/** A session to which limits may apply. It may not exist yet. */
export interface LimitedSession extends SpendingSession {
  readonly accountId: string;
  /** The session whose agent starts it. Null: a person or a trigger does. */
  readonly parentSessionId: string | null;
}

export interface AccountSpendPort {
  /** Reserves the estimate, or says in a sentence why the call may not pass. Null: it passes. */
  readonly reserve: (call: CallEstimate) => Stored<string | null>;
  /** Ends the reservation, and counts what was spent. */
  readonly settle: (call: EndedCall) => Stored<void>;
  /** False: no limit is set in the account, as far as this process knows. It may be some seconds late. */
  readonly mayLimit: (accountId: string) => boolean;
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
    reserve: () => Effect.succeed(null),
    settle: () => Effect.void,
    mayLimit: () => false,
    limitSet: () => undefined,
    standing: () => Effect.succeed({ applies: false, reached: null }),
  }),
});
