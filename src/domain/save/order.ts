/** How a sandbox saves its work before it ends, and how long one stays whose work cannot be saved (saves.md 5). */

/**
 * How a stop saves, as its request says it. `try`: for a while, then the sandbox goes. `require`: the session runs on
 * unless everything is saved. `skip`: not at all.
 */
export const STOP_SAVES = ["try", "require", "skip"] as const;
export type StopSave = (typeof STOP_SAVES)[number];

/**
 * The first act of a sandbox before its end (saves.md 5), the least urgent order first:
 *
 *  - `pause`: the service ends it by itself, so it has a long time, and stays unless everything is saved.
 *  - `require`: a stop that demands the save. It stays unless everything is saved.
 *  - `last`: it could not be saved for too long. After a last long time, it goes with what is saved.
 *  - `try`: a stop. It goes after a short time.
 *  - `dismiss`: its person is deactivated. Everything in it ends at once but its daemon, which has a long time.
 *  - `skip`: it goes at once.
 */
export const SAVE_ORDERS = ["pause", "require", "last", "try", "dismiss", "skip"] as const;
export type SaveOrder = (typeof SAVE_ORDERS)[number];

/** Whether a sandbox that ends by one order follows another one that comes now. */
export const isMoreUrgent = (order: SaveOrder, than: SaveOrder): boolean =>
  SAVE_ORDERS.indexOf(order) > SAVE_ORDERS.indexOf(than);

/** Whether a sandbox stays if not everything could be saved. */
export const isRequired = (order: SaveOrder): boolean => order === "pause" || order === "require";

/** The share of one processor that a save in the background uses in the sandbox. */
export const BACKGROUND_SHARE = 0.15;
/** How long a save may take for which no person waits. */
export const LONG_SAVE_MS = 10 * 60_000;
/** How long an idle sandbox stays whose work cannot be saved whole. */
export const UNSAVED_MAX_MS = 24 * 60 * 60_000;

/**
 * A session that was idle, and stays, because its work cannot be saved whole. Milliseconds since the epoch: since when, and
 * when the service tries again.
 */
export interface Unsaved {
  readonly since: number;
  readonly tries: number;
  readonly nextAt: number;
}

/** The pauses between two tries: 1, 2, 4 … 60 minutes. */
const FIRST_PAUSE_MS = 60_000;
const LAST_PAUSE_MS = 60 * FIRST_PAUSE_MS;

/** After another try without success. */
export const stillUnsaved = (former: Unsaved | null, now: number): Unsaved => {
  const tries = (former?.tries ?? 0) + 1;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(tries - 1, 16), LAST_PAUSE_MS);
  return { since: former?.since ?? now, tries, nextAt: now + pause };
};
