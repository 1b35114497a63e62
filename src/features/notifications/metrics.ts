/** What `GET /metrics` says about outbound webhooks. */
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import { setGauge } from "../../http/operating/metrics.ts";
import { Outbound, OUTCOMES } from "./outbound.ts";
import { OutboundDeliveries } from "./ports/outbound-deliveries.ts";

/** Requests to receivers of outbound webhooks since this process began, and what waits in the database. */
export const showOutbound = Effect.fnUntraced(function* (now: number) {
  const counts = (yield* Outbound).counts();
  const requests = Metric.counter("outbound_requests_total", {
    description: "Requests to receivers of outbound webhooks since the process started, by outcome.",
    incremental: true,
  });
  for (const outcome of OUTCOMES)
    yield* Metric.update(Metric.withAttributes(requests, { outcome }), counts.get(outcome) ?? 0);
  const { count, oldestAt } = yield* (yield* OutboundDeliveries).waiting;
  yield* setGauge(
    "outbound_deliveries_waiting",
    "Deliveries to receivers of outbound webhooks that wait.",
    count,
  );
  yield* setGauge(
    "outbound_oldest_age_seconds",
    "Age of the oldest delivery to a receiver of an outbound webhook that waits, or 0.",
    oldestAt === null ? 0 : (now - oldestAt) / 1000,
  );
});
