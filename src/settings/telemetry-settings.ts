/** Settings of what an operator watches. */
import { define } from "./setting.ts";

export const TELEMETRY_SETTINGS = define({
  PLATFORM_METRICS_PORT: {
    group: "Monitoring",
    kind: "integer",
    fallback: null,
    min: 0,
    max: 65_535,
    shown: "off",
    about:
      "Loopback port on which a Prometheus on this machine reads the [metrics](monitoring.md) of this node at `/metrics`, without a token.",
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    group: "Monitoring",
    kind: "url",
    fallback: null,
    shown: "off",
    about:
      "The base address of a collector that takes OTLP over HTTP. [Traces](monitoring.md#traces) of sessions go to `/v1/traces` below it, as JSON.",
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    group: "Monitoring",
    kind: "structured",
    fallback: null,
    expects: "`name=value` pairs, separated by commas, with percent escapes in values",
    shown: "none",
    about: "Headers of requests to the collector, for example its credential.",
  },
  OTEL_SERVICE_NAME: {
    group: "Monitoring",
    kind: "text",
    fallback: "platform",
    about: "The service's name in traces.",
  },
});
