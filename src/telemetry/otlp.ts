/**
 * Sends spans to a collector: OTLP over HTTP, as JSON (OTEL_EXPORTER_OTLP_ENDPOINT). The service never waits for it.
 *
 *  T1 Memory is bounded: so many spans wait, and one request is under way. Further spans are dropped and counted.
 *  T2 A request that fails or takes too long loses its spans, which are counted. They are not sent again.
 *  T3 A span has only what domain/service/span.ts lets through. Headers of the setting are in no log.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http";
import { OtlpSerialization } from "effect/observability";
import { shownAttributes, deriveSpanId, spanTraceId, type SpanReport } from "../domain/service/span.ts";
import { Measures, Traces, type MeasuresApi, type TracesApi } from "./port.ts";

/** T1. */
export const WAITING_MAX = 4096;
const TOGETHER = 512;
const PERIOD = "1 second";
const PATIENCE = "5 seconds";
/** At the end of the service. */
const LAST = "2 seconds";
/** A collector that does not answer is one line in the log in this time. */
const SAY_AGAIN_MS = 60_000;

export interface OtlpOptions {
  /** The base address. Spans go to `{endpoint}/v1/traces`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly serviceVersion: string;
}

const text = (key: string, value: string) => ({ key, value: { stringValue: value } });
const nanos = (ms: number): string => `${Math.round(ms * 1000)}000`;
/** OTLP's numbers: internal, and the status of an error. */
const [INTERNAL, ERROR, UNSET] = [1, 2, 0] as const;

const toWire = ({ sessionId, parent, ...span }: SpanReport) => ({
  traceId: spanTraceId({ sessionId, key: span.key }),
  spanId: deriveSpanId(sessionId, span.key),
  parentSpanId: parent === null ? undefined : deriveSpanId(sessionId, parent),
  name: span.name,
  kind: INTERNAL,
  startTimeUnixNano: nanos(span.from),
  endTimeUnixNano: nanos(Math.max(span.from, span.to)),
  attributes: shownAttributes(span.attributes).map(([key, value]) => text(key, value)),
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  status: { code: span.failed ? ERROR : UNSET },
  links: [],
  droppedLinksCount: 0,
});

/** The spans that wait (T1). */
class Waiting {
  readonly #measures: MeasuresApi;
  #spans: SpanReport[] = [];

  constructor(measures: MeasuresApi) {
    this.#measures = measures;
  }

  add(span: SpanReport): void {
    if (this.#spans.length < WAITING_MAX) this.#spans.push(span);
    else this.lost(1);
  }

  take(): readonly SpanReport[] {
    return this.#spans.splice(0, TOGETHER);
  }

  lost(count: number): void {
    this.#measures.count("spans_dropped_total", {}, count);
  }
}

const makeTraces = Effect.fnUntraced(function* (options: OtlpOptions) {
  const client = yield* HttpClient.HttpClient;
  const { traces: encode } = yield* OtlpSerialization.OtlpSerialization;
  const waiting = new Waiting(yield* Measures);
  const { endpoint, headers, serviceName, serviceVersion } = options;
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  const resource = {
    attributes: [text("service.name", serviceName), text("service.version", serviceVersion)],
    droppedAttributesCount: 0,
  };
  let saidAt = Number.NEGATIVE_INFINITY;
  const complain = Effect.fnUntraced(function* (why: string, count: number) {
    waiting.lost(count);
    const now = yield* Clock.currentTimeMillis;
    if (now - saidAt < SAY_AGAIN_MS) return;
    saidAt = now;
    yield* Effect.logWarning("the collector does not take spans, which are dropped", { why });
  });
  const send = Effect.fnUntraced(function* (spans: readonly SpanReport[]) {
    const scopeSpans = [{ scope: { name: "platform" }, spans: spans.map(toWire) }];
    const request = HttpClientRequest.post(url, { headers }).pipe(
      HttpClientRequest.setBody(encode({ resourceSpans: [{ resource, scopeSpans }] })),
    );
    const exchange = client.execute(request).pipe(
      Effect.tap((response) => Effect.ignore(response.arrayBuffer)),
      Effect.timeout(PATIENCE),
      Effect.result,
    );
    const answer = yield* exchange;
    if (answer._tag === "Failure") return yield* complain(answer.failure._tag, spans.length);
    const { status } = answer.success;
    if (status >= 300) yield* complain(`it answered ${status}`, spans.length);
  });
  const flush = Effect.gen(function* () {
    for (let spans = waiting.take(); spans.length > 0; spans = waiting.take()) yield* send(spans);
  });
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, LAST)));
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(PERIOD), flush)));
  return { isOn: true, span: (span) => waiting.add(span) } satisfies TracesApi;
});

export const otlpLayer = (options: OtlpOptions): Layer.Layer<never> =>
  Layer.effect(Traces, makeTraces(options)).pipe(
    Layer.provide(Layer.merge(FetchHttpClient.layer, OtlpSerialization.layerJson)),
  );
