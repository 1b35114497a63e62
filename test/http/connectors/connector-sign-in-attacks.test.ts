/** Attacks on a sign-in to a connector: forged callbacks, mixed-up servers, and metadata that leads elsewhere. */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { expectStatus, fields } from "../../support/service/requests.ts";
import { connectorEntry } from "./executor-world.ts";
import { Browser, ConnectorWorld, oauthManifest } from "./connector-sign-in-world.ts";
import { invited, withToken } from "../people/sign-in-world.ts";

let world: ConnectorWorld;
/** Hears every connection to an address that must not be reached. */
let trap: Server;
let touched = 0;
let trapPort = 0;
beforeAll(async () => {
  world = await ConnectorWorld.start();
  trap = createServer((_, response) => void response.writeHead(200).end("{}"));
  trap.on("connection", () => (touched += 1));
  trap.listen(0, "127.0.0.1");
  await once(trap, "listening");
  trapPort = (trap.address() as AddressInfo).port;
});
afterAll(async () => {
  await world.close();
  trap.closeAllConnections();
  trap.close();
});
beforeEach(() => {
  world.reset();
  touched = 0;
});

/** Follows a callback that must not sign in. */
const refused = async (browser: Browser, target: string, status = 400): Promise<string> =>
  expectStatus(await browser.ask("GET", target), status).text;

const isSignedIn = async (project: string): Promise<boolean> =>
  (await world.connector(project))["sign_in"] !== null;

describe("a callback", () => {
  it("signs in only in the browser that opened the address, and leaves the person's own sign-in alone [K16]", async () => {
    const project = await world.project();
    const owner = await world.owner();
    const back = await world.visit(project, owner);
    const stranger = new Browser(world.service);
    await refused(stranger, back);
    for (const planted of ["x", "A".repeat(43), "A".repeat(5000)]) {
      stranger.cookies.set("platform_connector", planted);
      await refused(stranger, back);
    }
    // The same person in another browser, with a sign-in of another project under way.
    const other = await world.owner();
    await world.visit(await world.project(), other);
    await refused(other, back);
    expect(world.login.tokenForms).toEqual([]);
    expect(await isSignedIn(project)).toBe(false);
    expect((await owner.ask("GET", back)).status).toBe(303);
    expect(await isSignedIn(project)).toBe(true);
  });

  it("works once, also with the cookie [K16]", async () => {
    const project = await world.project();
    const owner = await world.owner();
    const back = await world.visit(project, owner);
    const kept = new Map(owner.cookies);
    expect((await owner.ask("GET", back)).status).toBe(303);
    world.login.tokenForms.length = 0;
    for (const [name, value] of kept) owner.cookies.set(name, value);
    await refused(owner, back);
    expect(world.login.tokenForms).toEqual([]);
  });

  it.each<readonly [string, Readonly<Record<string, string>>]>([
    ["the iss of another server", { iss: "https://evil.example.com" }],
    ["an empty iss", { iss: "" }],
  ])("with %s sends no code anywhere [K16]", async (_, redirect) => {
    const project = await world.project();
    const owner = await world.owner();
    world.login.redirect = redirect;
    const back = await world.visit(project, owner);
    expect(await refused(owner, back, 403)).toContain("The sign-in was refused");
    expect(world.login.tokenForms).toEqual([]);
    expect(await isSignedIn(project)).toBe(false);
  });

  it("with the state of another connector, or without one, signs in to neither [K16]", async () => {
    const two = `${oauthManifest(world.server.url)}\n${connectorEntry("other", world.server.url)}auth = "oauth"\n`;
    const project = await world.executor.newProject(two);
    const owner = await world.owner();
    const first = new URL(await world.visit(project, owner), world.service.url);
    const second = new URL(await world.visit(await world.project(), owner), world.service.url);
    const mixed = new URL(second);
    mixed.searchParams.set("state", first.searchParams.get("state") ?? "");
    await refused(owner, `${mixed.pathname}${mixed.search}`);
    mixed.searchParams.delete("state");
    await refused(owner, `${mixed.pathname}${mixed.search}`);
    expect(world.login.tokenForms).toEqual([]);
  });

  it("with a refusal of the server says so, and stores nothing", async () => {
    const project = await world.project();
    const owner = await world.owner();
    world.login.redirect = { error: "access_denied", error_description: "<script>alert(1)</script>" };
    const text = await refused(owner, await world.visit(project, owner), 403);
    expect(text).toContain("The sign-in was cancelled");
    expect(text).not.toContain("<script>alert");
    expect(await isSignedIn(project)).toBe(false);
  });

  it("after the manifest moved the connector, or its person lost her role, signs in to nothing [K16]", async () => {
    const project = await world.project();
    const { user, token } = await invite(project);
    const { browser } = await withToken(world.service, token);
    const { url } = fields(expectStatus(await world.authorize(project, token), 200));
    const back = await visitAt(browser, String(url).replace(world.service.url, ""));
    const member = `/v1/projects/${project}/members/${user}`;
    expectStatus(await world.service.request("PUT", member, { body: { role: "member" } }), 204);
    await refused(browser, back, 409);
    expect(world.login.tokenForms).toEqual([]);
  });
});

