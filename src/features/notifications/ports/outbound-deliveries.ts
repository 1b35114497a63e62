/**
 * The port to the deliveries of events to receivers of projects and of people (api.md 12). It is one of the store's ports, with the same adapters
 * (journal.ts).
 *
 *  O4 No other node takes a claimed delivery until its lease ends. A result counts only for the claim that it
 *     belongs to. So a delivery is sent again after a crash, and two nodes never send it at the same moment.
 *  O5 A receiver's places for requests depend on its answers: one that fails has one place.
 */
import * as Context from "effect/Context";
import type { PersonNow } from "../../../domain/person/role.ts";
import type { ReceiverFormat } from "../rules/outbound-format.ts";
import type { TryOutcome, Verdict } from "../rules/outbound-tries.ts";
import type { BadCursor } from "../../../store/ports/errors.ts";
import type { Stored } from "../../../store/ports/journal.ts";
import type { SealedReceiver } from "./outbound-webhooks.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";

/** How long deliveries that ended are kept, ms, and how many of one receiver. */
export const DELIVERIES_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
export const DELIVERIES_KEPT_EACH = 1000;

/** `cancelled`: the receiver was disabled before, or it may not be told any more. */
export type DeliveryStatus = "pending" | "delivered" | "failed" | "cancelled";

/** The last request and its answer. */
export interface LastTry extends Pick<TryOutcome, "status" | "error" | "answer" | "tookMs"> {
  readonly at: number;
}

export interface OutboundDelivery {
  readonly id: string;
  readonly webhookId: string;
  /** The header `webhook-id`. */
  readonly messageId: string;
  readonly type: string;
  /** JSON (features/notifications/rules/outbound-event.ts). */
  readonly message: string;
  readonly status: DeliveryStatus;
  readonly tries: number;
  /** The next try. Null once the delivery has ended. */
  readonly dueAt: number | null;
  readonly lastTry: LastTry | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** A delivery that the caller must send now. */
export interface ClaimedDelivery extends Pick<
  OutboundDelivery,
  "id" | "webhookId" | "messageId" | "message" | "tries"
> {
  /** The number of the claim (O4). `tries` counts this one. */
  readonly claim: number;
  /** The project or the person that has the receiver. Its address is sealed under this id. */
  readonly ownerId: string;
  /** Whose own it is, and what she may in the project of the message. Null for a project's. */
  readonly person: (PersonNow & { readonly id: string }) | null;
  readonly format: ReceiverFormat;
  /** Null for mail. */
  readonly sealed: SealedReceiver | null;
  /** The receiver's last request failed. */
  readonly isFailing: boolean;
}

/** Places for requests that are free. */
export interface ClaimRoom {
  readonly all: number;
  /** Of these, for receivers that fail. */
  readonly failing: number;
  /** For one receiver that does not fail, over all nodes; one that fails has one (O5). */
  readonly each: number;
}

/** What became of a claimed delivery. */
export interface DeliveryResult {
  readonly id: string;
  readonly webhookId: string;
  readonly claim: number;
  readonly outcome: TryOutcome;
  readonly verdict: Verdict;
}

export class OutboundDeliveries extends Context.Service<
  OutboundDeliveries,
  {
    /** Claims due deliveries of enabled receivers, a receiver's earliest first, until `leaseUntil` (O4, O5). */
    readonly claim: (request: {
      readonly now: number;
      readonly leaseUntil: number;
      readonly room: ClaimRoom;
    }) => Stored<readonly ClaimedDelivery[]>;
    /** Writes results with what they mean for their receivers, which may disable them (features/notifications/rules/outbound-tries.ts). */
    readonly record: (results: readonly DeliveryResult[], now: number) => Stored<void>;
    /** Newest first. */
    readonly list: (webhookId: string, request: PageRequest) => Stored<Page<OutboundDelivery>, BadCursor>;
    /** The newest delivery of each of these receivers that has one, by receiver. */
    readonly newest: (webhookIds: readonly string[]) => Stored<ReadonlyMap<string, OutboundDelivery>>;
    /**
     * Makes a delivery due now; one that ended begins its tries anew. `sending`: it is claimed. `disabled`: its receiver
     * is. Null if the receiver has no such delivery.
     */
    readonly replay: (
      webhookId: string,
      id: string,
      now: number,
    ) => Stored<OutboundDelivery | "sending" | "disabled" | null>;
    /** One small step: removes deliveries that ended before an instant or are too many. @returns how many. */
    readonly prune: (before: number) => Stored<number>;
    /** How many deliveries wait, of all projects, and since when the oldest one does. */
    readonly waiting: Stored<{ readonly count: number; readonly oldestAt: number | null }>;
  }
>()("platform/notifications/OutboundDeliveries") {}
