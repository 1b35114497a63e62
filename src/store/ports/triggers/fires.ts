/** The ledger of fires, with their requests (api.md 4 "Ledger"). */
import * as Context from "effect/Context";
import type { BadCursor } from "../errors.ts";
import type { Stored } from "../journal.ts";
import type { ProjectReader } from "../projects/projects.ts";
import type { Page, PageRequest } from "../page.ts";
import type { EventSkip } from "../../../domain/trigger/event-skip.ts";
import type { CronTemplate } from "../../../domain/trigger/prompt.ts";
import type { FireStatus } from "../../../domain/trigger/fire.ts";
import type { RunOutcome } from "../../../domain/session/run-outcome.ts";

/** How a trigger fires. */
export type TriggerFireKind = "cron" | "webhook" | "manual";
/** `session`: a person's request for a session, which found no free slot. It has no trigger. */
export type FireKind = TriggerFireKind | "session";

/** Which value of its secret verified a webhook. */
export type VerifiedWith = "current" | "previous";

export interface Fire {
  readonly id: string;
  readonly projectId: string;
  /** Null means a person's request. */
  readonly triggerSlug: string | null;
  readonly kind: FireKind;
  readonly status: FireStatus;
  readonly reason: string | null;
  readonly scheduledFor: number | null;
  readonly receivedAt: number;
  readonly deliveryId: string | null;
  readonly sessionId: string | null;
  readonly attempts: number;
  /** Set by a person's replay, and by a delivery that came again after its session was lost. */
  readonly replayOf: string | null;
  /** The row that answered this repeated delivery. */
  readonly duplicateOf: string | null;
  /** Null if no signature was checked. */
  readonly verifiedWith: VerifiedWith | null;
}

/** A fire as answers show it. */
export interface ShownFire extends Fire {
  /** Null if it started no session. */
  readonly outcome: RunOutcome | null;
  /** The session's. Null if it started none, or that has no name. */
  readonly sessionName: string | null;
  /** The name of the person who ran it by hand, or replayed it. Null if it had another cause, or started no session. */
  readonly startedBy: string | null;
}

/** Which fires a list has. */
export interface FireFilter {
  readonly slug: string | null;
  readonly status: string | null;
  /** Only those that could not start, and those whose session or its last turn failed. Absent: no. */
  readonly hasFailed?: boolean;
}

/** The request of a fire (api.md 4 "Ledger"), kept for display and replay. */
export interface StoredRequest {
  readonly body: Uint8Array;
  /** How the body is stored: as it came, or deflated (RFC 1951). */
  readonly encoding: "identity" | "deflate";
  /** Null for a manual fire. */
  readonly headers: {
    readonly contentType: string | null;
    readonly userAgent: string | null;
    readonly forwardedFor: string | null;
  } | null;
}

/** Why an authentic delivery starts nothing. `spend_limit`: a limit of spend is reached, which also holds for other fires. */
export type DeliverySkip = "filtered" | EventSkip | "spend_limit";

/** A fire's prompt as admission gets it. */
export type FirePrompt =
  | { readonly is: "rendered"; readonly text: string }
  /** Rendered when it fires, now or when a slot is free: it contains the time of the fire before it. */
  | { readonly is: "cron"; readonly template: CronTemplate }
  /** Over the limit: the fire fails. It is visible and can be replayed. */
  | { readonly is: "too_large" }
  /** The fire is skipped. It is visible and can be replayed. */
  | { readonly is: "skipped"; readonly reason: DeliverySkip }
  /** The session would have no model: the fire fails. */
  | { readonly is: "no_model" }
  /** The session's model names a provider that it cannot use: the fire fails. */
  | { readonly is: "unknown_model" }
  /** The session's calls could not be counted, and a limit of spend applies: the fire fails. */
  | { readonly is: "limit_needs_provider" }
  /** The session has its prompt, or begins without one. */
  | { readonly is: "own" };

export interface NewFire {
  readonly id: string;
  readonly accountId: string;
  readonly projectId: string;
  readonly triggerSlug: string | null;
  readonly kind: FireKind;
  readonly scheduledFor: number | null;
  readonly receivedAt: number;
  readonly deliveryId: string | null;
  readonly replayOf: string | null;
  readonly prompt: FirePrompt;
  /** Set for a webhook. */
  readonly verifiedWith?: VerifiedWith;
  /** Null if not stored, or the fire came without one. */
  readonly request: StoredRequest | null;
  /** How long it may wait in the queue, ms (PLATFORM_QUEUE_TTL_MS), and how many may wait (PLATFORM_QUEUE_MAX). */
  readonly queueTtlMs: number;
  readonly queueMax: number;
}

export interface QueuedFire {
  readonly fireId: string;
  readonly projectId: string;
  readonly triggerSlug: string | null;
  readonly kind: FireKind;
  /** The name of its session, if it has one, else the beginning of its prompt. Null if it has neither yet. */
  readonly title: string | null;
  /** How many files wait with it. */
  readonly files: number;
  /** Who asked for the session. Null if a trigger fired it. */
  readonly person: { readonly id: string; readonly name: string } | null;
  readonly position: number;
  readonly queuedAt: number;
  readonly expiresAt: number;
}

export class Fires extends Context.Service<
  Fires,
  {
    readonly get: (id: string) => Stored<ShownFire | null>;
    /** The request that the fire came with, if it is stored. */
    readonly request: (id: string) => Stored<StoredRequest | null>;
    /** The prompt of a fire that fired, or that waits with a rendered one. Null for any other. */
    readonly prompt: (id: string) => Stored<string | null>;
    /** The id of the person whose request waits. Null for a trigger's fire, and for one that does not wait. */
    readonly requester: (id: string) => Stored<string | null>;
    /** A project's fires of triggers, newest first. Requests of persons are not among them. */
    readonly list: (
      projectId: string,
      request: PageRequest & FireFilter,
    ) => Stored<Page<ShownFire>, BadCursor>;
    /** The newest row of each of these triggers that has one. Repeated deliveries do not count. */
    readonly lastBySlug: (
      projectId: string,
      slugs: readonly string[],
    ) => Stored<ReadonlyMap<string, ShownFire>>;
    /** The account's waiting fires in the order in which they will start. */
    readonly queue: (reader: ProjectReader) => Stored<readonly QueuedFire[]>;
    /** The place of a waiting fire among all of its account, from 1. Null if it does not wait. */
    readonly position: (accountId: string, id: string) => Stored<number | null>;
    /**
     * One small step of pruning: rows received before `before` that do not wait, and stored requests beyond
     * `requestBytes` for an account, oldest first. @returns how many rows were removed. 0: nothing is left to prune.
     */
    readonly prune: (limits: { readonly before: number; readonly requestBytes: number }) => Stored<number>;
  }
>()("platform/store/Fires") {}
