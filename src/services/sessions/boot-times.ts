/** The times of a boot for the metrics: its outcome, and its steps as service and daemon saw them. */
import { DAEMON_STEPS } from "../../domain/service/metrics.ts";
import { ROOT, type SpanName } from "../../domain/service/span.ts";
import type { MeasuresApi, TracesApi } from "../../telemetry/port.ts";

/** A daemon's report is a sandbox's word, so any other name is left out. */
const MEASURED: ReadonlySet<string> = new Set(DAEMON_STEPS);

export interface BootTimes {
  readonly isReady: boolean;
  /** From the record of the sandbox to its place to boot, ms. */
  readonly waitedMs: number;
  /** Seconds. */
  readonly took: number;
  /** Seconds until the sandbox was created. Null if it was not. */
  readonly created: number | null;
  /** The daemon's steps, ms since it began. */
  readonly steps: readonly { readonly step: string; readonly at_ms: number }[];
}

/** The spans of a boot that has ended: its place, its creation, and the daemon's steps since it began. */
export const traceBoot = (
  traces: TracesApi,
  {
    sessionId,
    sandboxId,
    from,
  }: { readonly sessionId: string; readonly sandboxId: string; readonly from: number },
  { isReady, waitedMs, took, created, steps }: BootTimes,
): void => {
  if (!traces.isOn) return;
  const boot = `boot/${sandboxId}`;
  const span = (name: SpanName, key: string, times: { from: number; to: number; step?: string }): void => {
    const { step, ...between } = times;
    const attributes = step === undefined ? {} : { step };
    traces.span({
      name,
      sessionId,
      key: `${boot}/${key}`,
      parent: boot,
      ...between,
      failed: false,
      attributes,
    });
  };
  const outcome = isReady ? "ready" : "failed";
  const whole = { from: from - Math.max(0, waitedMs), to: from + took * 1000 };
  traces.span({
    name: "boot",
    sessionId,
    key: boot,
    parent: ROOT,
    ...whole,
    failed: !isReady,
    attributes: { outcome },
  });
  span("boot.place", "place", { from: whole.from, to: from });
  if (created === null) return;
  const began = from + created * 1000;
  span("boot.created", "created", { from, to: began });
  for (const { step, at_ms: atMs } of steps)
    if (MEASURED.has(step) && atMs >= 0 && atMs <= took * 1000)
      span("boot.daemon", step, { from: began, to: Math.min(began + atMs, whole.to), step });
};

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
