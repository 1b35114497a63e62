/**
 * The runtime's own record of a conversation, beside the session's saves (domain/runtimes/history.ts). There is at most one, the newest. People
 * never read it: it has what secrets are masked out of elsewhere.
 */
import { HISTORY_BYTES_MAX, HISTORY_FILES_MAX } from "../domain/runtimes/history.ts";
import type { ListedHistory, Listing, RestorePlan } from "../domain/save/listing.ts";
import type { Save } from "./store.ts";

/** A history as the store has it: a save without work. */
const asSave = (
  { runtime, id, items }: ListedHistory,
  { listing, sandboxId, at }: { readonly listing: Listing; readonly sandboxId: string; readonly at: number },
): Save => ({
  sandboxId,
  at,
  base: null,
  head: listing.head,
  heads: [],
  items,
  commits: [],
  pending: [],
  skipped: [],
  history: { runtime, id },
});

/**
 * The history of a listing, to be stored. Null if the listing has none, it is too large, or the stored one is the same.
 *
 * @param newSave which sandbox listed it, and when it was asked, ms since the epoch
 */
export const wantedHistory = (
  listing: Listing,
  lastSave: Save | null,
  newSave: { readonly sandboxId: string; readonly at: number },
): Save | null => {
  const { history } = listing;
  if (history === undefined) return null;
  const { items } = history;
  const bytes = items.reduce((sum, { size }) => sum + size, 0);
  if (bytes > HISTORY_BYTES_MAX || items.length > HISTORY_FILES_MAX) return null;
  const save = asSave(history, { ...newSave, listing });
  return contentKey(save) === contentKey(lastSave) ? null : save;
};

const contentKey = (save: Save | null): string => JSON.stringify([save?.history, save?.items]);

/** What a restoration gets. Empty without a history. */
export const plannedHistory = (save: Save | null): Pick<RestorePlan, "history"> =>
  save?.history === undefined ? {} : { history: { ...save.history, at: save.at, items: save.items } };
