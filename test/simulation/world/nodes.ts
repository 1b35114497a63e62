/** The machines on which a simulated service runs. */
import type * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { makeReceive } from "../../../src/http/webhooks/webhooks.ts";
import { numbered } from "../../support/world/world.ts";
import type { Random } from "../random.ts";
import { BEGINNING } from "../oracles/settled.ts";
import { Process, WallClock, type SimulatedTime } from "../time.ts";
import type { Services } from "../world.ts";

/** By a seed's remainder: most worlds have one node, as most installations do. */
const NODE_COUNTS = [1, 1, 2, 1, 1, 2, 1, 2, 3, 1] as const;
/** By the same remainder: worlds whose actors have places. */
const PLACED: ReadonlySet<number> = new Set([5, 8]);
/** Nodes' clocks are up to so far apart from the first one's, ms (threats.md "Faults": nodes 5 min apart). */
const SKEW_MAX_MS = 5 * 60_000;

/** A life of the service that has started. */
export interface Life {
  readonly context: Context.Context<Services>;
  readonly receive: Effect.Success<typeof makeReceive>;
}

/** A machine that the service runs on. */
export interface Node {
  readonly id: string;
  readonly wall: WallClock;
  process: Process;
  /** null: it does not respond yet, or any more. */
  life: Life | null;
  /** When it is started again, or thawed, in ms of `elapsed`. */
  backAt: number;
}

/** Whether the actors of this seed's world have places. */
export const isPlaced = (seed: number): boolean => PLACED.has(seed % NODE_COUNTS.length);

/** The machines of this seed's world, each of them still off. */
export const nodesOf = (
  seed: number,
  { time, random }: { readonly time: SimulatedTime; readonly random: Random },
): readonly Node[] => {
  const count = NODE_COUNTS[seed % NODE_COUNTS.length] ?? 1;
  return Array.from({ length: count }, (_, index) => {
    const skew = index === 0 ? 0 : random.between(-SKEW_MAX_MS, SKEW_MAX_MS);
    const wall = new WallClock(time, BEGINNING + skew);
    const process = new Process(time, wall);
    process.isDead = true;
    return { id: numbered(90 + index), wall, process, life: null, backAt: 0 };
  });
};
