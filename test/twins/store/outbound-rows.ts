/** Rows of outbound webhooks in memory. */
import type { OutboundDelivery } from "../../../src/features/notifications/ports/outbound-deliveries.ts";
import type { OutboundWebhook } from "../../../src/features/notifications/ports/outbound-webhooks.ts";

export interface OutboundWebhookRow {
  readonly record: OutboundWebhook;
  /** Its place in the project's events. */
  readonly cursor: string;
}
export interface OutboundDeliveryRow {
  readonly record: OutboundDelivery;
  readonly leasedUntil: number | null;
  readonly claim: number;
}
