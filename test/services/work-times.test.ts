/** What an agent's work costs, as the metrics count it from a sandbox's reports. */
import * as Effect from "effect/Effect";
import { beforeEach, describe, expect, it } from "vitest";
import type { NativeItem, TurnNow } from "../../src/domain/conversation/conversation.ts";
import type { SpanReport } from "../../src/domain/service/span.ts";
import { reportBoot } from "../../src/services/sessions/boot-times.ts";
import { WorkTimes } from "../../src/services/sessions/work-times.ts";
import { makeRegistry, type Registry } from "../../src/telemetry/registry.ts";

let registry: Registry;
let times: WorkTimes;
let spans: SpanReport[] = [];
const PLACE = { sessionId: "0b4cf0a4-5a3f-4c39-9d67-1f62c2f0a001", sandboxId: "box" };
beforeEach(() => {
  spans = [];
  registry = makeRegistry();
  times = new WorkTimes(
    { measures: registry, traces: { isOn: true, span: (span) => void spans.push(span) } },
    PLACE,
  );
});

const text = (): string => Effect.runSync(registry.text);
const turn = (state: TurnNow["state"]): TurnNow => ({ state, waiting_for: null });
const call = (id: string, status: NativeItem["status"], took: number | null): NativeItem => ({
  native_id: id,
  rev: 1,
  kind: "tool",
  role: null,
  status,
  message_id: null,
  turn_id: null,
  parent_id: null,
  content: [],
  tool: {
    name: "canary-tool",
    kind: "execute",
    title: null,
    input: {},
    output: "",
    truncated: false,
    changes: [],
  },
  plan: [],
  request: null,
  model: null,
  usage: null,
  error: null,
  created_at: 1_000,
  completed_at: took === null ? null : 1_000 + took,
});

describe("an agent's work", () => {
  it("counts a tool call once, at its end, by kind and outcome", () => {
    times.reported([call("a", "running", null)], null, []);
    times.reported([call("a", "completed", 2_000)], null, []);
    times.reported([call("a", "completed", 2_000), call("b", "failed", 500)], null, []);
    expect(text()).toContain('platform_tool_call_seconds_sum{kind="execute",outcome="completed"} 2\n');
    expect(text()).toContain('platform_tool_call_seconds_count{kind="execute",outcome="completed"} 1\n');
    expect(text()).toContain('platform_tool_call_seconds_count{kind="execute",outcome="failed"} 1\n');
    expect(text()).not.toContain("canary-tool");
  });

  it("takes at most a day for a tool call, and no negative time, whatever the sandbox's clock says", () => {
    times.reported([call("a", "completed", 1e15), call("b", "completed", -5_000)], null, []);
    expect(text()).toContain('platform_tool_call_seconds_sum{kind="execute",outcome="completed"} 86400\n');
    expect(text()).toContain('platform_tool_call_seconds_count{kind="execute",outcome="completed"} 1\n');
  });

  it("measures a turn that it saw begin, and no turn of which it saw only the end", () => {
    times.reported([], turn("running"), []);
    times.reported([], turn("idle"), []);
    expect(text()).toMatch(/^platform_turn_seconds_count 0$/m);
    for (const state of ["running", "requires_action", "running", "idle", "idle"] as const)
      times.reported([], turn(state), []);
    expect(text()).toMatch(/^platform_turn_seconds_count 1$/m);
  });

  it("is in the session's trace: a call below its turn, and a turn below the beginning", () => {
    times.reported([], turn("idle"), []);
    times.reported([], turn("running"), []);
    times.reported([call("a", "failed", 200)], turn("idle"), []);
    const [tool, whole] = spans;
    expect(spans).toHaveLength(2);
    expect(tool).toMatchObject({ name: "tool_call", parent: whole?.key, failed: true });
    expect(whole).toMatchObject({ name: "turn", parent: "session.start", sessionId: PLACE.sessionId });
    expect(JSON.stringify(spans)).not.toContain("canary-tool");
  });

  it("adds up tokens and cost by model", () => {
    const usage = { input_tokens: 10, output_tokens: 2, cached_tokens: 3, cost_usd: 0.5 };
    times.reported([], null, [{ model: "lab/large", usage }]);
    times.reported([], null, [{ model: "lab/large", usage }]);
    expect(text()).toContain('platform_model_tokens_total{model="lab/large",kind="input"} 20\n');
    expect(text()).toContain('platform_model_cost_usd_total{model="lab/large"} 1\n');
  });
});

describe("a boot's times", () => {
  it("take no step of the daemon that has another name, or took longer than the boot", () => {
    const steps = [
      { step: "cloned", at_ms: 700 },
      { step: "runtime_ready", at_ms: 9_000_000 },
      { step: "canary", at_ms: 1 },
    ];
    reportBoot(registry, { isReady: true, waitedMs: -5, took: 2, created: 0.1, steps });
    expect(text()).toContain('platform_boot_step_seconds_sum{step="cloned"} 0.7\n');
    expect(text()).toContain('platform_boot_step_seconds_sum{step="place"} 0\n');
    expect(text()).toContain('platform_boot_step_seconds_count{step="runtime_ready"} 0\n');
    expect(text()).not.toContain("canary");
  });
});
