/**
 * The gauges of the metrics: what waits, and what is at work. They are set before each scrape.
 *
 *  Q1 The database is asked at most once in `PERIOD_MS`, however often and by how many the metrics are scraped.
 *  Q2 A scrape waits for the database for `PATIENCE` at most. Without an answer the last figures stay, ages grow, and
 *     `database_up` is 0.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { Scheduler } from "../../duties/scheduler.ts";
import { Operations, type Watch } from "../../store/ports/operations.ts";
import { ThisNode } from "../limits.ts";
import { DutyRuns } from "../../services/duty.ts";
import { Measures } from "../../telemetry/port.ts";
import { BootPlaces } from "../../services/sessions/boot-places.ts";

/** Q1. */
const PERIOD_MS = 5_000;
/** Q2. Prometheus waits 10 s for a scrape. */
const PATIENCE = "2 seconds";

const secondsSince = (at: number | null, now: number): number =>
  at === null ? 0 : Math.max(0, now - at) / 1000;

/** Sets the gauges before each scrape, as long as the service runs. Nothing is read while nothing is measured. */
export const watchGauges = Effect.gen(function* () {
  const measures = yield* Measures;
  if (!measures.isOn) return;
  const { watch } = yield* Operations;
  const places = yield* BootPlaces;
  const { state: scheduler } = yield* Scheduler;
  const { diskFreeBytes } = yield* ThisNode;
  const runs = yield* DutyRuns;
  let last: { readonly at: number; readonly watch: Watch | null; readonly isUp: boolean } | null = null;

  const look = Effect.fnUntraced(function* (now: number) {
    if (last !== null && now - last.at < PERIOD_MS) return;
    const former = last?.watch ?? null;
    // Scrapes that come meanwhile show the figures from before.
    last = { at: now, watch: former, isUp: last?.isUp ?? false };
    const read = yield* Effect.option(Effect.timeout(watch, PATIENCE));
    const isUp = read._tag === "Some";
    if (!isUp) measures.count("metrics_refresh_failures_total", {});
    last = { at: now, watch: isUp ? read.value : former, isUp };
  });
  const show = (state: Watch, now: number): void => {
    measures.set("oldest_fire_age_seconds", {}, secondsSince(state.oldestFireAt, now));
    measures.set("oldest_command_age_seconds", {}, secondsSince(state.oldestCommandAt, now));
    measures.set("oldest_delivery_age_seconds", {}, secondsSince(state.oldestDeliveryAt, now));
    measures.set("oldest_request_age_seconds", {}, secondsSince(state.oldestRequestAt, now));
    measures.set("sessions_unsaved", {}, state.unsaved);
    for (const [status, count] of state.sessions) measures.set("sessions", { status }, count);
  };
  const refresh = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis;
    yield* look(now);
    if (last?.watch) show(last.watch, now);
    measures.set("database_up", {}, last?.isUp === true ? 1 : 0);
    const { booting, waiting } = places.state();
    measures.set("sandboxes_booting", {}, booting);
    measures.set("sandboxes_waiting", {}, waiting);
    measures.set("scheduler_late", {}, (yield* scheduler).late ? 1 : 0);
    measures.set("duties_failed", {}, runs.failed().length);
    const freeBytes = yield* diskFreeBytes;
    if (freeBytes !== null) measures.set("data_disk_free_bytes", {}, freeBytes);
    const { user, system } = process.cpuUsage();
    measures.set("process_cpu_seconds", {}, (user + system) / 1e6);
    measures.set("process_memory_bytes", {}, process.memoryUsage.rss());
  });
  // A scrape comes from outside of the service, but reads with its logger and its clock.
  measures.beforeScrape(Effect.provideContext(refresh, yield* Effect.context<never>()));
});
