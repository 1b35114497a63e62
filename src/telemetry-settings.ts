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
});
