/** Medians, quantiles and rounding. */

/** The smallest value that at least this share of all values does not exceed. */
export const quantile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Two digits behind the point; of small values, three that count. */
export const rounded = (value: number): number =>
  Number(Math.abs(value) < 1 ? value.toPrecision(3) : value.toFixed(2));
