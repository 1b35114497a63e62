/**
 * What an agent's work costs, for the metrics: turns, tool calls and tokens. They are read from what a sandbox reports, so
 * times have limits, and names are bounded by the metrics (domain/service/metrics.ts).
 *
 *  K1 A tool call is counted once, although its item may be reported again after its end.
 *  K2 Memory is bounded: of one sandbox, so many ended calls are remembered.
 */
import { BoundedMap } from "../../ground/bounded-map.ts";
import { isTurnOpen, type NativeItem, type TurnNow } from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import { ROOT, type SpanName, type SpanReport } from "../../domain/service/span.ts";
import type { AddedUsage } from "../../store/ports/sessions/conversations.ts";
import { nowMs, type MeasuresApi, type TracesApi } from "../../telemetry/port.ts";

/** The calls that are remembered (K2). */
const ENDED_MAX = 1000;
const DAY_SECONDS = 24 * 60 * 60;

interface Ports {
  readonly measures: MeasuresApi;
  readonly traces: TracesApi;
}

interface Place {
  readonly sessionId: string;
  readonly sandboxId: string;
}

/** The work in one sandbox. */
export class WorkTimes {
  readonly #measures: MeasuresApi;
  readonly #ended = new BoundedMap<string, true>(ENDED_MAX);
  /** When the turn in progress began, ms since the epoch. Null if none is, or its begin was not seen. */
  #since: number | null = null;
  #isFirst = true;

  readonly #traces: TracesApi;
  readonly #of: Place;

  constructor({ measures, traces }: Ports, of: Place) {
    this.#measures = measures;
    this.#traces = traces;
    this.#of = of;
  }

  /** What the daemon reported, and what that added to the usage. Call it after the write. */
  reported(items: readonly NativeItem[], turn: TurnNow | null, spending: readonly AddedUsage[]): void {
    if (!this.#measures.isOn && !this.#traces.isOn) return;
    // The call belongs to the turn that it was reported in, which may end with the same report.
    if (turn !== null && isTurnOpen(turn)) this.#turn(turn);
    for (const item of items) this.#tool(item);
    if (turn !== null && !isTurnOpen(turn)) this.#turn(turn);
    for (const { model, usage } of spending) {
      const { input_tokens: input, output_tokens: output, cached_tokens: cached, cost_usd: cost } = usage;
      for (const [kind, tokens] of Object.entries({ input, output, cached }))
        this.#measures.count("model_tokens_total", { model, kind }, tokens);
      this.#measures.count("model_cost_usd_total", { model }, cost);
    }
  }

  #tool({ kind, tool, status, native_id: id, created_at: from, completed_at: to }: NativeItem): void {
    if (kind !== "tool" || tool === null || to === null || !isClosed(status) || this.#ended.has(id)) return;
    this.#ended.set(id, true);
    const took = Math.min((to - from) / 1000, DAY_SECONDS);
    this.#measures.observe("tool_call_seconds", { kind: tool.kind, outcome: status }, took);
    if (took < 0) return;
    const until = nowMs();
    this.#span("tool_call", `tool/${id}`, {
      from: until - took * 1000,
      to: until,
      parent: this.#since === null ? ROOT : `${this.#of.sandboxId}/${this.#turnKey(this.#since)}`,
      failed: status === "failed",
      attributes: { kind: tool.kind, outcome: status },
    });
  }

  /** A first report may come in the middle of a turn. */
  #turn(now: TurnNow): void {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (isTurnOpen(now)) {
      if (!isFirst) this.#since ??= nowMs();
      return;
    }
    if (this.#since !== null) {
      const [from, to] = [this.#since, nowMs()];
      this.#measures.observe("turn_seconds", {}, (to - from) / 1000);
      this.#span("turn", this.#turnKey(from), { from, to, parent: ROOT, failed: false, attributes: {} });
    }
    this.#since = null;
  }

  #turnKey(since: number): string {
    return `turn/${since}`;
  }

  #span(name: SpanName, key: string, rest: Omit<SpanReport, "name" | "key" | "sessionId">): void {
    const { sessionId, sandboxId } = this.#of;
    this.#traces.span({ name, sessionId, key: `${sandboxId}/${key}`, ...rest });
  }
}
