/** The times of a boot for the metrics: its outcome, and its steps as service and daemon saw them. */
import { DAEMON_STEPS } from "../domain/metrics.ts";
import type { MeasuresApi } from "../telemetry/port.ts";

/** A daemon's report is a sandbox's word, so any other name is left out. */
const MEASURED: ReadonlySet<string> = new Set(DAEMON_STEPS);

export interface BootTimes {
  readonly isReady: boolean;
  /** From the record of the sandbox to its place to boot, ms. */
  readonly waitedMs: number;
  /** Seconds. */
  readonly took: number;
  /** Seconds until the sandbox was created. Null: it was not. */
  readonly created: number | null;
  /** The daemon's steps, ms since it began. */
  readonly steps: readonly { readonly step: string; readonly at_ms: number }[];
}

/** Reports a boot that has ended. A step cannot have taken longer than its boot. */
export const reportBoot = (measures: MeasuresApi, times: BootTimes): void => {
  const { isReady, waitedMs, took, created, steps } = times;
  measures.observe("boot_seconds", { outcome: isReady ? "ready" : "failed" }, took);
  measures.observe("boot_step_seconds", { step: "place" }, Math.max(0, waitedMs) / 1000);
  if (created !== null) measures.observe("boot_step_seconds", { step: "created" }, created);
  for (const { step, at_ms: atMs } of steps) {
    if (MEASURED.has(step) && atMs <= took * 1000)
      measures.observe("boot_step_seconds", { step }, atMs / 1000);
  }
};
