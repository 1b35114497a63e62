/** A preview's cookie through the real service and a real daemon: its access, its browser, and its end. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  ownPage,
  startPreviewWorld,
  type PreviewWorld,
} from "../../support/service/sessions/preview-setup.ts";
import {
  eventually,
  expectStatus,
  makeUserToken,
  reached,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";

let world: PreviewWorld;
beforeAll(async () => {
  world = await startPreviewWorld();
});
beforeEach(() => {
  world.heard.length = 0;
  world.sets.length = 0;
});
afterAll(() => world.close());

describe("a preview's cookie", () => {
  it("opens its own port of its own session, and not the API", async () => {
    const cookie = await world.cookie();
    const other = await runSession(world.service, world.pid);
    for (const host of [
      world.host.replace(`p${world.port}`, `p${world.port + 1}`),
      world.host.replace(world.sid, other),
    ]) {
      expect(ownPage(await world.visit(host, "/", { cookie }))).toBe(401);
    }
    // A used link does not lead on a browser with another session's cookie.
    const spent = await world.link();
    await world.visit(world.host, spent);
    const theirs = await world.cookie({ sid: other });
    expect(theirs).not.toBe("");
    expect(ownPage(await world.visit(world.host, spent, { cookie: theirs }))).toBe(401);
    const own = `127.0.0.1:${world.service.port}`;
    for (const target of ["/v1/me", `/v1/projects/${world.pid}/sessions/${world.sid}/ports/${world.port}/`]) {
      expect((await world.visit(own, target, { cookie })).status).toBe(401);
    }
    expect(world.heard).toEqual([]);
  });

  it("is found among those that a page put beside it [X17]", async () => {
    const cookie = await world.cookie();
    const planted = `platform_preview=${"x".repeat(43)}`;
    const beside = await world.visit(world.host, "/", { cookie: `${planted}; ${cookie}` });
    expect([beside.status, world.heard[0]?.headers.cookie]).toEqual([200, undefined]);
    expect(ownPage(await world.visit(world.host, "/", { cookie: planted }))).toBe(401);
  });

  it("cannot be set by the app, in an answer or in a handshake, while the app's own cookies pass [X17]", async () => {
    const cookie = await world.cookie();
    world.sets.push(
      "theirs=1; Path=/",
      "platform_preview=x",
      "=platform_preview=x",
      "__Host-platform_preview=x",
    );
    const page = await world.visit(world.host, "/", { cookie });
    expect(page.headers["set-cookie"]).toEqual(["theirs=1; Path=/"]);
    const { status, headers, socket } = await world.upgrade("/", { cookie });
    socket.destroy();
    expect([status, headers["set-cookie"]]).toEqual([101, ["theirs=1; Path=/"]]);
  });

  it("ends with the token that made its link [A07]", async () => {
    const { id, token } = await makeUserToken(world.service, { project_id: world.pid });
    const unopened = await world.link({ token });
    const cookie = await world.cookie({ token });
    expect((await world.visit(world.host, "/", { cookie })).status).toBe(200);
    expectStatus(await world.service.request("DELETE", `/v1/tokens/${id}`), 204);
    expect(ownPage(await world.visit(world.host, "/", { cookie }))).toBe(401);
    const late = await world.visit(world.host, unopened);
    const useless = late.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    expect(ownPage(await world.visit(world.host, "/", { cookie: useless }))).toBe(401);
  });
});

const own = () => `http://${world.host}`;
const sibling = () => own().replace(`p${world.port}`, "p1");
const status = async (headers: Record<string, string>, method = "GET") =>
  (await world.visit(world.host, "/", { method, cookie: await world.cookie(), headers })).status;
const fetched = (site: string, mode: string, dest: string) => ({
  "sec-fetch-site": site,
  "sec-fetch-mode": mode,
  "sec-fetch-dest": dest,
});

describe("another page in the same browser", () => {
  it("can navigate here, and cannot use the cookie otherwise", async () => {
    for (const site of ["cross-site", "same-site"]) {
      expect(await status(fetched(site, "navigate", "document"))).toBe(200);
      expect(await status(fetched(site, "navigate", "document"), "POST")).toBe(403);
      expect(await status(fetched(site, "navigate", "iframe"))).toBe(403);
      expect(await status(fetched(site, "cors", "empty"))).toBe(403);
      expect(await status(fetched(site, "no-cors", "script"))).toBe(403);
    }
    expect(await status({ origin: sibling() }, "POST")).toBe(403);
    expect(await status({ origin: sibling() })).toBe(403);
    expect(await status({ origin: "null" }, "POST")).toBe(403);
  });

  it("differs from the preview's own page, which may do everything", async () => {
    expect(await status({ origin: own() }, "POST")).toBe(200);
    expect(await status({ ...fetched("same-origin", "cors", "empty"), origin: own() }, "DELETE")).toBe(200);
    expect(await status({ ...fetched("same-origin", "navigate", "document"), origin: "null" }, "POST")).toBe(
      200,
    );
    expect(await status(fetched("none", "navigate", "document"))).toBe(200);
    expect(await status({}, "PUT")).toBe(200);
  });

  it("opens no WebSocket here [X09]", async () => {
    const cookie = await world.cookie();
    const handshake = async (headers: Record<string, string>) => {
      const { status: answered, socket } = await world.upgrade("/", { cookie, headers });
      socket.destroy();
      return answered;
    };
    expect(await handshake({ origin: own() })).toBe(101);
    expect(await handshake({ origin: sibling() })).toBe(403);
    expect(await handshake({ origin: "http://evil.example" })).toBe(403);
    expect(await handshake(fetched("same-site", "websocket", "empty"))).toBe(403);
    // No page asks for an upgrade by going somewhere.
    expect(await handshake(fetched("cross-site", "navigate", "document"))).toBe(403);
    expect(world.heard).toHaveLength(1);
    expect(world.heard[0]?.headers.cookie).toBeUndefined();
  });
});

describe("a stop of the session", () => {
  it("ends links and cookies permanently: a restart restores none", async () => {
    const brief = await startPreviewWorld();
    try {
      const cookie = await brief.cookie();
      const unopened = await brief.link();
      expect((await brief.visit(brief.host, "/", { cookie })).status).toBe(200);
      await stopSession(brief.service, brief.pid, brief.sid);
      const ended = await brief.visit(brief.host, "/", { cookie });
      expect(ownPage(ended)).toBe(409);
      expect(ended.text).toContain("The session is stopped");
      const restart = `/v1/projects/${brief.pid}/sessions/${brief.sid}/restart`;
      await eventually(async () => expect((await brief.service.request("POST", restart)).status).toBe(202));
      await reached(brief.service, brief.pid, brief.sid, "running");
      expect(ownPage(await brief.visit(brief.host, "/", { cookie }))).toBe(401);
      const late = await brief.visit(brief.host, unopened);
      const useless = late.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
      expect(ownPage(await brief.visit(brief.host, "/", { cookie: useless }))).toBe(401);
      await brief.service.request("DELETE", `/v1/projects/${brief.pid}/sessions/${brief.sid}`);
      expect(ownPage(await brief.visit(brief.host, "/", { cookie }))).toBe(404);
    } finally {
      await brief.close();
    }
  });
});

describe("PLATFORM_PREVIEW_URL", () => {
  it("puts previews below the operator's domain, with the browser's own protection on the cookie", async () => {
    const wide = await startPreviewWorld({
      PLATFORM_PREVIEW_URL: "https://*.preview.example.com",
      PLATFORM_PUBLIC_URL: "https://agents.preview.example.com",
    });
    try {
      expect(wide.host).toBe(`p${wide.port}-${wide.sid}.preview.example.com`);
      const opened = await wide.visit(wide.host, await wide.link());
      const cookie = opened.headers["set-cookie"]?.[0] ?? "";
      expect(cookie).toMatch(/^__Host-platform_preview=[\w-]{43}; Path=\/; .*; Secure$/);
      const [name = ""] = cookie.split(";");
      wide.heard.length = 0;
      expect((await wide.visit(wide.host, "/", { cookie: name })).text).toBe("app /");
      expect(wide.heard[0]?.headers).toMatchObject({
        // A development server refuses names that it does not know.
        host: `127.0.0.1:${wide.port}`,
        "x-forwarded-host": wide.host,
        "x-forwarded-proto": "https",
      });
      const bare = name.replace("__Host-", "");
      expect(ownPage(await wide.visit(wide.host, "/", { cookie: bare }))).toBe(401);
      const besides = { origin: `https://p1-${wide.sid}.preview.example.com` };
      expect((await wide.visit(wide.host, "/", { cookie: name, headers: besides })).status).toBe(403);
      const authorization = { authorization: `Bearer ${wide.service.token}` };
      expect(
        (await wide.visit("agents.preview.example.com", "/v1/me", { headers: authorization })).status,
      ).toBe(200);
      expect(
        ownPage(await wide.visit("other.preview.example.com", "/v1/me", { headers: authorization })),
      ).toBe(404);
    } finally {
      await wide.close();
    }
  });
});
