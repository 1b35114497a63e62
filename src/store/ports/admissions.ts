/** Admission: which wishes for a session get a slot, which wait, and which are refused (api.md 4 "Admission", "Queue"). */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";
import type { Fire, NewFire, NewSession } from "./records.ts";

/**
 * A wish for a session: by a person (`fire: null`) or by a fire, whose prompt takes the place of the session's. `atCap`
 * says what becomes of it without a slot.
 */
export interface AdmissionRequest {
  readonly session: NewSession;
  readonly fire: NewFire | null;
  /** The version of the project that the wish was decided by; null: it went by nothing of it. */
  readonly projectVersion: number | null;
  readonly atCap: "refuse" | "queue";
  readonly now: number;
}

export type Admission =
  | { readonly outcome: "admitted"; readonly sessionId: string; readonly fireId: string | null }
  /** `slotIsFree`: others wait before it, and could start. */
  | { readonly outcome: "queued"; readonly fireId: string; readonly slotIsFree: boolean }
  | { readonly outcome: "refused"; readonly limit: number; readonly activeSessions: number }
  | { readonly outcome: "queue_full"; readonly limit: number }
  /** The delivery id was seen within 24 h on a fired or queued row: that row as it is now. */
  | { readonly outcome: "duplicate"; readonly fire: Fire }
  /** The trigger's filter does not match; it has its row. */
  | { readonly outcome: "filtered"; readonly fireId: string }
  /** It has its row, which says why (api.md 4 "Ledger"). */
  | { readonly outcome: "failed"; readonly fireId: string; readonly reason: FireFailure }
  /** The project is of another version by now: nothing was written, whoever asks looks at it again. */
  | { readonly outcome: "stale" }
  /** The project was archived or deleted meanwhile. */
  | { readonly outcome: "inactive" };

/**
 * Why a fire failed: its prompt is over the limit, it could not wait (a cron instant: nobody can be told to return), or its
 * project has no model for the agent.
 */
export type FireFailure = "prompt_too_large" | "queue_full" | "no_model";

/** Due instants that are accounted for without a fire, oldest first. */
export interface Skip {
  readonly accountId: string;
  readonly projectId: string;
  readonly projectVersion: number;
  readonly triggerSlug: string;
  readonly reason: "missed" | "paused";
  readonly instants: readonly { readonly id: string; readonly dueAt: number }[];
  readonly now: number;
}

/** For this long after it was seen a delivery id is answered with the row it has (api.md 4 "Webhook"), ms. */
export const DELIVERY_WINDOW_MS = 24 * 60 * 60 * 1000;

export class Admissions extends Context.Service<
  Admissions,
  {
    /**
     * Decides a batch of one account's wishes in one transaction, in their order: slot counter, ledger row, session
     * or queue row, last_fired_at, the session's first command in the outbox, event rows (api.md 4 "Admission").
     * @returns one answer a wish, in the same order.
     */
    readonly admit: (
      accountId: string,
      requests: readonly AdmissionRequest[],
    ) => Stored<readonly Admission[]>;
    /**
     * Gives free slots to waiting fires: round robin between projects, first come first served within one, one fire
     * a slot. Expired fires are marked on the way. `sessionIds` are fresh ids for at most that many sessions.
     */
    readonly drain: (
      accountId: string,
      request: {
        readonly sessionIds: readonly string[];
        readonly now: number;
        readonly bootTimeoutMs: number;
      },
    ) => Stored<{
      readonly admitted: readonly { fireId: string; sessionId: string }[];
      readonly more: boolean;
    }>;
    /**
     * Writes `skipped` rows for instants that have no row yet and moves the trigger's cursor to the last of them.
     * @returns false where the project is of another version by now: nothing was written.
     */
    readonly skip: (skip: Skip) => Stored<boolean>;
    /** Takes a waiting fire out of the queue for good; false where it does not wait (any more). */
    readonly cancel: (fireId: string, now: number) => Stored<boolean>;
    /** Accounts with waiting fires, for start-up and the timer. */
    readonly waitingAccounts: Stored<readonly string[]>;
  }
>()("platform/store/Admissions") {}
