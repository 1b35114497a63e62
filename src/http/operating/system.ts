/** Routes about the service itself: liveness, readiness, documentation (api.md 9). */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerResponse } from "effect/http";
import type { DutyName } from "../../services/duties.ts";
import { DutyRuns } from "../../services/duty.ts";
import { Scheduler } from "../../duties/scheduler.ts";
import { Pause } from "../../ground/pause.ts";
import { StoreHealth } from "../../store/ports/health.ts";
import { ThisNode } from "../limits.ts";

/** Whether the start is complete: migrations done, actors loaded. Set once by main. */
export class Readiness extends Context.Service<Readiness, { readonly started: () => boolean }>()(
  "platform/http/Readiness",
) {}

/** With less, the next push, image or segment of the database's log may not fit. */
const MIN_FREE_BYTES = 32 * 1024 ** 2;

interface Seen {
  readonly writes: boolean;
  readonly notifies: boolean;
  readonly isStarted: boolean;
  readonly isSchedulerLate: boolean;
  readonly lateDuties: readonly DutyName[];
  /** Their last round crashed, in whole or in part. A part alone does not make the service unready. */
  readonly failedDuties: readonly DutyName[];
  /** On the data directory's disk. Null if the system does not say. */
  readonly freeBytes: number | null;
  /** A restored copy is ready during its pause, and says so. */
  readonly isPaused: boolean;
}

/** The answer of `/readyz`. */
export const readiness = (state: Seen) => {
  const checks = {
    database: state.writes,
    notifications: state.notifies,
    started: state.isStarted,
    scheduler: !state.isSchedulerLate,
    duties: state.lateDuties.length === 0,
    disk: (state.freeBytes ?? Infinity) >= MIN_FREE_BYTES,
  };
  const isReady = Object.values(checks).every(Boolean);
  const status = isReady ? "ready" : "not_ready";
  const { lateDuties, failedDuties, isPaused } = state;
  return { status, checks, late_duties: lateDuties, failed_duties: failedDuties, paused: isPaused } as const;
};

/** It reads what heartbeats and duties have shown lately, and sends no statement. */
const ready = Effect.gen(function* () {
  const { periods, diskFreeBytes } = yield* ThisNode;
  const { late: isSchedulerLate } = yield* (yield* Scheduler).state;
  const duties = yield* DutyRuns;
  const answer = readiness({
    ...(yield* (yield* StoreHealth).state),
    isStarted: (yield* Readiness).started(),
    isSchedulerLate,
    lateDuties: duties.late(yield* Clock.currentTimeMillis, periods),
    failedDuties: duties.failed(),
    freeBytes: yield* diskFreeBytes,
    isPaused: (yield* Pause).isOn,
  });
  return HttpServerResponse.jsonUnsafe(answer, { status: answer.status === "ready" ? 200 : 503 });
});

export const systemRoutes = HttpRouter.addAll([
  HttpRouter.route("GET", "/healthz", Effect.succeed(HttpServerResponse.jsonUnsafe({ status: "alive" }))),
  HttpRouter.route("GET", "/readyz", ready),
]);
