/** `GET /metrics` (api.md 9): gauges of this process and its database for operators, in Prometheus' text format. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import { PrometheusMetrics } from "effect/observability";
import { BootPlaces } from "../../services/sessions/boot-places.ts";
import { Directory } from "../../services/directory.ts";
import { DUTY_NAMES } from "../../services/duties.ts";
import { DutyRuns } from "../../services/duty.ts";
import { Scheduler } from "../../duties/scheduler.ts";
import { WebhookRecord } from "../../services/triggers/webhook-record.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { ProjectUsage } from "../../store/ports/projects/project-usage.ts";
import { findLack } from "../callers/access.ts";
import { isApiError, notFound } from "../api/errors.ts";
import { withApiErrors } from "../steps/answers.ts";
import { authenticator, forbidden } from "../callers/authorize.ts";
import { requireOperatorAccount } from "../callers/operator-account.ts";
import { apiErrorResponse } from "../answers/respond.ts";

/** Sets one gauge of the scrape. */
export const setGauge = (name: string, description: string, value: number) =>
  Metric.update(Metric.gauge(name, { description }), value);

/** The webhook receiver's answers since this process began. */
const countWebhooks = Effect.fnUntraced(function* () {
  const { answers, dropped } = (yield* WebhookRecord).counts();
  const webhooks = Metric.counter("webhooks_total", {
    description: "Webhook deliveries since the process started, by result.",
    incremental: true,
  });
  for (const { status, answer, count } of answers) {
    yield* Metric.update(Metric.withAttributes(webhooks, { status: String(status), answer }), count);
  }
  const refusalsDropped = Metric.counter("webhook_refusals_dropped_total", {
    description: "Refused deliveries that were not recorded because too many arrived at once.",
    incremental: true,
  });
  yield* Metric.update(refusalsDropped, dropped);
});

/** The last run of each background duty in this process (services/duties.ts). One that has not run yet has no line but its failures. */
const showDuties = Effect.fnUntraced(function* () {
  const runs = yield* DutyRuns;
  const lastRun = Metric.gauge("duty_last_run_timestamp_seconds", {
    description: "When the last round of a background duty ended, in seconds since 1970.",
  });
  const duration = Metric.gauge("duty_last_run_duration_seconds", {
    description: "How long the last round of a background duty took.",
  });
  const dutyFailed = Metric.gauge("duty_last_run_failed", {
    description: "1 if the last round of a background duty or a part of it crashed, else 0.",
  });
  const failures = Metric.counter("duty_failures_total", {
    description: "Crashes in rounds of a background duty since the start of this process.",
    incremental: true,
  });
  for (const duty of DUTY_NAMES) {
    yield* Metric.update(Metric.withAttributes(failures, { duty }), runs.failures(duty));
    const last = runs.lastRun(duty);
    if (last === null) continue;
    yield* Metric.update(Metric.withAttributes(lastRun, { duty }), last.endedAt / 1000);
    yield* Metric.update(Metric.withAttributes(duration, { duty }), last.tookMs / 1000);
    yield* Metric.update(Metric.withAttributes(dutyFailed, { duty }), last.failed ? 1 : 0);
  }
});

const KINDS = { input: "input_tokens", output: "output_tokens", cached: "cached_tokens" } as const;

/** What the agents of the account's projects used. The sums come from the database, so that every node tells the same. */
const countUsage = Effect.fnUntraced(function* (accountId: string) {
  const tokens = Metric.counter("agent_tokens_total", {
    description: "Tokens that the agents of a project used, by kind.",
    incremental: true,
  });
  const cost = Metric.counter("agent_cost_usd_total", {
    description: "Cost of the models that the agents of a project used, in US dollars.",
    incremental: true,
  });
  for (const { projectId: project, usage } of yield* (yield* ProjectUsage).totals(accountId)) {
    for (const [kind, name] of Object.entries(KINDS))
      yield* Metric.update(Metric.withAttributes(tokens, { project, kind }), usage[name]);
    yield* Metric.update(Metric.withAttributes(cost, { project }), usage.cost_usd);
  }
});

/** What the features add to a scrape at this instant. */
export type FeatureMetrics<R> = (now: number) => Effect.Effect<void, StoreError, R>;

/** Accounts see their own sessions and queue. The scheduler and the receiver belong to the whole service. */
const gauges = Effect.fnUntraced(function* <R>(accountId: string, features: FeatureMetrics<R>) {
  const account = yield* (yield* Identity).account(accountId);
  if (account === null) return yield* notFound("account");
  const { tickedAt, late, scheduled } = yield* (yield* Scheduler).state;
  const now = yield* Clock.currentTimeMillis;
  const all = [...(yield* Directory).all()];
  const stale = all.filter(({ project, manifest }) => project.status === "active" && manifest.stale);
  yield* setGauge(
    "scheduler_late",
    "1 if the scheduler has not run for two intervals, otherwise 0.",
    late ? 1 : 0,
  );
  yield* setGauge(
    "scheduler_last_tick_age_seconds",
    "Time since the scheduler last ran, or -1 before its first run.",
    tickedAt === null ? -1 : (now - tickedAt) / 1000,
  );
  yield* setGauge("scheduler_cron_triggers", "Number of scheduled cron triggers.", scheduled);
  yield* setGauge("manifests_stale", "Active projects whose newest manifest cannot be read.", stale.length);
  const { booting, waiting } = (yield* BootPlaces).state();
  yield* setGauge("sandboxes_booting", "Sandboxes that are booting on this node.", booting);
  yield* setGauge("sandboxes_waiting", "Sandboxes that wait on this node to boot.", waiting);
  yield* setGauge(
    "sessions_active",
    "Sessions of the account that are provisioning or running.",
    account.activeSessions,
  );
  yield* setGauge("sessions_cap", "Maximum number of live sessions of the account.", account.sessionCap);
  yield* setGauge("fires_queued", "Queued fires of the account.", account.queuedFires);
  yield* countUsage(accountId);
  yield* countWebhooks();
  yield* features(now);
  yield* showDuties();
  return yield* PrometheusMetrics.format({ prefix: "platform" });
});

const expose = Effect.fnUntraced(function* <R>(features: FeatureMetrics<R>) {
  const authenticate = yield* authenticator;
  const caller = yield* authenticate(yield* HttpServerRequest.HttpServerRequest);
  const lack = findLack(caller, "operate_service");
  if (lack !== null) return yield* forbidden(caller, lack);
  yield* requireOperatorAccount(caller);
  // A registry for each request, so that two concurrent scrapes do not overwrite each other.
  const text = yield* Effect.provideService(
    gauges(caller.accountId, features),
    Metric.MetricRegistry,
    new Map(),
  );
  return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" });
});

export const metricsRoute = <R>(features: FeatureMetrics<R>) =>
  HttpRouter.add(
    "GET",
    "/metrics",
    withApiErrors(expose(features)).pipe(
      Effect.catch((error) =>
        isApiError(error) ? Effect.succeed(apiErrorResponse(error)) : Effect.die(error),
      ),
    ),
  );
