/** Attacks on a sign-in at a provider: forged callbacks and answers, and where they would lead (threats.md T13). */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Browser, SECRET, startSignInWorld, type SignInWorld } from "./sign-in-world.ts";

let world: SignInWorld;
beforeAll(async () => {
  world = await startSignInWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

/** Follows a callback that must not sign anybody in. */
const refused = async (browser: Browser, target: string) => {
  const answer = await browser.ask("GET", target);
  expect([answer.status, browser.cookies.size]).toEqual([expect.toSatisfy((s) => s === 400 || s === 403), 0]);
  return answer;
};

describe("a callback", () => {
  it("opens no session without the flow's cookie, with a planted one, or with another browser's [T13]", async () => {
    const victim = new Browser(world.open);
    const attacker = new Browser(world.open);
    const theirs = await attacker.visit("oidc");
    await refused(victim, theirs);
    for (const planted of ["x", "A".repeat(200), "eyJzdGF0ZSI6IngifQ", "A".repeat(5000)]) {
      victim.cookies.set("platform_sign_in", planted);
      await refused(victim, theirs);
    }
    // The victim's own flow has begun, and the attacker's link is followed in her browser.
    await victim.visit("oidc");
    await refused(victim, theirs);
    expect(await victim.me()).toBe(401);
  });

  it("of one provider is not taken for another one's [T13]", async () => {
    const browser = new Browser(world.open);
    const back = await browser.visit("oidc");
    // The other provider is not even asked: for it, this browser has no flow.
    expect((await refused(browser, back.replace("/callback/oidc", "/callback/github"))).status).toBe(400);
    const other = new Browser(world.open);
    const [, query = ""] = (await other.visit("oidc")).split("?");
    const [own = ""] = (await other.visit("github")).split("?");
    await refused(other, `${own}?${query}`);
  });

  it("works once", async () => {
    const browser = new Browser(world.open);
    const back = await browser.visit("github");
    const kept = new Map(browser.cookies);
    expect((await browser.ask("GET", back)).status).toBe(303);
    const replay = new Browser(world.open);
    for (const [name, value] of kept) replay.cookies.set(name, value);
    await refused(replay, back);
  });

  it.each<readonly [string, () => void]>([
    ["the wrong issuer", () => (world.idp.falsify = ({ payload }) => (payload.iss = "https://evil.example"))],
    ["no issuer", () => (world.idp.falsify = ({ payload }) => Reflect.deleteProperty(payload, "iss"))],
    ["another nonce", () => (world.idp.falsify = ({ payload }) => (payload["nonce"] = "another"))],
    ["no nonce", () => (world.idp.falsify = ({ payload }) => Reflect.deleteProperty(payload, "nonce"))],
    ["another audience", () => (world.idp.falsify = ({ payload }) => (payload["aud"] = "another"))],
    ["a time that is over", () => (world.idp.falsify = ({ payload }) => (payload.exp = 1))],
    ["no subject", () => (world.idp.falsify = ({ payload }) => Reflect.deleteProperty(payload, "sub"))],
    [
      "the algorithm none",
      () =>
        (world.idp.replace = ({ body }) => {
          if (body === "") return;
          const [, payload = ""] = String(body["id_token"]).split(".");
          const header = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
          body["id_token"] = `${header}.${payload}.`;
        }),
    ],
    [
      "another key's signature",
      () =>
        (world.idp.replace = ({ body }) => {
          if (body === "") return;
          const [header, payload, signature = ""] = String(body["id_token"]).split(".");
          const other = signature.startsWith("A") ? "B" : "A";
          body["id_token"] = [header, payload, other + signature.slice(1)].join(".");
        }),
    ],
    [
      "no ID token",
      () =>
        (world.idp.replace = ({ body }) => {
          if (body !== "") Reflect.deleteProperty(body, "id_token");
        }),
    ],
  ])("with %s in the provider's answer is refused, and recorded [T13]", async (_, change) => {
    world.idp.claims["sub"] = "victim";
    change();
    const browser = new Browser(world.open);
    const before = world.open.logs.length;
    const answer = await refused(browser, await browser.visit("oidc"));
    expect(answer.text).toContain("The sign-in was refused");
    const line = world.open.logs.slice(before).find((text) => text.includes("a sign-in was refused"));
    expect(line).toMatch(/"kind":"refused"/);
    world.idp.reset();
    world.idp.claims["sub"] = "victim";
    expect((await new Browser(world.open).signIn("oidc")).status).toBe(303);
  });

  it("with another issuer in its address is refused [T13]", async () => {
    const browser = new Browser(world.open);
    const back = await browser.visit("oidc");
    await refused(browser, `${back}&iss=${encodeURIComponent("https://evil.example")}`);
  });

  it("with another state in its address is refused [T13]", async () => {
    const browser = new Browser(world.open);
    const back = await browser.visit("github");
    await refused(browser, back.replace(/state=[^&]+/, "state=another"));
  });

  it("with a GitHub user without a numeric id is refused [T13]", async () => {
    world.github.user = { id: "583231", login: "octocat", name: null, organizations: ["acme"] };
    const browser = new Browser(world.open);
    await refused(browser, await browser.visit("github"));
  });

  it("leads to / for a return path outside the page [T13]", async () => {
    const answer = await new Browser(world.open).signIn("oidc", encodeURIComponent("//evil.example"));
    expect([answer.status, answer.headers["location"]]).toEqual([303, "/"]);
  });
});

/** The rows of people and browsers. */
const rowsOf = (service: SignInWorld["open"]) =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      return JSON.stringify([
        yield* sql`SELECT * FROM users`,
        yield* sql`SELECT * FROM tokens`,
        yield* sql`SELECT * FROM identities`,
      ]);
    }),
  );

