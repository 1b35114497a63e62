/** Admission: which wishes for a session get a slot, which wait, and which are refused (api.md 4 "Admission", "Queue"). */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";
import type { DeliverySkip, Fire, FireKind, NewFire } from "./fires.ts";
import type { NewSession } from "../sessions/sessions.ts";

interface Wish {
  readonly session: NewSession;
  readonly now: number;
}

/** A person creates a session, or the agent of a session does. */
export interface SessionWish extends Wish {
  readonly kind: "session";
  readonly fire: null;
  /** The wish does not depend on the project's files or settings. */
  readonly projectVersion: null;
}

/** A person's request for a session, which waits at the cap. Its fire is written only if it waits. */
export interface RequestWish extends Wish {
  readonly kind: "request";
  readonly fire: NewFire;
  /** The wish does not depend on the project's files or settings. */
  readonly projectVersion: null;
}

/** A fire. Its prompt replaces the session's. */
export interface FireWish extends Wish {
  /**
   * `hand`: a person fires or replays it, and it is refused at the cap. `delivery`: a webhook, which waits at the cap.
   * `instant`: a due instant of a cron trigger, which waits too.
   */
  readonly kind: "hand" | "delivery" | "instant";
  readonly fire: NewFire;
  /** The version of the project that the fire was made from; null: any. */
  readonly projectVersion: number | null;
}

export type AdmissionRequest = SessionWish | RequestWish | FireWish;

/** Every answer to a wish. `AdmissionOf` has those that one kind of wish can get. */
export type Admission =
  | { readonly outcome: "admitted"; readonly sessionId: string; readonly fireId: string | null }
  /** `slotIsFree`: others wait before it, and could start. */
  | {
      readonly outcome: "queued";
      readonly fireId: string;
      readonly slotIsFree: boolean;
      /** Ms since the epoch. */
      readonly expiresAt: number;
    }
  | { readonly outcome: "refused"; readonly limit: number; readonly activeSessions: number }
  /** The agent of the session that wishes it has as many live sessions as it may have. */
  | { readonly outcome: "children_full"; readonly limit: number }
  /** The sender is told and sends the delivery again. No row was written. */
  | { readonly outcome: "queue_full"; readonly limit: number }
  /** No sender can repeat an instant, so it has its row, with the reason `queue_full`. */
  | { readonly outcome: "dropped"; readonly fireId: string; readonly reason: "queue_full" }
  /** The delivery id was seen within 24 h, and its row is not tried again: that row as it is now. */
  | { readonly outcome: "duplicate"; readonly fire: Fire }
  /** The instant has its row: another node wrote it, or a former schedule had the same instant. */
  | { readonly outcome: "accounted" }
  /** The fire starts nothing, for this reason. It has its row. */
  | { readonly outcome: "skipped"; readonly fireId: string; readonly reason: DeliverySkip }
  /** The fire has its row, with this reason (api.md 4 "Ledger"). */
  | { readonly outcome: "failed"; readonly fireId: string; readonly reason: PromptFailure }
  /** The project has another version now. Nothing was written. The caller decides again. */
  | { readonly outcome: "stale" }
  /** The project was archived or deleted meanwhile. */
  | { readonly outcome: "inactive" };

/**
 * Why a fire has no prompt: it is over the limit, the project has no model for the agent, the agent's model has no provider, or a limit of spend applies and the agent's calls
 * could not be counted.
 */
export type PromptFailure =
  | "prompt_too_large"
  | "prompt_empty"
  | "no_model"
  | "unknown_model"
  | "limit_needs_provider";

/** The reason of a failed fire. */
export type FireFailure = PromptFailure | "queue_full";

/** The outcomes of each kind of wish. */
const OUTCOMES = {
  session: ["admitted", "refused", "children_full", "inactive"],
  request: ["admitted", "queued", "queue_full", "inactive"],
  hand: ["admitted", "refused", "children_full", "skipped", "failed", "stale", "inactive"],
  delivery: ["admitted", "queued", "queue_full", "duplicate", "skipped", "failed", "stale", "inactive"],
  instant: ["admitted", "queued", "dropped", "accounted", "skipped", "failed", "stale", "inactive"],
} as const satisfies Readonly<Record<AdmissionRequest["kind"], readonly Admission["outcome"][]>>;

export type WishKind = keyof typeof OUTCOMES;

/** The answers that one kind of wish can get. */
export type AdmissionOf<Kind extends WishKind> = Extract<
  Admission,
  { readonly outcome: (typeof OUTCOMES)[Kind][number] }
>;

/** Whether a wish of this kind can get this answer. */
export const isAnswerTo = <Kind extends WishKind>(
  kind: Kind,
  admission: Admission,
): admission is AdmissionOf<Kind> => OUTCOMES[kind].some((outcome) => outcome === admission.outcome);

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

/** A waiting fire, with the session that it would start. */
export interface WaitingFire {
  readonly fireId: string;
  readonly kind: FireKind;
  readonly session: Omit<NewSession, "bootDeadlineAt">;
}

/** The end of a wait that starts nothing. */
export interface RefusedWait {
  readonly fireId: string;
  readonly status: "skipped" | "failed";
  readonly reason: DeliverySkip | PromptFailure;
}

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
    /** The waiting fires that start next, in their order, at most `limit`. */
    readonly heads: (accountId: string, limit: number) => Stored<readonly WaitingFire[]>;
    /** Takes waiting fires out of the queue for good, each with its reason. Those that do not wait any more are left alone. */
    readonly refuse: (accountId: string, waits: readonly RefusedWait[], now: number) => Stored<void>;
    /** Takes a waiting fire out of the queue for good; false where it does not wait (any more). */
    readonly cancel: (fireId: string, now: number) => Stored<boolean>;
    /** Accounts with waiting fires, for start-up and the timer. */
    readonly waitingAccounts: Stored<readonly string[]>;
  }
>()("platform/store/Admissions") {}