/** A person who is an owner of this project alone. */
const invite = async (project: string): Promise<{ readonly user: string; readonly token: string }> => {
  const code = await invited(world.service, { projects: [{ project_id: project, role: "owner" }] });
  const accepted = fields(
    expectStatus(
      await world.service.request("POST", "/dashboard/invitations/accept", {
        token: null,
        body: { code, name: "Eve" },
      }),
      201,
    ),
  );
  return {
    user: String((accepted["user"] as { readonly id: unknown }).id),
    token: String(accepted["token"]),
  };
};

const visitAt = async (browser: Browser, address: string): Promise<string> => {
  const there = expectStatus(await browser.ask("GET", address), 303);
  const back = await fetch(String(there.headers["location"]), { redirect: "manual" });
  return (back.headers.get("location") ?? "").replace(world.service.url, "");
};

describe("the address of a sign-in", () => {
  it("opens for its own person only, once, and not without the page's session [K16]", async () => {
    const project = await world.project();
    const address = await world.address(project);
    const stranger = new Browser(world.service);
    expect(await refused(stranger, address, 401)).toContain("Sign in to this service first");
    const { token } = await invite(project);
    await refused((await withToken(world.service, token)).browser, address);
    expectStatus(await world.service.request("GET", address), 401);
    const owner = await world.owner();
    expect((await owner.ask("GET", address)).status).toBe(303);
    await refused(await world.owner(), address);
  });
});

/** A project without a sign-in. */
let refusing: Promise<string> | null = null;
/** What the API says when a sign-in cannot begin. */
const beginning = async (): Promise<string> => {
  const answer = await world.authorize(await (refusing ??= world.project()));
  return expectStatus(answer, 502).text;
};

/** One over http, one over https. test/ground/net/address.test.ts has the other spellings. */
const elsewhere = () => [`http://localhost:${trapPort}`, `https://[::ffff:127.0.0.1]:${trapPort}`];

describe("metadata of a server", () => {
  it("that names a sign-in server at a private address leads to no connection [K17]", async () => {
    for (const place of elsewhere()) {
      const guard = world.server.guard;
      world.server.guard = (request, response) => {
        if (request.url?.startsWith("/.well-known/") !== true) return guard?.(request, response) ?? false;
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ resource: world.server.url, authorization_servers: [place] }));
        return true;
      };
      expect(await beginning()).toMatch(/private address|not https|not an https/);
      world.login.protect(world.server);
    }
    expect(touched).toBe(0);
  });

  it.each(["registration_endpoint", "token_endpoint", "authorization_endpoint"])(
    "whose %s is private, plain http or no URL gets no byte of a credential [K17]",
    async (field) => {
      for (const place of elsewhere().filter(
        (one) => !one.startsWith("https") || field !== "authorization_endpoint",
      )) {
        world.login.reset();
        world.login.metadata = { [field]: place };
        const project = await world.project();
        const begun = await world.authorize(project);
        if (begun.status === 502) continue;
        const owner = await world.owner();
        const address = String(fields(expectStatus(begun, 200))["url"]).replace(world.service.url, "");
        const back = await visitAt(owner, address);
        expect([403, 502]).toContain((await owner.ask("GET", back)).status);
        expect(await isSignedIn(project)).toBe(false);
      }
      expect(touched).toBe(0);
    },
  );

  it("that redirects, by 302 or 307, is not followed, also for tokens [K17]", async () => {
    for (const [status, path] of [
      [302, "/.well-known/oauth-authorization-server"],
      [307, "/register"],
      [307, "/token"],
    ] as const) {
      world.login.instead = (url, response) => {
        if (url.pathname !== path) return false;
        response.writeHead(status, { location: `http://127.0.0.1:${trapPort}/` }).end();
        return true;
      };
      const project = await world.project();
      const begun = await world.authorize(project);
      if (begun.status === 502) {
        expect(begun.text).toContain("redirects");
        continue;
      }
      const owner = await world.owner();
      const address = String(fields(expectStatus(begun, 200))["url"]).replace(world.service.url, "");
      await refused(owner, await visitAt(owner, address), 502);
    }
    expect(touched).toBe(0);
  });

  it("without PKCE is refused", async () => {
    world.login.metadata = { code_challenge_methods_supported: ["plain"] };
    expect(await beginning()).toContain("does not offer PKCE with S256");
  });

  it("that is too large, endless or no JSON is bounded, and the reason is told [K17]", async () => {
    const bodies: readonly [string, string][] = [
      ["{".padEnd(300 * 1024, " "), "more than 262144 bytes"],
      ["<html>", "lacks what it must have"],
      ['{"issuer": 7}', "lacks what it must have"],
    ];
    for (const [body, reason] of bodies) {
      world.login.instead = (_, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(body);
        return true;
      };
      expect(await beginning()).toContain(reason);
    }
  });
});
