/** Figures of several rounds. */
import { quantile, rounded } from "../figures.ts";

/** One round's latencies, in ms. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  /** How many tokens were seen, of how many that were written to all readers. */
  readonly seen: number;
  readonly written: number;
}

export const latenciesOf = (ms: readonly number[], written: number): Latencies => ({
  p50: rounded(quantile(ms, 0.5)),
  p99: rounded(quantile(ms, 0.99)),
  seen: ms.length,
  written,
});

/** Smallest, median and largest of the rounds. */
export type Spread = readonly [min: number, median: number, max: number];

export const spread = (values: readonly number[]): Spread => [
  rounded(Math.min(...values)),
  rounded(quantile(values, 0.5)),
  rounded(Math.max(...values)),
];

export const told = ([min, median, max]: Spread): string => `${median} (${min} to ${max})`;
