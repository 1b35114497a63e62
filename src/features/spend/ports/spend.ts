/**
 * Limits of spend, what was spent, and what is reserved for calls under way. Adapters keep these invariants, even if several nodes call
 * at the same time:
 *
 *  S1 A call passes if, for each limit that applies, what is spent and what is reserved is less than the limit. So a limit is passed by at
 *     most the calls under way. A call that begins while its account has no limit passes, and is under way for limits that are set later.
 *  S2 Every call has a reservation. It is counted and its reservation ends in one transaction, and without a reservation nothing is
 *     counted. So a call is counted once, however often it is settled.
 *  S3 The session's conversation has one note for a limit's amount and period, in the transaction that spends four fifths of it.
 *  S4 A session's own limit comes before the one for each session.
 *  S5 A reservation that its node does not renew for `RESERVED_MS` lapses: its call is counted as the estimate, and marked as estimated.
 */
import * as Context from "effect/Context";
import type {
  CallEstimate,
  EndedCall,
  LimitAmount,
  LimitedSession,
  LimitScope,
  LimitState,
  SpendingCaller,
  SpendingSession,
  SpendScope,
  SpendSums,
} from "../../../domain/sandbox/spend.ts";
import type { Stored } from "../../../store/ports/journal.ts";

/** How long a reservation lasts if it is not renewed, ms (S5). */
export const RESERVED_MS = 600_000;
/** How many reservations lapse in one transaction. */
export const LAPSES_MAX = 100;
/** How many limits an account may have. */
export const LIMITS_MAX = 2_000;

export interface SpendLimit extends LimitAmount {
  readonly id: string;
  readonly scope: LimitScope;
  /** As in `SpendCount`. Empty for each session. */
  readonly subject: string;
  readonly projectId: string | null;
}

/** A limit as lists show it. */
export interface ShownLimit extends SpendLimit {
  /** Of the session, the trigger, the person or the project. Empty for the others. */
  readonly name: string;
  /** In the present period. Null for each session. */
  readonly spent: SpendSums | null;
}

/** The sums of one subject in a period. */
export interface SpentFor extends SpendSums {
  readonly scope: SpendScope;
  readonly subject: string;
  readonly name: string;
  readonly period: string;
}

export interface LimitWish extends LimitAmount {
  /** Used if the limit is new. */
  readonly id: string;
  readonly accountId: string;
  readonly scope: LimitScope;
  readonly subject: string;
  readonly projectId: string | null;
  readonly now: number;
}

/** A session that has a sandbox, with what decides whether its calls of models are counted. */
export interface RunningSpender extends LimitedSession {
  readonly name: string | null;
  readonly origin: "session" | "trigger";
  readonly agentName: string;
  readonly agentModel: string | null;
  readonly baseCommit: string | null;
  /** The sessions whose agents started it, the nearest first. */
  readonly above: readonly SpendingSession[];
  /** The names of the project's secrets that its sandbox got last. */
  readonly secretNames: readonly string[];
}

export type LimitPlace = Pick<LimitWish, "accountId" | "scope" | "subject">;

export class Spend extends Context.Service<
  Spend,
  {
    /** Replaces the limit of the same scope and subject. Null if the account has `LIMITS_MAX` limits already. */
    readonly set: (wish: LimitWish) => Stored<SpendLimit | null>;
    /** Whether there was one. */
    readonly remove: (place: LimitPlace) => Stored<boolean>;
    /** All of an account, by scope and name. Those of sessions that were deleted are left out. */
    readonly list: (accountId: string, now: number) => Stored<readonly ShownLimit[]>;
    readonly hasLimits: (accountId: string) => Stored<boolean>;
    /** Null if the sandbox has ended. */
    readonly callerIn: (sandboxId: string) => Stored<SpendingCaller | null>;
    /** Whether the person belongs to the account. */
    readonly hasPerson: (accountId: string, userId: string) => Stored<boolean>;
    /** The limits that apply to a session, which may not exist yet (S4), with what is spent and reserved. */
    readonly ofSession: (session: LimitedSession, now: number) => Stored<readonly LimitState[]>;
    /** The sessions of an account that run, the oldest first. */
    readonly running: (accountId: string) => Stored<readonly RunningSpender[]>;
    /** The sums of a session's whole time. */
    readonly spentBySession: (sessionId: string) => Stored<SpendSums>;
    /** The account's sums of a month: of the account, its persons, its projects, and each of its days. */
    readonly month: (accountId: string, month: string) => Stored<readonly SpentFor[]>;
    /**
     * S1. No limit is asked if the caller's account had none. @returns null: the call passes. Otherwise the limit that it does not pass,
     * and whether only a price is missing.
     */
    readonly reserve: (
      call: CallEstimate & { readonly now: number },
    ) => Stored<{ readonly limit: LimitState; readonly lacksPrice: boolean } | null>;
    /** S2, S3. */
    readonly settle: (call: EndedCall & { readonly now: number }) => Stored<void>;
    readonly renew: (ids: readonly string[], now: number) => Stored<void>;
    /** S5, of up to `LAPSES_MAX` reservations. @returns how many lapsed */
    readonly lapse: (now: number) => Stored<number>;
  }
>()("platform/spend/Spend") {}
