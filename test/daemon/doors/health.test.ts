/** The health report that is held until a boot is over. */
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { Report, type HealthReport } from "../../../daemon/report.ts";
import { DaemonServer } from "../../../daemon/http/server.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { answerOf, SESSION_ID, TOKEN } from "../support/served.ts";

/** Completes when the server holds a request. */
const held = async (): Promise<void> => {
  while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
};

describe("a request for the health of a booted daemon", () => {
  let report: Report;
  let server: DaemonServer;
  let directory: string;

  beforeEach(async () => {
    // Only the server's own time limit: sockets keep the machine's time.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    report = new Report({
      version: "0",
      redactor: new Redactor([]),
      repoUrl: "http://r",
      branch: SESSION_ID,
    });
    server = new DaemonServer({
      token: TOKEN,
      sessionId: SESSION_ID,
      runtimePort: null,
      blockedPorts: [],
      report,
      ring: new LogRing(() => undefined),
      abort: () => Promise.resolve(false),
      control: (name) => Promise.resolve({ done: { name } }),
    });
    directory = mkdtempSync(join(tmpdir(), "health-"));
    await server.listen({ path: join(directory, "d.sock") });
  });

  afterEach(() => {
    server.close();
    rmSync(directory, { recursive: true });
    vi.useRealTimers();
  });

  const ask = async (): Promise<HealthReport> => {
    const path = "/platform/health?until=booted";
    const call = request({ socketPath: join(directory, "d.sock"), path, agent: false });
    call.end();
    const { body } = await answerOf(call);
    return JSON.parse(body) as HealthReport;
  };

  test("is answered when the repository is checked out and the runtime answers", async () => {
    const answer = ask();
    await held();
    report.setRepo({ ready: true });
    report.setRuntime({ state: "ready" });
    expect(await answer).toMatchObject({ status: "ready", runtime: { state: "ready" } });
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ["has an error", () => report.setError("checkout", "no such branch"), "starting"],
    ["gives its checkout up", () => report.giveUpCheckout(), "error"],
    ["has a runtime that failed", () => report.setRuntime({ state: "failed" }), "error"],
  ])("is answered when the boot %s", async (_, goWrong, status) => {
    const answer = ask();
    await held();
    goWrong();
    expect((await answer).status).toBe(status);
  });

  test("is answered with the state of a long boot after half a second, and may be repeated", async () => {
    for (let asked = 0; asked < 2; asked += 1) {
      const answer = ask();
      await held();
      report.setRuntime({ pid: asked });
      vi.advanceTimersByTime(500);
      expect(await answer).toMatchObject({ status: "starting", runtime: { pid: asked } });
    }
  });
});
