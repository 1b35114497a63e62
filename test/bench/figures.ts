/** Medians, quantiles and rounding of a benchmark's figures, and its options that are numbers. */

/** The smallest value that at least this share of all values does not exceed. */
export const quantile = (values: readonly number[], share: number): number => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Two digits behind the point; of small values, three that count. */
export const rounded = (value: number): number =>
  Number(Math.abs(value) < 1 ? value.toPrecision(3) : value.toFixed(2));

/** All of them, beginning with another one each round. */
export const turned = <A>(all: readonly A[], by: number): readonly A[] => [
  ...all.slice(by % all.length),
  ...all.slice(0, by % all.length),
];

/** Reads an option of a benchmark that is a whole number from 1. @throws Error that names the option */
export const wholeFrom1 = (name: string, text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1`);
  return value;
};
