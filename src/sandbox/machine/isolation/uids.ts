/** The host uids of the sandboxes of a root service. */
import { sandboxUids, UIDS_PER_INSTALLATION } from "../../../domain/sandbox/host-uids.ts";
import { UIDS_PER_SANDBOX } from "./isolation.ts";

/**
 * The first of a new sandbox's host uids.
 * @param takenUids those of other sandboxes
 * @throws Error if no uid of this installation is free
 */
export const freeUids = (installationId: string, takenUids: ReadonlySet<number>): number => {
  const first = sandboxUids(installationId);
  for (let base = first; base + UIDS_PER_SANDBOX <= first + UIDS_PER_INSTALLATION; base += UIDS_PER_SANDBOX) {
    if (!takenUids.has(base)) return base;
  }
  throw new Error("all user ids for sandboxes are in use");
};