it("leaves no code, token or client secret in the log, the tables or the pages [T13]", async () => {
  const texts: string[] = [];
  const seen: string[] = [];
  world.idp.replace = ({ body }) => {
    if (body !== "") seen.push(String(body["access_token"]), String(body["id_token"]));
  };
  for (const isRight of [true, false]) {
    if (!isRight) world.idp.falsify = ({ payload }) => (payload["nonce"] = "another");
    for (const provider of ["oidc", "github"] as const) {
      const browser = new Browser(world.open);
      const back = await browser.visit(provider);
      seen.push(new URLSearchParams(back.split("?")[1]).get("code") ?? "none");
      const answer = await browser.ask("GET", back);
      texts.push(answer.text, JSON.stringify(answer.headers));
    }
  }
  seen.push(...world.github.secrets, SECRET);
  texts.push(...world.open.logs, await rowsOf(world.open));
  expect(seen.length).toBeGreaterThan(8);
  for (const secret of seen) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});

/** The button of the page to which another page's link leads. */
const press = (headers: Readonly<Record<string, string>>) =>
  world.open.request("POST", "/dashboard/login/oidc", {
    token: null,
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    stream: "return=%2F%23%2Fsessions",
  });

describe("a sign-in", () => {
  it.each([["cross-site"], ["same-site"], [undefined]])(
    "is not begun by a link of a page that the browser calls %s, but by its button [T08]",
    async (site) => {
      const headers = site === undefined ? {} : { "sec-fetch-site": site };
      const target = "/dashboard/login/oidc?return=/%23/sessions";
      const shown = await world.open.request("GET", target, { token: null, headers });
      expect([shown.status, shown.headers["set-cookie"]]).toEqual([200, undefined]);
      expect(shown.text).toContain('<form method="post" action="/dashboard/login/oidc">');
      expect(shown.text).toContain('name="return" value="/#/sessions"');
      const pressed = await press({ ...headers, "sec-fetch-site": "same-origin", origin: world.open.url });
      expect(pressed.headers["refresh"]).toMatch(new RegExp(`^0;url=${world.idp.issuer}`));
      expect(String(pressed.headers["set-cookie"])).toContain("platform_sign_in=");
    },
  );

  it.each([{ origin: "http://p1.localhost" }, { origin: "null" }, { "sec-fetch-site": "same-site" }])(
    "is not begun by a form of another page: %o [T08]",
    async (headers) => {
      const answer = await press(headers);
      expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
    },
  );
});
