/** The metrics of the whole service, as a Prometheus on the machine reads them (PLATFORM_METRICS_PORT). */
import { randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openMetricsPage } from "../../../src/telemetry/metrics-page.ts";
import { makeRegistry, type Registry } from "../../../src/telemetry/registry.ts";
import { eventually, expectStatus, makeProject, runSession } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

const scope = Effect.runSync(Scope.make());
let registry: Registry;
let service: TestService;
let port = 0;
const statements: string[] = [];
beforeAll(async () => {
  registry = makeRegistry();
  port = await Effect.runPromise(Scope.provide(openMetricsPage(registry, 0), scope));
  service = await startTestService(
    { PLATFORM_TIER_CAPS: '{"free": 2}' },
    { measures: registry, statement: (text) => void statements.push(text) },
  );
});
afterAll(async () => {
  await service.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
});

const asked = (): number => statements.filter((text) => text.includes('"oldestCommandAt"')).length;

interface Got {
  readonly status: number;
  readonly text: string;
}
const get = (
  path: string,
  { method = "GET", host = `127.0.0.1:${port}` }: { method?: string; host?: string } = {},
): Promise<Got> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path, method, headers: { host } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end();
  });
const scrape = async (): Promise<string> => {
  const { status, text } = await get("/metrics");
  expect(status).toBe(200);
  return text;
};
/** The value of a series, by its name and labels as they are written. */
const valueOf = (text: string, series: string): number | undefined => {
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};
const waitingInPool = async () => valueOf(await scrape(), "platform_database_waiting");

describe("the metrics page", () => {
  it("answers in Prometheus' text format, with help, type and cumulative buckets", async () => {
    const text = await scrape();
    expect(text).toContain("# HELP platform_http_request_seconds ");
    expect(text).toContain("# TYPE platform_http_request_seconds histogram\n");
    expect(text).toMatch(/^platform_cron_lateness_seconds_bucket\{le="\+Inf"\} 0$/m);
    expect(text.endsWith("\n")).toBe(true);
  });

  it("answers only its own path and method, and only under its own host name [L03]", async () => {
    expect((await get("/")).status).toBe(404);
    expect((await get("/metrics", { method: "POST" })).status).toBe(405);
    const foreign = await get("/metrics", { host: "rebound.example.org" });
    expect([foreign.status, foreign.text]).toEqual([403, ""]);
  });

  it("refuses a port that is taken, and names the setting", async () => {
    const failed = await Effect.runPromise(Effect.scoped(Effect.flip(openMetricsPage(registry, port))));
    expect(failed.message).toContain("PLATFORM_METRICS_PORT");
  });
});

describe("the metrics of a service", () => {
  it("counts requests by route and class of status, and names no path and no query [L02]", async () => {
    const id = randomUUID();
    await service.request("GET", `/v1/projects/${id}?code=canary-query`);
    await service.request("GET", "/canary-path");
    const text = await eventually(async () => {
      const now = await scrape();
      expect(now).toContain('route="other"');
      return now;
    });
    const route = 'platform_http_request_seconds_count{route="GET /v1/projects/:pid",status="4xx"}';
    expect(valueOf(text, route)).toBe(1);
    for (const canary of [id, "canary-query", "canary-path"]) expect(text).not.toContain(canary);
  });

  it("measures admission, git, and each step of a boot, and shows live sessions by status", async () => {
    const pid = await makeProject(service);
    await runSession(service, pid);
    const text = await eventually(async () => {
      const now = await scrape();
      expect(valueOf(now, 'platform_sessions{status="running"}')).toBe(1);
      return now;
    });
    expect(valueOf(text, 'platform_admission_seconds_count{outcome="admitted"}')).toBe(1);
    expect(valueOf(text, 'platform_boot_seconds_count{outcome="ready"}')).toBe(1);
    expect(valueOf(text, 'platform_boot_step_seconds_count{step="created"}')).toBe(1);
    expect(
      valueOf(text, 'platform_git_seconds_count{operation="create_branch",outcome="ok"}'),
    ).toBeGreaterThan(0);
    expect(valueOf(text, "platform_database_up")).toBe(1);
    // On a busy machine, a round of a duty may fail and be done again.
    expect(valueOf(text, "platform_duties_failed")).toBeGreaterThanOrEqual(0);
    // A sandbox is watched as long as it lives, which is no command that waits.
    expect(valueOf(text, "platform_oldest_command_age_seconds")).toBe(0);
    for (const secret of [pid, service.token]) expect(text).not.toContain(secret);
  });

  it("counts a request for a session that met the cap", async () => {
    const pid = await makeProject(service);
    await runSession(service, pid);
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} }), 429);
    const text = await scrape();
    expect(valueOf(text, 'platform_limits_hit_total{limit="session_cap"}')).toBe(1);
    expect(valueOf(text, 'platform_admission_seconds_count{outcome="refused"}')).toBe(1);
  });

  it("asks the database once in some seconds, however often it is scraped [L04]", async () => {
    await scrape();
    expect(asked()).toBeGreaterThan(0);
    const before = asked();
    const since = performance.now();
    for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 10 }, scrape));
    const periods = 1 + Math.floor((performance.now() - since) / 5_000);
    expect(asked() - before).toBeLessThanOrEqual(periods);
  });

  it("say how many wait for a connection to the database, and that none does afterwards", async () => {
    const held = Promise.withResolvers<void>();
    const holding = service.inside(
      Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.all(
          Array.from({ length: 13 }, () => sql.withTransaction(Effect.promise(() => held.promise))),
          { concurrency: "unbounded" },
        ),
      ),
    );
    // Ten connections are lent, and three wait, beside what the service itself asks.
    await eventually(async () => expect(await waitingInPool()).toBeGreaterThanOrEqual(3));
    held.resolve();
    await holding;
    await eventually(async () => expect(await waitingInPool()).toBe(0));
  });
});
