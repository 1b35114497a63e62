/**
 * Previews through the real service and a real daemon: which browser reaches a port, and which parts of the service
 * are reachable at that host.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import {
  ownPage,
  startPreviewWorld,
  type PreviewWorld,
} from "../../support/service/sessions/preview-setup.ts";
import { exchange, parseAnswer } from "../../support/service/raw-http.ts";
import { expectStatus, fields, runSession, stopSession } from "../../support/service/requests.ts";

let world: PreviewWorld;
beforeAll(async () => {
  world = await startPreviewWorld();
});
beforeEach(() => {
  world.heard.length = 0;
  world.sets.length = 0;
});
afterAll(() => world.close());

const preview = (path = world.sid, body: unknown = { port: world.port }, token?: string) =>
  world.service.request("POST", `/v1/projects/${world.pid}/sessions/${path}/preview`, {
    body,
    ...(token === undefined ? {} : { token }),
  });

describe("a preview link", () => {
  it("names an origin for the port, and how long it can be opened", async () => {
    const { url, expires_at: expiresAt } = fields(expectStatus(await preview(), 201));
    expect(String(url)).toMatch(
      new RegExp(
        `^http://p${world.port}-${world.sid}\\.localhost:${world.service.port}/\\?platform_preview=[\\w-]{43}$`,
      ),
    );
    const [row] = await world.service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ readonly made: number; readonly ends: number }>`
          SELECT created_at AS made, expires_at AS ends FROM previews ORDER BY expires_at DESC LIMIT 1`,
      ),
    );
    expect(Date.parse(String(expiresAt))).toBe(row?.ends);
    expect((row?.ends ?? 0) - (row?.made ?? 0)).toBe(300_000);
  });

  it("leads to the app with a cookie, and leaves no secret in the address or elsewhere", async () => {
    const target = await world.link();
    const opened = await world.visit(world.host, target);
    expect([opened.status, opened.headers.location, opened.text]).toEqual([303, "/", ""]);
    expect(opened.headers).toMatchObject({ "referrer-policy": "no-referrer", "cache-control": "no-store" });
    const [cookie = "", ...others] = opened.headers["set-cookie"] ?? [];
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^platform_preview=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=28800$/);
    const [name = ""] = cookie.split(";");
    const page = await world.visit(world.host, "/a?b=c", { cookie: `theirs=1; ${name}; more=2` });
    expect([page.status, page.text]).toEqual([200, "app /a?b=c"]);
    const [asked] = world.heard;
    expect(asked?.headers).toMatchObject({
      host: world.host,
      "x-forwarded-host": world.host,
      "x-forwarded-proto": "http",
      cookie: "theirs=1; more=2",
    });
    const secrets = [target.split("=")[1] ?? "-", name.split("=")[1] ?? "-"];
    const told = JSON.stringify([world.heard, world.service.logs, page]);
    for (const secret of secrets) expect(told).not.toContain(secret);
    const rows = await world.service.inside(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT * FROM previews`),
    );
    for (const secret of secrets) expect(JSON.stringify(rows)).not.toContain(secret);
  });

  it("leads on for the browser that opened it, when it is clicked again", async () => {
    const target = await world.link();
    const opened = await world.visit(world.host, target);
    const cookie = opened.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    const again = await world.visit(world.host, target, { cookie });
    expect([again.status, again.headers.location, again.headers["set-cookie"]]).toEqual([
      303,
      "/",
      undefined,
    ]);
  });

  it.each([
    ["HEAD", {}],
    ["POST", {}],
    ["GET", { "sec-purpose": "prefetch" }],
    ["GET", { purpose: "prefetch" }],
    ["GET", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" }],
    ["GET", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" }],
  ])("is not used up by a mere look: %s %j", async (method, headers) => {
    const target = await world.link();
    const looked = await world.visit(world.host, target, { method, headers });
    expect([401, 403]).toContain(looked.status);
    expect(looked.headers["set-cookie"]).toBeUndefined();
    const followed = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    expect((await world.visit(world.host, target, { headers: followed })).status).toBe(303);
  });

  it("opens nothing after its end, on another preview's host, or with an invalid secret", async () => {
    const target = await world.link();
    const elsewhere = world.host.replace(`p${world.port}`, "p1");
    expect(ownPage(await world.visit(elsewhere, target))).toBe(401);
    expect(ownPage(await world.visit(world.host, target.slice(0, -1)))).toBe(401);
    expect(ownPage(await world.visit(world.host, `${target}x`))).toBe(401);
    await world.service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE previews SET expires_at = created_at WHERE opened_at IS NULL`,
      ),
    );
    expect(ownPage(await world.visit(world.host, target))).toBe(401);
  });

  it.each([8000, 4096, 3128])("is not created for %i, a port of the platform [X01, X02]", async (port) => {
    const refused = await preview(world.sid, { port });
    expect([refused.status, fields(refused)["code"]]).toEqual([403, "port_blocked"]);
  });

  it.each([0, 65_536, -1, 80.5, "8080", null, undefined])(
    "is not created for port %j [X01]",
    async (port) => {
      expect((await preview(world.sid, { port })).status).toBe(400);
    },
  );

  it("is created for a running session, and accepts no other field [T06]", async () => {
    expect((await preview(world.sid, { port: world.port, path: "/x" })).status).toBe(400);
    const ended = await runSession(world.service, world.pid);
    await stopSession(world.service, world.pid, ended);
    const refused = await preview(ended);
    expect([refused.status, fields(refused)["code"]]).toEqual([409, "session_not_running"]);
  });
});

describe("a preview's host", () => {
  const TARGETS = [
    "/",
    "/v1/me",
    "/healthz",
    "/openapi.json",
    "/dashboard/session",
    "/app.js",
    "/platform/health",
  ];

  it("serves a client without its cookie one page, for any path and any token", async () => {
    const hook = `/v1/webhooks/projects/${world.pid}/push`;
    const git = `/v1/git/${world.pid}.git/info/refs?service=git-upload-pack`;
    for (const target of [
      ...TARGETS,
      hook,
      git,
      `/v1/projects/${world.pid}/sessions/${world.sid}/ports/3000/`,
    ]) {
      for (const headers of [{}, { authorization: `Bearer ${world.service.token}` }]) {
        expect(ownPage(await world.visit(world.host, target, { headers })), target).toBe(401);
      }
    }
    expect(ownPage(await world.visit(world.host, hook, { method: "POST" }))).toBe(401);
    expect((await world.upgrade("/")).status).toBe(401);
    expect(world.heard).toEqual([]);
  });

  it("serves a client with its cookie the app alone, on every path", async () => {
    const cookie = await world.cookie();
    for (const target of TARGETS) {
      expect((await world.visit(world.host, target, { cookie })).text).toBe(`app ${target}`);
    }
  });

  it("has one form: other names below the domain do not exist, and do not reach the API [X17]", async () => {
    const cookie = await world.cookie();
    const bearer = { authorization: `Bearer ${world.service.token}` };
    const { port } = world.service;
    for (const host of [
      world.host.replace(`:${port}`, ""),
      world.host.replace(`:${port}`, ":1"),
      world.host.replace(".localhost", ".localhost."),
      `x${world.host}`,
      `other.localhost:${port}`,
    ]) {
      const answer = await world.visit(host, "/v1/me", { cookie, headers: bearer });
      expect(ownPage(answer), host).toBe(404);
      expect((await world.upgrade("/", { cookie, headers: { host } })).status, host).toBe(404);
    }
    const upper = await world.visit(world.host.toUpperCase(), "/", { cookie });
    expect(upper.text).toBe("app /");
    expect((await world.visit(`localhost:${port}`, "/v1/me", { headers: bearer })).status).toBe(200);
  });

  it("accepts neither a second Host nor a target that names one [X03, X17]", async () => {
    const cookie = await world.cookie();
    const ask = async (line: string, ...hosts: readonly string[]) => {
      const lines = [line, ...hosts.map((host) => `Host: ${host}`), `Cookie: ${cookie}`, "Connection: close"];
      return parseAnswer(await exchange(world.service.port, [...lines, "", ""].join("\r\n"))).status;
    };
    const own = `127.0.0.1:${world.service.port}`;
    expect(await ask("GET / HTTP/1.1", world.host)).toBe(200);
    world.heard.length = 0;
    expect(await ask("GET / HTTP/1.1", world.host, own)).toBe(400);
    expect(await ask("GET / HTTP/1.1", own, world.host)).toBe(400);
    expect(await ask(`GET http://${world.host}/ HTTP/1.1`, own)).toBe(400);
    expect(await ask(`GET http://${own}/v1/me HTTP/1.1`, world.host)).toBe(400);
    expect(world.heard).toEqual([]);
  });

  it("shows a page if nothing listens on its port, and JSON to programs", async () => {
    const dead = createServer();
    await new Promise<void>((resolve) => {
      dead.listen(0, "127.0.0.1", resolve);
    });
    const { port } = dead.address() as AddressInfo;
    await new Promise((resolve) => dead.close(resolve));
    const host = world.host.replace(`p${world.port}-`, `p${port}-`);
    const cookie = await world.cookie({ port });
    const ask = (accept: string, method = "GET") =>
      world.visit(host, "/", { cookie, method, headers: { accept } });
    for (const accept of ["text/html,application/xhtml+xml,*/*;q=0.8", "application/json, text/html;q=0.1"]) {
      const page = await ask(accept);
      expect(ownPage(page)).toBe(502);
      expect(page.text).toContain("No app is running on this port");
      expect(page.text).toContain('<meta http-equiv="refresh" content="3">');
    }
    for (const [accept, method] of [
      ["*/*"],
      ["application/json"],
      ["text/html;q=0"],
      ["text/html", "POST"],
    ]) {
      const answer = await ask(accept ?? "", method);
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([502, { code: "upstream_unreachable" }]);
    }
  });

  it("shows a page if its daemon is gone", async () => {
    const lost = await startPreviewWorld();
    try {
      const cookie = await lost.cookie();
      lost.killDaemon();
      expect(ownPage(await lost.visit(lost.host, "/", { cookie }))).toBe(502);
    } finally {
      await lost.close();
    }
  });
});
