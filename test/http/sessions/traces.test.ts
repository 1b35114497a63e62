/** The traces that a collector gets: from a webhook over the boot to the push, and what is never in them. */
import { mkdtempSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { spanTraceId } from "../../../src/domain/service/span.ts";
import { otlpLayer, WAITING_MAX } from "../../../src/telemetry/otlp.ts";
import { makeRegistry } from "../../../src/telemetry/registry.ts";
import { Collector, type ReceivedSpan } from "../../support/servers/collector.ts";
import { gitOk } from "../../git/git-client.ts";
import {
  commitFiles,
  deliver,
  eventually,
  expectStatus,
  fields,
  hmac,
  makeHookProject,
  mintPassword,
  reached,
  SECRET,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { Measures, Traces } from "../../../src/telemetry/port.ts";

const CANARY = "canary-of-the-prompt";
const CREDENTIAL = "collector-credential";
let collector: Collector;
let service: TestService;
const registry = makeRegistry();
const options = (url: string) => ({
  endpoint: url,
  headers: { authorization: CREDENTIAL },
  serviceName: "platform",
  serviceVersion: "0",
});
beforeAll(async () => {
  collector = await Collector.open();
  service = await startTestService({}, { measures: registry, traces: otlpLayer(options(collector.url)) });
});
afterAll(async () => {
  await service.close();
  await collector.close();
});

const startByWebhook = async () => {
  const pid = await makeHookProject(service);
  const body = JSON.stringify({ text: CANARY });
  const answer = await deliver(service, `${pid}/push`, {
    body,
    headers: { "x-platform-signature": hmac(body) },
  });
  const sid = String(fields(expectStatus(answer, 202))["session_id"]);
  await reached(service, pid, sid, "running");
  return { pid, sid };
};
const ofTrace = (sid: string): readonly ReceivedSpan[] => {
  const traceId = spanTraceId({ sessionId: sid, key: "" });
  return collector.spans.filter((span) => span.traceId === traceId);
};
const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan | undefined =>
  spans.find((span) => span.name === name);

describe("the trace of a session", () => {
  it("is one, from the webhook over the boot to the push, and each parent is in it", async () => {
    const { pid, sid } = await startByWebhook();
    const password = await mintPassword(service, pid, sid);
    const directory = mkdtempSync(path.join(service.importRoot, "work-"));
    const remote = `http://x:${password}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
    await gitOk(directory, "clone", "--quiet", "--branch", sid, remote, ".");
    await commitFiles(directory, { "a.txt": CANARY });
    await gitOk(directory, "push", "--quiet", "origin", "HEAD");
    const spans = await eventually(() => {
      const found = ofTrace(sid);
      const operations = found.flatMap(({ attributes }) => attributes.map(({ value }) => value.stringValue));
      expect(operations).toContain("push");
      return found;
    });
    const [root, boot] = [named(spans, "session.start"), named(spans, "boot")];
    expect(root?.parentSpanId).toBeUndefined();
    expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined)).toHaveLength(1);
    for (const name of ["admission", "boot", "git"])
      expect(named(spans, name)?.parentSpanId).toBe(root?.spanId);
    for (const name of ["boot.place", "boot.created"])
      expect(named(spans, name)?.parentSpanId).toBe(boot?.spanId);
    for (const { startTimeUnixNano: from, endTimeUnixNano: to } of spans)
      expect(BigInt(to)).toBeGreaterThanOrEqual(BigInt(from));
  });

  it("has no prompt, path, query, token, secret or code [L05]", async () => {
    const { pid } = await startByWebhook();
    await service.request("GET", `/dashboard/open?code=${CANARY}-code`);
    await eventually(() => expect(collector.bodies.join("")).toContain("/dashboard/open"));
    const sent = collector.bodies.join("");
    for (const secret of [CANARY, pid, service.token, SECRET, CREDENTIAL]) expect(sent).not.toContain(secret);
    expect(collector.headers.authorization).toBe(CREDENTIAL);
    expect(service.logs.join("")).not.toContain(CREDENTIAL);
  });
});

describe("a collector that does not take spans", () => {
  it("holds up nothing: further spans are dropped and counted, and one request is under way [L06]", async () => {
    const silent = await Collector.open();
    silent.behaviour = "silent";
    const own = makeRegistry();
    const dropped = (): number =>
      Number(/^platform_spans_dropped_total (\d+)$/m.exec(Effect.runSync(own.text))?.[1]);
    const span = { name: "request", sessionId: null, parent: null, from: 0, to: 1, failed: false } as const;
    const fill = Effect.gen(function* () {
      const traces = yield* Traces;
      for (let key = 0; key < WAITING_MAX + 100; key += 1)
        traces.span({ ...span, key: String(key), attributes: {} });
      yield* Effect.promise(() => eventually(() => expect(silent.requests).toBe(1)));
      for (let key = 0; key < WAITING_MAX; key += 1)
        traces.span({ ...span, key: `more-${key}`, attributes: {} });
    });
    try {
      await Effect.runPromise(
        fill.pipe(Effect.provide(otlpLayer(options(silent.url))), Effect.provideService(Measures, own)),
      );
      expect(dropped()).toBeGreaterThan(WAITING_MAX / 2);
      expect(silent.requests).toBeLessThanOrEqual(2);
    } finally {
      await silent.close();
    }
  });

  it("gets the spans that come after it takes them again", async () => {
    collector.behaviour = "refuses";
    const before = collector.requests;
    await startByWebhook();
    await eventually(() => expect(collector.requests).toBeGreaterThan(before));
    collector.behaviour = "takes";
    const { sid } = await startByWebhook();
    await eventually(() => expect(named(ofTrace(sid), "boot")).toBeDefined());
  });
});
