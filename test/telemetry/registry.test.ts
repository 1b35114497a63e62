/** The metrics' registry: what hostile names can do to it, and what it leaves out. */
import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { SEEN_MAX, SERIES_MAX } from "../../src/domain/service/metrics.ts";
import { makeRegistry } from "../../src/telemetry/registry.ts";

const textOf = (registry: ReturnType<typeof makeRegistry>): string => Effect.runSync(registry.text);
const samples = (text: string): readonly string[] =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

const hostile = (index: number): string => `evil-${index}`;

describe("the number of series", () => {
  it("has a limit, whatever callers, agents and models are called [L01]", () => {
    const registry = makeRegistry();
    for (let index = 0; index < 5_000; index += 1) {
      const [name, status] = [hostile(index), hostile(index % 100)];
      registry.count("model_tokens_total", { model: name, kind: status });
      registry.count("session_failures_total", { code: name });
      registry.count("webhooks_total", { status, answer: name });
      registry.count("sign_ins_total", { provider: name, outcome: name });
      registry.observe("http_request_seconds", { route: name, status }, 1);
      registry.observe("tool_call_seconds", { kind: name, outcome: name }, 1);
    }
    const count = samples(textOf(registry)).length;
    expect(count).toBeGreaterThan(1_000);
    expect(count).toBeLessThanOrEqual(SERIES_MAX);
    expect(SERIES_MAX).toBeLessThan(60_000);
  });

  it("counts the models beyond the first ones as one", () => {
    const registry = makeRegistry();
    for (let index = 0; index < SEEN_MAX.model + 7; index += 1)
      registry.count("model_cost_usd_total", { model: `lab/model-${index}` }, 2);
    const text = textOf(registry);
    expect(text).toContain('platform_model_cost_usd_total{model="lab/model-0"} 2');
    expect(text).toContain('platform_model_cost_usd_total{model="other"} 14');
  });

  it("takes no value that is long, or not made of the characters of names [L01]", () => {
    const registry = makeRegistry();
    for (const model of ['a"} 1\nplatform_forged 1', "", "x".repeat(200), "\u0000", "ünï", "-dash"])
      registry.count("model_cost_usd_total", { model });
    const text = textOf(registry);
    expect(text).toContain('platform_model_cost_usd_total{model="other"} 6');
    expect(text).not.toContain("forged");
  });

  it("leaves out figures that are no amounts", () => {
    const registry = makeRegistry();
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      registry.observe("turn_seconds", {}, wrong);
      registry.count("metrics_refresh_failures_total", {}, wrong);
    }
    expect(textOf(registry)).toMatch(/^platform_turn_seconds_count 0$/m);
    expect(textOf(registry)).toMatch(/^platform_metrics_refresh_failures_total 0$/m);
  });
});
