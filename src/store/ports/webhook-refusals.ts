/** The port to what the webhook receiver turned away, one of the store's: the same adapters keep it (journal.ts). */
import * as Context from "effect/Context";
import type { Stored } from "./journal.ts";
import type { BadCursor } from "./errors.ts";
import type { Page, PageRequest } from "./records.ts";

/** Refusals are kept this long, ms, and this many a project. */
export const REFUSALS_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
export const REFUSALS_KEPT_PER_PROJECT = 500;

/** A webhook that was turned away. No body and no signature of it is kept. */
export interface WebhookRefusal {
  readonly id: string;
  readonly projectId: string;
  readonly at: number;
  /** As the sender wrote it; it need not be a trigger's. */
  readonly slug: string;
  /** Of the answer, as is `code`. */
  readonly status: number;
  readonly code: string;
  /** Why: more than the sender is told. */
  readonly reason: string;
  readonly deliveryId: string | null;
  readonly event: string | null;
  /** What Content-Length said; null: it said nothing. */
  readonly declaredBytes: number | null;
  /** What was received; null: nothing was read. */
  readonly bodyBytes: number | null;
  readonly address: string;
  readonly forwardedFor: string | null;
}

export class WebhookRefusals extends Context.Service<
  WebhookRefusals,
  {
    /** Adds rows, and removes what is then over the limit of their projects. Rows of a project that is gone are left out. */
    readonly add: (refusals: readonly WebhookRefusal[]) => Stored<void>;
    /** Newest first. */
    readonly list: (projectId: string, request: PageRequest) => Stored<Page<WebhookRefusal>, BadCursor>;
    /** One small step: removes rows from before an instant. @returns how many; none: there is nothing left to remove. */
    readonly prune: (before: number) => Stored<number>;
  }
>()("platform/store/WebhookRefusals") {}
