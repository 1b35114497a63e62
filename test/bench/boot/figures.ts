/** Medians and quantiles of times, in whole ms. */
import { median, quantile } from "../figures.ts";

/** With fewer values than this, the 95th percentile is the largest one. */
export const P95_LEAST = 20;

export const middle = (values: readonly number[]): number => Math.round(median(values));
export const p95 = (values: readonly number[]): number => Math.round(quantile(values, 0.95));

/** Null without values. */
export const spreadOf = (values: readonly number[]) =>
  values.length === 0 ? null : { count: values.length, p50: middle(values), p95: p95(values) };
export type Spread = ReturnType<typeof spreadOf>;

export const told = (spread: Spread): string =>
  spread === null ? "none" : `${spread.count}, p50 ${spread.p50} ms, p95 ${spread.p95} ms`;

/** In MiB. */
export const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
