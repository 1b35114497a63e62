/** `GET /metrics` (api.md 9): gauges of this process and its database for operators, in Prometheus' text format. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import { PrometheusMetrics } from "effect/observability";
import { BootPlaces } from "../services/boot-places.ts";
import { Directory } from "../services/directory.ts";
import { DUTY_NAMES } from "../duties/duties.ts";
import { DutyRuns } from "../duties/duty.ts";
import { Scheduler } from "../duties/scheduler.ts";
import { Outbound, OUTCOMES } from "../services/outbound.ts";
import { WebhookRecord } from "../services/webhook-record.ts";
import { OutboundDeliveries } from "../store/ports/outbound-deliveries.ts";
import { Identity } from "../store/ports/identity.ts";
import { ProjectUsage } from "../store/ports/project-usage.ts";
import { lackOf } from "./access.ts";
import { isApiError, notFound } from "./api/errors.ts";
import { answering } from "./handlers/answers.ts";
import { authenticator, forbidden } from "./authorize.ts";
import { requireOperatorAccount } from "./operator-account.ts";
import { apiErrorResponse } from "./respond.ts";

const set = (name: string, description: string, value: number) =>
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
  const lost = Metric.counter("webhook_refusals_dropped_total", {
    description: "Refused deliveries that were not recorded because too many arrived at once.",
    incremental: true,
  });
  yield* Metric.update(lost, dropped);
});

/** Requests to receivers of outbound webhooks since this process began, and what waits in the database. */
const showOutbound = Effect.fnUntraced(function* (now: number) {
  const counts = (yield* Outbound).counts();
  const requests = Metric.counter("outbound_requests_total", {
    description: "Requests to receivers of outbound webhooks since the process started, by outcome.",
    incremental: true,
  });
  for (const outcome of OUTCOMES)
    yield* Metric.update(Metric.withAttributes(requests, { outcome }), counts.get(outcome) ?? 0);
  const { count, oldestAt } = yield* (yield* OutboundDeliveries).waiting;
  yield* set("outbound_deliveries_waiting", "Deliveries to receivers of outbound webhooks that wait.", count);
  yield* set(
    "outbound_oldest_age_seconds",
    "Age of the oldest delivery to a receiver of an outbound webhook that waits, or 0.",
    oldestAt === null ? 0 : (now - oldestAt) / 1000,
  );
});

/** The last run of each background duty in this process (duties/duties.ts). One that has not run yet has no line but its failures. */
const showDuties = Effect.fnUntraced(function* () {
  const runs = yield* DutyRuns;
  const lastRun = Metric.gauge("duty_last_run_timestamp_seconds", {
    description: "When the last round of a background duty ended, in seconds since 1970.",
  });
  const duration = Metric.gauge("duty_last_run_duration_seconds", {
    description: "How long the last round of a background duty took.",
  });
  const failed = Metric.gauge("duty_last_run_failed", {
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
    yield* Metric.update(Metric.withAttributes(failed, { duty }), last.failed ? 1 : 0);
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

/** Accounts see their own sessions and queue. The scheduler and the receiver belong to the whole service. */
const gauges = Effect.fnUntraced(function* (accountId: string) {
  const account = yield* (yield* Identity).account(accountId);
  if (account === null) return yield* notFound("account");
  const { tickedAt, late, scheduled } = yield* (yield* Scheduler).state;
  const now = yield* Clock.currentTimeMillis;
  const all = [...(yield* Directory).all()];
  const stale = all.filter(({ project, manifest }) => project.status === "active" && manifest.stale);
  yield* set(
    "scheduler_late",
    "1 if the scheduler has not run for two intervals, otherwise 0.",
    late ? 1 : 0,
  );
  yield* set(
    "scheduler_last_tick_age_seconds",
    "Time since the scheduler last ran, or -1 before its first run.",
    tickedAt === null ? -1 : (now - tickedAt) / 1000,
  );
  yield* set("scheduler_cron_triggers", "Number of scheduled cron triggers.", scheduled);
  yield* set("manifests_stale", "Active projects whose newest manifest cannot be read.", stale.length);
  const { booting, waiting } = (yield* BootPlaces).state();
  yield* set("sandboxes_booting", "Sandboxes that are booting on this node.", booting);
  yield* set("sandboxes_waiting", "Sandboxes that wait on this node to boot.", waiting);
  yield* set(
    "sessions_active",
    "Sessions of the account that are provisioning or running.",
    account.activeSessions,
  );
  yield* set("sessions_cap", "Maximum number of live sessions of the account.", account.sessionCap);
  yield* set("fires_queued", "Queued fires of the account.", account.queuedFires);
  yield* countUsage(accountId);
  yield* countWebhooks();
  yield* showOutbound(now);
  yield* showDuties();
  return yield* PrometheusMetrics.format({ prefix: "platform" });
});

const expose = Effect.gen(function* () {
  const authenticate = yield* authenticator;
  const caller = yield* authenticate(yield* HttpServerRequest.HttpServerRequest);
  const lack = lackOf(caller, "operate_service");
  if (lack !== null) return yield* forbidden(caller, lack);
  yield* requireOperatorAccount(caller);
  // A registry for each request, so that two concurrent scrapes do not overwrite each other.
  const text = yield* Effect.provideService(gauges(caller.accountId), Metric.MetricRegistry, new Map());
  return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" });
});

export const metricsRoute = HttpRouter.add(
  "GET",
  "/metrics",
  answering(expose).pipe(
    Effect.catch((error) =>
      isApiError(error) ? Effect.succeed(apiErrorResponse(error)) : Effect.die(error),
    ),
  ),
);
