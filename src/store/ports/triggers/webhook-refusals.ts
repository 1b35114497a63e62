/**
 * The port to webhooks that the receiver refused. It is one of the store's ports, with the same adapters (journal.ts).
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";
import type { BadCursor } from "../errors.ts";
import type { Page, PageRequest } from "../page.ts";

/** How long refusals are kept, ms, and how many for each project. */
export const REFUSALS_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
export const REFUSALS_KEPT_PER_PROJECT = 500;

/** A refused webhook. Neither its body nor its signature is kept. */
export interface WebhookRefusal {
  readonly id: string;
  readonly projectId: string;
  readonly at: number;
  /** As the sender wrote it. The trigger need not exist. */
  readonly slug: string;
  /** The answer's status, as `code` is its code. */
  readonly status: number;
  readonly code: string;
  /** The reason, in more detail than the sender gets. */
  readonly reason: string;
  readonly deliveryId: string | null;
  readonly event: string | null;
  /** The value of Content-Length. Null if absent. */
  readonly declaredBytes: number | null;
  /** How many bytes were received. Null if the body was not read. */
  readonly bodyBytes: number | null;
  readonly address: string;
  readonly forwardedFor: string | null;
}

export interface RefusalRequest extends PageRequest {
  /** Only those to this address. Absent: to any. */
  readonly slug?: string;
}

export class WebhookRefusals extends Context.Service<
  WebhookRefusals,
  {
    /**
     * Adds rows, and removes rows over the limit of their projects. Rows of a project that does not exist are left out.
     */
    readonly add: (refusals: readonly WebhookRefusal[]) => Stored<void>;
    /** Newest first. */
    readonly list: (projectId: string, request: RefusalRequest) => Stored<Page<WebhookRefusal>, BadCursor>;
    /** One small step: removes rows from before an instant. @returns how many. 0: nothing is left to remove. */
    readonly prune: (before: number) => Stored<number>;
  }
>()("platform/store/WebhookRefusals") {}
