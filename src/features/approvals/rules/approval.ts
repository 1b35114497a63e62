/** Calls that wait for a person: their states, their limits, and the places of their sealed parts. */
import type { SecretPlace } from "../../../domain/secret/secret.ts";

export const APPROVAL_STATES = [
  "pending",
  "approved",
  "calling",
  "done",
  "denied",
  "refused",
  "expired",
  "unknown",
] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

const SETTLED: ReadonlySet<ApprovalState> = new Set(["done", "denied", "refused", "expired", "unknown"]);

/** Whether nothing is left to decide or to call. */
export const isSettled = (status: ApprovalState): boolean => SETTLED.has(status);

/** How long a person may think, ms. */
export const APPROVAL_MS = 24 * 60 * 60 * 1000;
/** The longest reason of a denial, in characters. */
export const REASON_LIMIT = 500;

/** The place of a sealed part. No project secret can have a name with spaces, so the two kinds of places never meet. */
export const approvalPlace = (
  { id, projectId }: { readonly id: string; readonly projectId: string },
  part: "arguments" | "result",
): SecretPlace => ({ projectId, name: `approval ${id} ${part}`, version: 1 });
