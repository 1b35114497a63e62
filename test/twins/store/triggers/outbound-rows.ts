/** Rows of outbound webhooks in memory. */
import type { OutboundDelivery } from "../../../../src/features/notifications/ports/outbound-deliveries.ts";
import type { OwnReceiver } from "../../../../src/features/notifications/ports/own-receivers.ts";
import type { OutboundWebhook } from "../../../../src/features/notifications/ports/outbound-webhooks.ts";

export interface OutboundWebhookRow {
  readonly record: OutboundWebhook;
  /** Its place in the project's events. */
  readonly cursor: string;
}
export interface OwnReceiverRow {
  readonly record: OwnReceiver;
  /** It hears of the events after this place. */
  readonly cursor: number;
}
export interface OutboundDeliveryRow {
  readonly record: OutboundDelivery;
  readonly leasedUntil: number | null;
  readonly claim: number;
}
