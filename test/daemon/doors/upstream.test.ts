/** What the daemon says when it cannot pass a request on, and what it never takes from a request. */
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { contextHeader, Served, type Answer } from "../support/served.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { Running } from "../support/running.ts";

/** Status and code of an error in the one shape, which tells nothing of where in the program it came about. */
const plainError = ({ response, body }: Answer): readonly [number | undefined, unknown] => {
  const told = JSON.parse(body) as { readonly error: string; readonly code: string };
  expect(Object.keys(told).toSorted()).toEqual(["code", "error"]);
  expect(body).not.toMatch(/\\n|\bat \S+:\d+|\.[jt]s\b|node:|Error:|E[A-Z]{5,}|\.sock/);
  return [response.statusCode, told.code];
};

describe("a request that cannot be passed on", () => {
  let served: Served;
  let heard: string | undefined;
  beforeEach(async () => {
    served = await Served.start((request, response) => {
      heard = request.headers.host;
      response.end("runtime");
    });
  });
  afterEach(() => served.stop());

  test("is answered 502 if the upstream refuses, without text of the program [X16]", async () => {
    expect(plainError(await served.ask(`/proxy/${await freePort()}/`))).toEqual([
      502,
      "upstream_unreachable",
    ]);
  });

  test("is answered 502 if the upstream does not speak HTTP, without text of the program [X16]", async () => {
    const port = await served.upstream(
      createServer().on("connection", (socket) => socket.end("bad request line\r\n\r\n")),
    );
    expect(plainError(await served.ask(`/proxy/${port}/`))).toEqual([502, "upstream_unreachable"]);
  });

  test("is answered 503 while the runtime boots, without text of the program [X16]", async () => {
    served.report.setRuntime({ state: "starting" });
    const answer = await served.ask("/session");
    expect(plainError(answer)).toEqual([503, "runtime_not_ready"]);
    expect(answer.response.headers["retry-after"]).toBe("1");
  });

  test("does not show the client's host, in an answer or to the upstream [X17]", async () => {
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example" };
    const passed = await served.ask("/session", { headers });
    expect([passed.body, heard]).toEqual(["runtime", expect.stringMatching(/^127\.0\.0\.1:\d+$/)]);
    served.report.setRuntime({ state: "starting" });
    const own = await Promise.all(
      ["/platform/health", "/session", "/platform/none", "/proxy/4096/", `/proxy/${await freePort()}/`].map(
        (path) => served.ask(path, { headers }),
      ),
    );
    own.push(await served.ask("/session", { headers: { ...headers, "x-platform-user-context": "no.ne" } }));
    expect(own.map(({ response }) => response.statusCode)).toEqual([200, 503, 404, 403, 502, 401]);
    for (const { response, body } of own) {
      expect(body + JSON.stringify(response.headers)).not.toContain("evil");
    }
  });
});

test("an abort without a run always reports that nothing was aborted, and the daemon lives on [X20]", async () => {
  const daemon = await Running.start();
  try {
    const abort = async () => {
      const headers = { "x-platform-user-context": daemon.context() };
      const { status, body } = await daemon.ask("/platform/abort", { method: "POST", headers });
      return [status, JSON.parse(body)];
    };
    const nothing = [200, { aborted: false }];
    await daemon.logged("listening");
    // While it boots there is no runtime to be asked, later there is no turn.
    expect(await abort()).toEqual(nothing);
    await daemon.logged("ready");
    expect(await Promise.all(Array.from({ length: 10 }, abort))).toEqual(
      Array.from({ length: 10 }, () => nothing),
    );
    expect(await daemon.health()).toMatchObject({ status: "ready", runtime: { restarts: 0 } });
  } finally {
    await daemon.dispose();
  }
});

test("a runtime that is killed amid a stream ends it as an error, is restarted, and health reports it [R12]", async () => {
  const daemon = await Running.start();
  try {
    await daemon.logged("ready");
    const stream = httpRequest({
      socketPath: daemon.layout.socket,
      path: "/stream",
      headers: { "x-platform-user-context": daemon.context() },
      agent: false,
    });
    stream.end();
    const [response] = (await once(stream, "response")) as [IncomingMessage];
    await once(response, "data");
    const { pid } = (await daemon.health()).runtime;
    const broken = once(response, "error");
    process.kill(pid ?? 0, "SIGKILL");
    expect([((await broken)[0] as Error).message, response.complete]).toEqual(["aborted", false]);
    await daemon.logged("agent runtime", { state: "ready", run: 2 });
    expect(await daemon.health()).toMatchObject({
      status: "ready",
      runtime: { state: "ready", restarts: 1, last_exit: { code: null, signal: "SIGKILL" } },
    });
    expect((await daemon.ask("/")).body).toBe("runtime");
  } finally {
    await daemon.dispose();
  }
});

test("a context in a cookie or in the address does not count", async () => {
  const served = await Served.start((_, response) => response.end("runtime"));
  try {
    const context = contextHeader();
    const raw = await served.raw(
      `GET /?x-platform-user-context=${context} HTTP/1.1\r\nHost: x\r\nCookie: x-platform-user-context=${context}\r\nConnection: close\r\n\r\n`,
    );
    expect(raw).toMatch(/^HTTP\/1\.1 401 [^]*"reason":"missing"/);
  } finally {
    await served.stop();
  }
});
