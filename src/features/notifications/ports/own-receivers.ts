/**
 * The port to the receivers of people: a mailbox, or a person's own chat (api.md 12 "Notices"). It is one of the store's ports, with
 * the same adapters (journal.ts). Their deliveries are those of outbound-deliveries.ts.
 *
 *  R1 A person has at most one receiver for each place.
 *  R2 All of them share one place in the events of all projects. It moves forward only, in the transaction that writes the deliveries
 *     of the events that it passes. An event becomes one delivery for a receiver, whichever node reads it.
 *  R3 A receiver hears of the events since it was saved. These are news, which stay longer than a round can be away (events.ts).
 */
import * as Context from "effect/Context";
import type { NoticeKind } from "../rules/events.ts";
import type { ChatFormat, NoticePlace, OwnNews } from "../rules/own-notice.ts";
import type { DisabledReason, Health } from "../rules/outbound-tries.ts";
import type { Stored } from "../../../store/ports/journal.ts";
import type { NewDelivery, SealedReceiver } from "./outbound-webhooks.ts";

/** Where it leads. Mail has no address here: it goes to the one that its person has then. */
export type OwnAddress =
  | { readonly format: "mail"; readonly shownUrl: null; readonly sealed: null }
  | { readonly format: ChatFormat; readonly shownUrl: string; readonly sealed: SealedReceiver };

interface OwnReceiverFields extends Health {
  readonly id: string;
  readonly userId: string;
  /** At least one. */
  readonly tells: readonly NoticeKind[];
  readonly status: "enabled" | "disabled";
  readonly disabledReason: DisabledReason | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}
export type OwnReceiver = OwnReceiverFields & OwnAddress;

export type NewOwnReceiver = Pick<OwnReceiverFields, "id" | "userId" | "tells"> &
  OwnAddress & { readonly now: number };

/** An event with the enabled receivers of people that it may concern. */
export interface OwnNewsWithReceivers extends OwnNews {
  readonly receivers: readonly Pick<OwnReceiver, "id" | "userId" | "tells">[];
}

export class OwnReceivers extends Context.Service<
  OwnReceivers,
  {
    readonly list: (userId: string) => Stored<readonly OwnReceiver[]>;
    /** Takes the place of the one that the person had there. One with the same id keeps its deliveries. It is enabled. */
    readonly save: (receiver: NewOwnReceiver) => Stored<OwnReceiver>;
    /** Removes the receiver and its deliveries. */
    readonly remove: (userId: string, place: NoticePlace) => Stored<boolean>;
    /** Where mail to the person goes: the address that a provider verified at her last sign-in with one. Null if she has no address. */
    readonly address: (userId: string) => Stored<string | null>;
    /** The news after the place (R2), the earliest first. Null if there is no news, or no enabled receiver. */
    readonly news: (
      limit: number,
    ) => Stored<{ readonly news: readonly OwnNewsWithReceivers[]; readonly to: string } | null>;
    /** Moves the place and writes deliveries, due now (R2). False: another node was first, and nothing is written. */
    readonly collect: (collection: {
      readonly to: string;
      readonly deliveries: readonly (NewDelivery & { readonly receiverId: string })[];
      readonly now: number;
    }) => Stored<boolean>;
  }
>()("platform/notifications/OwnReceivers") {}
