/** The host uids of the sandboxes of a root service. */
import { createHash } from "node:crypto";
import { UIDS_PER_SANDBOX } from "./isolation.ts";

/**
 * Host uids of sandboxes are far above users, services and usual subordinate ranges. Each installation has its own
 * range.
 */
const UID_FIRST = 300_000_000;
const UID_STRETCH = 30_000;
const UID_STRETCHES = 10_000;

/**
 * The first of a new sandbox's host uids.
 * @param taken those of other sandboxes
 * @throws Error if no uid of this installation is free
 */
export const freeUids = (installationId: string, taken: ReadonlySet<number>): number => {
  const digest = createHash("sha256").update(installationId).digest();
  const first = UID_FIRST + (digest.readUInt32BE() % UID_STRETCHES) * UID_STRETCH;
  for (let base = first; base + UIDS_PER_SANDBOX <= first + UID_STRETCH; base += UIDS_PER_SANDBOX) {
    if (!taken.has(base)) return base;
  }
  throw new Error("all user ids for sandboxes are in use");
};
