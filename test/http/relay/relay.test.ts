/** The service's relay in front of a real daemon's server: what it answers when it cannot pass a request on. */
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { Report } from "../../../daemon/report.ts";
import { DaemonServer } from "../../../daemon/http/server.ts";
import { Activity } from "../../../src/services/sessions/activity.ts";
import { signUserContext, verifyUserContext } from "../../../src/domain/sandbox/user-context.ts";
import { makeRelay } from "../../../src/http/relay/relay.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { recordedActivity } from "../../support/service/activity.ts";
import { exchange, parseAnswer, type RawAnswer } from "../../support/service/raw-http.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { relayParts } from "./relay-parts.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  reached,
  runSession,
  sandboxEnvironment,
  stopSession,
} from "../../support/service/requests.ts";

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return (server.address() as AddressInfo).port;
};

/** A port on which nothing listens any more. */
const closedPort = async (): Promise<number> => {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
};

let service: TestService;
let pid = "";
let sid = "";
let serviceKey = "";
const scope = Effect.runSync(Scope.make());
const socket = path.join(tmpdir(), `relay-${randomUUID()}.sock`);
const report = new Report({ version: "0", redactor: new Redactor([]), repoUrl: "", branch: "" });
/** What the agent runtime saw of the last request: its Host. */
let heardHost: string | undefined;
const runtime = createServer((request, response) => {
  heardHost = request.headers.host;
  heldAtAnswer = [...holding];
  response.end("runtime");
});
let daemon: DaemonServer;
/** The relay's own listener; `at` is where it finds the daemon. */
let front: Server;
let frontPort = 0;
/** Sessions that a request was taken for activity of. */
const touched: string[] = [];
/** Sessions with a request under way, by the answers of the runtime. */
const holding: string[] = [];
let heldAtAnswer: readonly string[] = [];
let at = socket;
const link = () => Effect.sync(() => ({ kind: "unix" as const, path: at }));

beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
  sid = await runSession(service, pid);
  serviceKey = (await sandboxEnvironment(service, sid))["PLATFORM_TOKEN"] ?? "";
  daemon = new DaemonServer({
    token: serviceKey,
    sessionId: sid,
    runtimePort: await listening(runtime),
    blockedPorts: [],
    report,
    ring: new LogRing(() => undefined),
    abort: () => Promise.resolve(false),
    control: (name) => Promise.resolve({ done: { name } }),
  });
  await daemon.listen({ path: socket });
  const routes = await service.inside(
    Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const parts = yield* Scope.provide(Layer.build(relayParts), scope);
      return yield* makeRelay.pipe(
        Effect.provideContext(parts),
        Effect.provideService(SandboxProvider, { ...provider, link }),
        Effect.provideService(Activity, recordedActivity(touched, holding)),
        Scope.provide(scope),
      );
    }),
  );
  front = createServer((request, response) => {
    const next = () => void response.writeHead(404).end();
    if (!routes.request(request, response, next)) next();
  });
  frontPort = await listening(front);
});
beforeEach(() => {
  at = socket;
  report.setRuntime({ state: "ready" });
  report.setRepo({ ready: true });
});
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  daemon.close();
  for (const server of [front, runtime]) {
    server.closeAllConnections();
    server.close();
  }
  await service.close();
  rmSync(socket, { force: true });
});

/** One relayed request; `lines` are more header lines. */
const ask = async (rest: string, lines: readonly string[] = [`Authorization: Bearer ${service.token}`]) => {
  const hosts = lines.some((line) => line.startsWith("Host:")) ? [] : ["Host: platform.example"];
  const head = [`GET /v1/projects/${pid}/sessions/${sid}${rest} HTTP/1.1`, ...hosts, ...lines];
  return parseAnswer(await exchange(frontPort, [...head, "Connection: close", "", ""].join("\r\n")));
};

/** Status and code of an error in the one shape, which tells nothing of where in the program it came about. */
const plainError = (answer: RawAnswer): readonly [number, unknown] => {
  const body = JSON.parse(answer.body) as { readonly error: string; readonly code: string };
  expect(Object.keys(body).toSorted()).toEqual(["code", "error"]);
  expect(body.error).toMatch(/^[A-Z\d].*\.$/);
  expect(answer.body).not.toMatch(/\\n|\bat \S+:\d+|\.[jt]s\b|node:|Error:|E[A-Z]{5,}|\.sock/);
  return [answer.status, body.code];
};

