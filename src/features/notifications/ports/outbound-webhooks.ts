/**
 * The port to the receivers of a project's events (api.md 12). It is one of the store's ports, with the same adapters
 * (journal.ts).
 *
 *  O1 An enabled receiver has a place in its project's events. No event behind that place is pruned (events.ts).
 *  O2 The place moves in the transaction that writes the deliveries of the events that it passes. So each event becomes
 *     one delivery, whichever node reads it, and a crash loses none.
 *  O3 Disabling cancels the deliveries that wait, and writes the event `webhook.disabled`, in one transaction.
 */
import * as Context from "effect/Context";
import * as Schema from "effect/Schema";
import type { OutboundEvent } from "../rules/events.ts";
import type { OutboundFormat } from "../rules/outbound-format.ts";
import type { DisabledReason, Health } from "../rules/outbound-tries.ts";
import type { BadCursor } from "../../../store/ports/errors.ts";
import type { Fenced, Stored } from "../../../store/ports/journal.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";

/** Address and signing secrets, sealed as one value (features/notifications/rules/outbound-receiver.ts). `version` counts its writes. */
export interface SealedReceiver {
  readonly version: number;
  readonly envelope: Uint8Array;
}

export interface OutboundWebhook extends Health {
  readonly id: string;
  readonly projectId: string;
  readonly format: OutboundFormat;
  /** As people see it. */
  readonly shownUrl: string;
  readonly events: readonly OutboundEvent[];
  readonly sealed: SealedReceiver;
  /** Until when the secret before the last rotation signs as well. */
  readonly previousSecretUntil: number | null;
  readonly status: "enabled" | "disabled";
  readonly disabledReason: DisabledReason | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface NewOutboundWebhook extends Pick<
  OutboundWebhook,
  "id" | "projectId" | "format" | "shownUrl" | "events" | "sealed"
> {
  /** From `Events.after`: the receiver hears of the events after this place. */
  readonly cursor: string;
  readonly now: number;
}

export interface ReceiverChange {
  readonly projectId: string;
  readonly id: string;
  readonly events?: readonly OutboundEvent[];
  /** Another address or another secret. `version` is the next one. */
  readonly secrets?: SealedReceiver & Pick<OutboundWebhook, "shownUrl" | "previousSecretUntil">;
  readonly now: number;
}

/** An enabled receiver behind whose place there are events to read. */
export interface ReceiverBehind extends Pick<OutboundWebhook, "id" | "projectId" | "events"> {
  readonly projectName: string;
  readonly cursor: string;
}

/** A delivery before its first try. */
export interface NewDelivery {
  readonly id: string;
  /** The `webhook-id`. */
  readonly messageId: string;
  readonly type: string;
  /** The message as JSON: which body it becomes is the format's matter. */
  readonly message: string;
}

/** The project has as many receivers as it may have. */
export class ReceiversFull extends Schema.TaggedError<ReceiversFull>()("ReceiversFull", {
  limit: Schema.Finite,
}) {}

/** How many deliveries may wait for one receiver before it is disabled. */
export const DELIVERIES_WAITING_MAX = 10_000;

export class OutboundWebhooks extends Context.Service<
  OutboundWebhooks,
  {
    /** An enabled one. Refused beyond `RECEIVERS_MAX` of its project. */
    readonly create: (webhook: NewOutboundWebhook) => Stored<OutboundWebhook, ReceiversFull>;
    /** Null if the project has no such receiver. `Fenced` if another request wrote the secrets meanwhile. */
    readonly change: (change: ReceiverChange) => Stored<OutboundWebhook | null, Fenced>;
    /** Begins at a place in the events. One that is enabled stays as it is. */
    readonly enable: (
      projectId: string,
      id: string,
      from: { readonly cursor: string; readonly now: number },
    ) => Stored<OutboundWebhook | null>;
    /** One that is disabled stays as it is, with its reason (O3). */
    readonly disable: (
      projectId: string,
      id: string,
      by: { readonly reason: DisabledReason; readonly now: number },
    ) => Stored<OutboundWebhook | null>;
    /** Removes the receiver and its deliveries. */
    readonly remove: (projectId: string, id: string) => Stored<boolean>;
    readonly get: (projectId: string, id: string) => Stored<OutboundWebhook | null>;
    /** Newest first. */
    readonly list: (projectId: string, request: PageRequest) => Stored<Page<OutboundWebhook>, BadCursor>;
    /** Those that are furthest behind come first. */
    readonly behind: (limit: number) => Stored<readonly ReceiverBehind[]>;
    /**
     * Moves the receiver's place and writes its deliveries (O2), due now. False: another node was first, or the
     * receiver is disabled. Beyond `DELIVERIES_WAITING_MAX` it is disabled, as `backlog`.
     */
    readonly collect: (collection: {
      readonly projectId: string;
      readonly id: string;
      readonly from: string;
      readonly to: string;
      readonly deliveries: readonly NewDelivery[];
      readonly now: number;
    }) => Stored<boolean>;
  }
>()("platform/notifications/OutboundWebhooks") {}
