/** The definitions of the metrics. */
import { describe, expect, it } from "vitest";
import {
  COUNTERS,
  GAUGES,
  HISTOGRAMS,
  isLabelValue,
  METRICS,
  statusClass,
} from "../../../src/domain/service/metrics.ts";

describe("the definitions", () => {
  it("name each metric once, with its unit, and with labels that never are ids", () => {
    const kinds = [HISTOGRAMS, COUNTERS, GAUGES].flatMap((group) => Object.keys(group));
    expect(new Set(kinds).size).toBe(kinds.length);
    for (const name of Object.keys(COUNTERS)) expect(name).toMatch(/_total$/);
    for (const name of Object.keys(HISTOGRAMS)) expect(name).toMatch(/_seconds$/);
    const labels = Object.values(METRICS).flatMap((metric): readonly string[] => metric.labels);
    expect(labels.filter((label) => /id$|name|path|url|project|session|user/.test(label))).toEqual([]);
  });

  it("begin only series whose values have the form of a label", () => {
    for (const metric of Object.values<{
      readonly labels: readonly string[];
      readonly first?: readonly (readonly string[])[];
    }>(METRICS))
      for (const values of metric.first ?? []) {
        expect(values).toHaveLength(metric.labels.length);
        expect(values.filter((value) => !isLabelValue(value))).toEqual([]);
      }
  });
});

it("a status has a class", () => {
  expect([200, 302, 404, 503].map(statusClass)).toEqual(["2xx", "3xx", "4xx", "5xx"]);
});
