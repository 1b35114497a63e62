/** What results mean for a receiver. Both adapters of the store use it, so that they cannot differ. */
import { healthAfter, type DisabledReason, type Health } from "../rules/outbound-tries.ts";
import type { DeliveryResult, DeliveryStatus } from "./outbound-deliveries.ts";

/** Results of one receiver, in the order in which they came. */
export const healthAfterAll = (
  before: Health,
  results: readonly DeliveryResult[],
  now: number,
): Health & { readonly disable: DisabledReason | null } => {
  let health: Health & { readonly disable: DisabledReason | null } = { ...before, disable: null };
  for (const { verdict } of results) {
    const { disable, ...after } = healthAfter(health, verdict, now);
    health = { ...after, disable: health.disable ?? disable };
  }
  return health;
};

/** A result as columns of its delivery. */
export const statusAfter = ({ verdict }: DeliveryResult): DeliveryStatus =>
  verdict.is === "again" ? "pending" : verdict.is;

export const dueAfter = ({ verdict }: DeliveryResult): number | null =>
  verdict.is === "again" ? verdict.dueAt : null;
