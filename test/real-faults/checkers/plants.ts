/**
 * Violations planted from outside, at least one for each checker. A checker that misses one here would also miss it
 * after a fault.
 */
import type { CHECKERS } from "./checkers.ts";
import type { FaultyService } from "../installation.ts";
import { LAST_PLANT, MOUNT_PLANTS, OUTSIDE_PLANTS } from "./outside-plants.ts";
import { ROW_PLANTS } from "./row-plants.ts";
import type { Seen } from "../seen.ts";

/** The parts of an installation that a plant can spoil. */
export interface Ground {
  readonly service: FaultyService;
  /** Nothing is wrong in it. */
  readonly seen: Seen;
  /** Reads everything again. */
  readonly look: () => Promise<Seen>;
  /** A session that was made by a user, pushed, was merged, left work behind and was stopped; its sandbox. */
  readonly ended: { readonly sessionId: string; readonly sandboxId: string; readonly pushed: string };
  /** One that runs. */
  readonly running: { readonly sessionId: string; readonly sandboxId: string };
  /** Fires: of a webhook, and two due instants in a row that have more before and behind them. */
  readonly fired: { readonly id: string; readonly sessionId: string };
  readonly instant: string;
}

export interface Plant {
  readonly checker: keyof typeof CHECKERS;
  readonly what: string;
  /** Part of the expected message. */
  readonly told: string | ((ground: Ground) => string);
  readonly plant: (ground: Ground) => Promise<Seen>;
}

/** All of them; a mount is root's to make. */
export const PLANTS: readonly Plant[] = [
  ...ROW_PLANTS,
  ...OUTSIDE_PLANTS,
  ...(process.getuid?.() === 0 ? MOUNT_PLANTS : []),
  LAST_PLANT,
];
