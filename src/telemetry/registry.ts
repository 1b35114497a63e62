/**
 * The metrics of this process: Effect's own, in a registry of their own, so that nothing else of Effect is among them. They
 * are written by Effect's exporter in Prometheus' text format.
 *
 *  R1 A series is made once and kept: an update costs one look into a map.
 *  R2 The number of series has a limit (domain/service/metrics.ts N2). Each label of a metric tells a number of values apart. Further
 *     ones, and those without the form of a label, count as `other`.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import { PrometheusMetrics } from "effect/observability";
import {
  COUNTERS,
  GAUGES,
  HISTOGRAMS,
  isLabelValue,
  METRICS,
  OTHER,
  SEEN_MAX,
  type LabelName,
  type MetricName,
} from "../domain/service/metrics.ts";
import type { MeasuresApi } from "./port.ts";

type Series = Metric.Metric<number, unknown>;
type Labels = Readonly<Partial<Record<LabelName, string>>>;

const PREFIX = "platform";
/** No value of a label has it. */
const SEPARATOR = "\n";

const isAmount = (value: number): boolean => Number.isFinite(value) && value >= 0;

/** A metric with the series that it has so far. */
class Family {
  readonly #labels: readonly LabelName[];
  readonly #make: (attributes: Readonly<Record<string, string>>) => Series;
  readonly #seen: readonly { readonly values: Set<string>; readonly most: number }[];
  readonly #series = new Map<string, Series>();

  constructor(labels: readonly LabelName[], make: (attributes: Readonly<Record<string, string>>) => Series) {
    this.#labels = labels;
    this.#make = make;
    this.#seen = labels.map((label) => ({ values: new Set(), most: SEEN_MAX[label] }));
  }

  series(labels: Labels): Series {
    const values = this.#labels.map((label, index) => this.#told(index, labels[label] ?? OTHER));
    const key = values.join(SEPARATOR);
    const cached = this.#series.get(key);
    if (cached !== undefined) return cached;
    const series = this.#make(
      Object.fromEntries(this.#labels.map((label, index) => [label, values[index] ?? OTHER])),
    );
    this.#series.set(key, series);
    return series;
  }

  /** R2. */
  #told(index: number, value: string): string {
    const limit = this.#seen[index];
    if (limit === undefined || limit.values.has(value)) return value;
    if (value === OTHER || limit.values.size >= limit.most || !isLabelValue(value)) return OTHER;
    limit.values.add(value);
    return value;
  }
}

const makeFamily = (name: MetricName): Family => {
  const { about: description, labels } = METRICS[name];
  return new Family(labels, (attributes) => {
    if (name in HISTOGRAMS) {
      const { buckets } = HISTOGRAMS[name as keyof typeof HISTOGRAMS];
      return Metric.histogram(name, { description, attributes, boundaries: buckets });
    }
    return name in COUNTERS
      ? Metric.counter(name, { description, attributes, incremental: true })
      : Metric.gauge(name, { description, attributes });
  });
};

/** Makes a series known to the registry without changing it. */
const begin = (family: Family, labels: Labels, context: Context.Context<never>): void => {
  family.series(labels).valueUnsafe(context);
};

export interface Registry extends MeasuresApi {
  /** Everything in Prometheus' text format, after the gauges were refreshed. */
  readonly text: Effect.Effect<string>;
}

export const makeRegistry = (): Registry => {
  const context = Context.make(Metric.MetricRegistry, new Map());
  const families = new Map<MetricName, Family>();
  let refresh: Effect.Effect<void> = Effect.void;
  const series = (name: MetricName, labels: Labels): Series => {
    const family = families.get(name) ?? makeFamily(name);
    families.set(name, family);
    return family.series(labels);
  };
  for (const name of [...Object.keys(HISTOGRAMS), ...Object.keys(COUNTERS), ...Object.keys(GAUGES)]) {
    const metric: { readonly labels: readonly LabelName[]; readonly first?: readonly (readonly string[])[] } =
      METRICS[name as MetricName];
    const family = makeFamily(name as MetricName);
    families.set(name as MetricName, family);
    for (const values of metric.first ?? [])
      begin(
        family,
        Object.fromEntries(metric.labels.map((label, i) => [label, values[i] ?? OTHER])),
        context,
      );
  }
  return {
    isOn: true,
    observe: (name, labels, value) => {
      if (isAmount(value)) series(name, labels).updateUnsafe(value, context);
    },
    count: (name, labels, by = 1) => {
      if (isAmount(by)) series(name, labels).updateUnsafe(by, context);
    },
    set: (name, labels, value) => {
      if (Number.isFinite(value)) series(name, labels).updateUnsafe(value, context);
    },
    beforeScrape: (next) => {
      refresh = next;
    },
    text: Effect.suspend(() => refresh).pipe(
      Effect.map(() => PrometheusMetrics.formatUnsafe(context, { prefix: PREFIX })),
    ),
  };
};