describe("the relay", () => {
  it("passes on the runtime's answers", async () => {
    const { status, body } = await ask("/runtime/session");
    expect([status, body]).toContain(200);
    expect(body).toContain("runtime");
  });

  it("counts connections to a session as activity, and nothing else", async () => {
    touched.length = 0;
    await ask("/runtime/session", []);
    expect(touched).toEqual([]);
    await ask("/runtime/session");
    expect(touched).toEqual([sid]);
    expect([heldAtAnswer, holding]).toEqual([[sid], []]);
  });

  it("answers 503 with Retry-After while the runtime boots, without text of the program [X16]", async () => {
    report.setRuntime({ state: "starting" });
    const answer = await ask("/runtime/session");
    expect(plainError(answer)).toEqual([503, "runtime_not_ready"]);
    expect(answer.headers.get("retry-after")).toBe("1");
  });

  it("answers 502 if nothing listens on the port, without text of the program [X16]", async () => {
    expect(plainError(await ask(`/ports/${await closedPort()}/`))).toEqual([502, "upstream_unreachable"]);
  });

  it("answers 502 if no daemon listens, without text of the program [X16]", async () => {
    at = `${socket}.gone`;
    expect(plainError(await ask("/runtime/session"))).toEqual([502, "upstream_unreachable"]);
  });

  it("passes on neither the caller's Host nor a cookie [X17]", async () => {
    const evil = ["Host: evil.example", "X-Forwarded-Host: evil.example"];
    const passed = await ask("/runtime/", [...evil, `Authorization: Bearer ${service.token}`]);
    expect(passed.status).toBe(200);
    expect(heardHost).toMatch(/^127\.0\.0\.1:\d+$/);
    const made = await service.request("POST", "/dashboard/session", {
      token: null,
      body: { token: service.token },
    });
    const cookie = String(expectStatus(made, 200).headers["set-cookie"]).split(";")[0] ?? "";
    const refused = await ask("/runtime/", [...evil, `Cookie: ${cookie}`]);
    expect(plainError(refused)).toEqual([401, "unauthorized"]);
    expect(refused.body).not.toContain("evil");
  });
});

describe("a sandbox whose clock the agent sets", () => {
  it("loses its key with its teardown: no clock brings an old context or the key back [A09]", async () => {
    const mine = await runSession(service, pid);
    const former = (await sandboxEnvironment(service, mine))["PLATFORM_TOKEN"] ?? "";
    const credential = `/v1/projects/${pid}/git/clone-credential`;
    expectStatus(await service.request("GET", credential, { token: former }), 200);
    const acting = { userId: "user-1", sessionId: mine, role: "user", nowMs: 1_000_000_000_000 };
    const context = signUserContext(acting, former);
    // Inside, the expiry is worth what the clock is worth: set back, an old context is good again.
    const held = { sessionId: mine, nowMs: acting.nowMs };
    expect(verifyUserContext([context], { ...held, token: former })._tag).toBe("Success");

    await stopSession(service, pid, mine);
    await eventually(async () =>
      expectStatus(await service.request("GET", credential, { token: former }), 403),
    );
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${mine}/restart`), 202);
    await reached(service, pid, mine, "running");
    const fresh = (await sandboxEnvironment(service, mine))["PLATFORM_TOKEN"] ?? "";
    expect(fresh).not.toBe(former);
    expectStatus(await service.request("GET", credential, { token: former }), 403);
    expectStatus(await service.request("GET", credential, { token: fresh }), 200);
    expect(verifyUserContext([context], { ...held, token: fresh })).toMatchObject({
      failure: "bad_signature",
    });
  });
});

describe("a link of the service", () => {
  it("names the configured address, whatever Host a request has [X17]", async () => {
    const files = {
      "platform.toml": `[[triggers]]\nslug = "push"\ntype = "webhook"\nprompt = "Go"\nsecret_env = "A"\n`,
    };
    const project = await makeProject(service, { files });
    const headers = {
      host: "evil.example",
      "x-forwarded-host": "evil.example",
      "x-forwarded-proto": "https",
      forwarded: "host=evil.example;proto=https",
    };
    const listing = await service.request("GET", `/v1/projects/${project}/triggers`, { headers });
    const [trigger] = fields(expectStatus(listing, 200))["triggers"] as readonly { webhook_url: string }[];
    expect(trigger?.webhook_url).toBe(`${service.url}/v1/webhooks/projects/${project}/push`);
    const made = await service.request("POST", "/dashboard/links", { headers });
    expect(String(fields(expectStatus(made, 201))["url"])).toMatch(
      new RegExp(`^${service.url}/dashboard/open\\?code=`),
    );
    const opened = await service.request("GET", "/dashboard/open?code=none", { token: null, headers });
    expect([opened.status, opened.headers["location"]]).toEqual([303, "/?link=refused"]);
    const credential = await service.request("GET", `/v1/projects/${pid}/git/clone-credential`, {
      token: serviceKey,
      headers,
    });
    expect(fields(expectStatus(credential, 200))["repo_url"]).toBe(
      `http://platform.internal/v1/git/${pid}.git`,
    );
    const answers = [listing, made, opened, credential];
    for (const { text, headers: told } of answers) expect(text + JSON.stringify(told)).not.toContain("evil");
  });
});
