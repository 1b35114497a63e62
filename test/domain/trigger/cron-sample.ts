import * as fc from "fast-check";
import * as Result from "effect/Result";
import { nextInstant, parseCron } from "../../../src/domain/trigger/cron.ts";
import { isZoneName, zoneNames } from "../../../src/domain/trigger/zone.ts";
import { bruteForceNext, makeEdge, offsetChanges, oracleFields, textOf } from "./cron-oracle.ts";
import type { Edge, OffsetChange, OracleFields } from "./cron-oracle.ts";

export interface OracleRun {
  readonly compared: number;
  /** Pairs for which the window held no due instant, so that only its emptiness was compared. */
  readonly empty: number;
  readonly differences: readonly string[];
}

/** Days on which a whole day was left out lie outside the years that are looked at: they come on top. */
const DAY_LONG = [
  { zone: "Pacific/Apia", from: 2011, to: 2012 },
  { zone: "Pacific/Fakaofo", from: 2011, to: 2012 },
  { zone: "Pacific/Kwajalein", from: 1993, to: 1994 },
];

/** The years of the long run. */
const YEARS = { from: 2020, to: 2040 };

/**
 * Every change of offset in these years of every zone that a trigger may name, links included, and the day-long ones.
 *
 * @param stepDays how often a clock is looked at; a change that is reversed within fewer days is not seen.
 */
export const allChanges = (stepDays: number, years = YEARS): readonly OffsetChange[] => [
  ...[...zoneNames].filter(isZoneName).flatMap((zone) => offsetChanges(zone, { ...years, stepDays })),
  ...DAY_LONG.flatMap(({ zone, ...span }) => offsetChanges(zone, { ...span, stepDays })),
];

const DAY_S = 86_400;
const DRAWS_A_BATCH = 1000;

/** Draws of expression and seconds since a change, without end: just before and after it as well as days away. */
function* drawFrom(seed: number): Generator<readonly [OracleFields, number]> {
  const seconds = fc.oneof(
    fc.integer({ min: -2 * 3_600, max: 2 * 3_600 }),
    fc.integer({ min: -2 * DAY_S, max: 2 * DAY_S }),
  );
  for (let batch = 0; ; batch += 1) {
    yield* fc.sample(fc.tuple(oracleFields, seconds), { numRuns: DRAWS_A_BATCH, seed: seed + batch });
  }
}

/**
 * Compares `pairs` draws of (expression, instant) with the oracle, shared out evenly among all the changes given: each
 * is drawn for, where there are as many pairs as changes. The same seed draws the same pairs.
 */
export const compareWithOracle = (options: {
  readonly pairs: number;
  readonly seed: number;
  readonly changes: readonly OffsetChange[];
}): OracleRun => {
  const draws = drawFrom(options.seed);
  const differences: string[] = [];
  let [compared, empty, sharesLeft] = [0, 0, options.changes.length];
  for (const changes of Map.groupBy(options.changes, ({ edgeKey }) => edgeKey).values()) {
    const [{ zone, atMs } = { zone: "", atMs: 0 }] = changes;
    const edge = makeEdge(zone, atMs);
    for (const change of changes) {
      let share = Math.ceil((options.pairs - compared) / sharesLeft);
      sharesLeft -= 1;
      for (; share > 0; share -= 1) {
        const [fields, seconds] = draws.next().value;
        compared += 1;
        const difference = compare(fields, edge, {
          zone: change.zone,
          afterMs: change.atMs + seconds * 1000,
        });
        if (difference === "empty") empty += 1;
        else if (difference !== null) differences.push(difference);
      }
    }
  }
  return { compared, empty, differences };
};

const show = (atMs: number | null): string => (atMs === null ? "nothing" : new Date(atMs).toISOString());

const compare = (
  fields: OracleFields,
  edge: Edge,
  { zone, afterMs }: { readonly zone: string; readonly afterMs: number },
): string | "empty" | null => {
  const expected = bruteForceNext(fields, edge, afterMs);
  const schedule = parseCron(textOf(fields));
  if (Result.isFailure(schedule)) {
    return expected === null ? "empty" : `"${textOf(fields)}" was refused: ${schedule.failure}`;
  }
  const next = nextInstant(schedule.success, zone, afterMs);
  // A fixed time just before the window's end may move behind it: there the oracle sees nothing.
  const seen = next !== null && next < edge.toMs ? next : null;
  if (seen === expected) return expected === null ? "empty" : null;
  return `"${textOf(fields)}" in ${zone} after ${show(afterMs)}: ${show(seen)}, expected ${show(expected)}`;
};
