/**
 * The ports to the service's metrics (domain/service/metrics.ts) and traces (domain/service/span.ts). The part of the service that does the work reports it here. The default is silent: a
 * service without PLATFORM_METRICS_PORT pays one call. The adapter is telemetry/registry.ts.
 *
 *  T1 Reporting never fails and never waits.
 *  T2 No value of a label is an id or a text of a person, an agent or a sender (domain/service/metrics.ts N1).
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type { SpanReport } from "../domain/service/span.ts";
import type { CounterName, GaugeName, HistogramName, LabelsOf } from "../domain/service/metrics.ts";

export interface MeasuresApi {
  /** False: nothing is kept, and callers need not take the time. */
  readonly isOn: boolean;
  /** @param seconds anything but a number from 0 on is left out */
  readonly observe: <Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number) => void;
  /** @param by anything but a number from 0 on is left out */
  readonly count: <Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number) => void;
  readonly set: <Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number) => void;
  /** Runs before each scrape, to set gauges. The last caller's counts. It must not fail, and must end soon. */
  readonly beforeScrape: (refresh: Effect.Effect<void>) => void;
}

const nothing = (): void => undefined;
export const NO_MEASURES: MeasuresApi = {
  isOn: false,
  observe: nothing,
  count: nothing,
  set: nothing,
  beforeScrape: nothing,
};

export interface TracesApi {
  /** False: nothing is sent, and callers need not make a span. */
  readonly isOn: boolean;
  /** Takes a span that has ended. Never fails, never waits. */
  readonly span: (span: SpanReport) => void;
}

/** Silent unless a layer provides it. The adapter is telemetry/otlp.ts. */
export const Traces = Context.Reference<TracesApi>("platform/telemetry/Traces", {
  defaultValue: () => ({ isOn: false, span: nothing }),
});

/** Silent unless a layer provides it. */
export const Measures = Context.Reference<MeasuresApi>("platform/telemetry/Measures", {
  defaultValue: () => NO_MEASURES,
});

/** Monotonic time in seconds, for differences in figures. Nothing is decided by it, so it is not the clock of tests. */
export const seconds = (): number => performance.now() / 1000;

/** The same as ms since the epoch. */
export const nowMs = (): number => performance.timeOrigin + performance.now();

/** Measures how long an effect takes, however it ends. Interrupted ones are left out. */
export const measure = <A, E, R>(
  measures: MeasuresApi,
  work: Effect.Effect<A, E, R>,
  note: (durationSeconds: number, exit: Exit.Exit<A, E>) => void,
): Effect.Effect<A, E, R> =>
  measures.isOn
    ? Effect.suspend(() => {
        const since = seconds();
        return Effect.onExit(work, (exit) =>
          Effect.sync(() => {
            if (!Exit.hasInterrupts(exit)) note(seconds() - since, exit);
          }),
        );
      })
    : work;
