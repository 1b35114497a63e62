/** Figures of several rounds. */
const rounded = (value: number): number => Math.round(value * 100) / 100;

/** The value below which this part of the sorted values is. */
export const quantile = (values: readonly number[], part: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
};

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
