import * as fc from "fast-check";
import * as Result from "effect/Result";
import { nextInstant, parseCron } from "../../src/domain/cron.ts";
import { bruteForceNext, makeEdge, offsetChanges, oracleFields, textOf } from "./cron-oracle.ts";
import type { Edge, OracleFields } from "./cron-oracle.ts";

export interface OracleRun {
  readonly compared: number;
  /** Pairs for which the window held no due instant, so that only its emptiness was compared. */
  readonly empty: number;
  readonly differences: readonly string[];
}

const DAY_MS = 86_400_000;
const PAIRS_AN_EDGE = 50;

/**
 * Compares `pairs` draws of (expression, zone, instant) around offset changes of the given zones with the oracle.
 * The same seed draws the same pairs.
 */
export const compareWithOracle = (options: {
  readonly pairs: number;
  readonly seed: number;
  readonly zones: readonly string[];
  readonly years: { readonly from: number; readonly to: number };
}): OracleRun => {
  const changes = options.zones.flatMap((zone) =>
    offsetChanges(zone, options.years).map((changeMs) => ({ zone, changeMs })),
  );
  const edgeCount = Math.ceil(options.pairs / PAIRS_AN_EDGE);
  const edges = fc.sample(fc.constantFrom(...changes), { numRuns: edgeCount, seed: options.seed });
  const differences: string[] = [];
  let [compared, empty] = [0, 0];
  for (const [index, { zone, changeMs }] of edges.entries()) {
    const edge = makeEdge(zone, changeMs);
    // Just before and after the change as well as days away, to the second.
    const after = fc.oneof(
      fc.integer({ min: -2 * 3_600, max: 2 * 3_600 }),
      fc.integer({ min: (-2 * DAY_MS) / 1000, max: (2 * DAY_MS) / 1000 }),
    );
    const draws = fc.sample(fc.tuple(oracleFields, after), {
      numRuns: PAIRS_AN_EDGE,
      seed: options.seed + index,
    });
    for (const [fields, seconds] of draws) {
      if (compared === options.pairs) break;
      compared += 1;
      const difference = compare(fields, edge, changeMs + seconds * 1000);
      if (difference === "empty") empty += 1;
      else if (difference !== null) differences.push(difference);
    }
  }
  return { compared, empty, differences };
};

const show = (atMs: number | null): string => (atMs === null ? "nothing" : new Date(atMs).toISOString());

const compare = (fields: OracleFields, edge: Edge, afterMs: number): string | "empty" | null => {
  const expected = bruteForceNext(fields, edge, afterMs);
  const schedule = parseCron(textOf(fields));
  if (Result.isFailure(schedule)) {
    return expected === null ? "empty" : `"${textOf(fields)}" was refused: ${schedule.failure}`;
  }
  const next = nextInstant(schedule.success, edge.zone, afterMs);
  // A fixed time just before the window's end may move behind it: there the oracle sees nothing.
  const seen = next !== null && next < edge.toMs ? next : null;
  if (seen === expected) return expected === null ? "empty" : null;
  return `"${textOf(fields)}" in ${edge.zone} after ${show(afterMs)}: ${show(seen)}, expected ${show(expected)}`;
};
