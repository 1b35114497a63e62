/** Signing in at a provider, over the real service: who gets in, and how browsers keep it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { githubProvider } from "../../../src/sign-in/github.ts";
import { oidcProvider } from "../../../src/sign-in/oidc.ts";
import { GithubLogin } from "../../support/servers/github-login.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { expectStatus, fields, listOf } from "../../support/service/requests.ts";
import { auditOf } from "./audit-rows.ts";
import {
  Browser,
  CLIENT,
  DOMAIN,
  invited,
  SECRET,
  startSignInWorld,
  type SignInWorld,
  withToken,
} from "./sign-in-world.ts";

let world: SignInWorld;
beforeAll(async () => {
  world = await startSignInWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

const peopleOf = async (service: TestService): Promise<number> =>
  listOf(await service.request("GET", "/v1/people"), "people").length;

describe("signing in at a provider", () => {
  it("says which providers there are, and knows no other one", async () => {
    const { providers } = fields(await world.open.request("GET", "/dashboard/providers", { token: null }));
    expect(providers).toEqual([
      { id: "oidc", label: new URL(world.idp.issuer).host },
      { id: "github", label: "GitHub" },
    ]);
    expect((await new Browser(world.open).ask("GET", "/dashboard/login/gitlab")).status).toBe(404);
  });

  it.each(["oidc", "github"] as const)("makes a member who may sign up at %s, once", async (provider) => {
    const browser = new Browser(world.open);
    const answer = await browser.signIn(provider, encodeURIComponent("/#/account"));
    expect([answer.status, answer.headers["location"]]).toEqual([303, "/#/account"]);
    const me = await browser.me();
    expect(me).toMatchObject({ name: provider === "oidc" ? "Ada" : "The Octocat", role: "member" });
    expect([...browser.cookies.keys()]).toEqual(["platform_dashboard"]);
    const again = new Browser(world.open);
    await again.signIn(provider);
    expect(await again.me()).toEqual(me);
    const browsers = listOf(await again.ask("GET", "/v1/me/browsers"), "browsers");
    expect(browsers.map(({ signed_in_by, token_id }) => [signed_in_by, token_id])).toEqual([
      [provider, null],
      [provider, null],
    ]);
  });

  it("keeps the session's cookie strict, and the flow's lax and short [T13]", async () => {
    const browser = new Browser(world.open);
    const begun = await browser.ask("GET", "/dashboard/login/oidc");
    expect(String(begun.headers["set-cookie"])).toMatch(
      /^platform_sign_in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const answer = await browser.signIn("oidc");
    expect(String(answer.headers["set-cookie"])).toMatch(
      /platform_dashboard=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict/,
    );
  });

  it("names the flow's cookie for this host alone over https [T13]", async () => {
    const secure = await startTestService(
      { PLATFORM_PUBLIC_URL: "https://platform.example" },
      { signIn: [githubProvider({ clientId: CLIENT.id, clientSecret: SECRET, organization: null })] },
    );
    const headers = { "sec-fetch-site": "none" };
    const begun = await secure.request("GET", "/dashboard/login/github", { token: null, headers });
    expect(String(begun.headers["set-cookie"])).toMatch(
      /^__Host-platform_sign_in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    const { origin, searchParams } = new URL(String(begun.headers["location"]));
    expect(origin).toBe("https://github.com");
    expect(searchParams.get("redirect_uri")).toBe("https://platform.example/dashboard/callback/github");
    expect(searchParams.get("code_challenge_method")).toBe("S256");
    await secure.close();
  });

  it("says to a stranger that she needs an invitation, and makes no person", async () => {
    const before = await peopleOf(world.invitedOnly);
    for (const provider of ["oidc", "github"] as const) {
      const browser = new Browser(world.invitedOnly);
      const answer = await browser.signIn(provider);
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("You need an invitation")]);
      expect(answer.headers["content-security-policy"]).toContain("default-src 'none'");
      expect([...browser.cookies]).toEqual([]);
    }
    expect(await peopleOf(world.invitedOnly)).toBe(before);
  });

  it.each([
    ["an address that is not verified", { email_verified: false }, "claim email_verified"],
    ["a missing verification", { email_verified: undefined }, "no claim email_verified"],
    ["another domain", { email: `ada@evil-${DOMAIN}` }, "of no domain"],
  ])("makes no person of %s, and says why [T13]", async (_, changed, cause) => {
    Object.assign(world.idp.claims, { sub: "grace" }, changed);
    const answer = await new Browser(world.open).signIn("oidc");
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("You need an invitation")]);
    expect(answer.text).toContain(cause);
    expect(world.open.logs.findLast((line) => line.includes("a sign-in was refused"))).toContain(cause);
    expect((await auditOf(world.open, "sign_in"))[0]).toMatchObject({
      outcome: "refused",
      changes: { why: "unknown", cause: expect.any(String) },
    });
  });

  it("does not take an address of the user info for the one that the ID token verified [T13]", async () => {
    world.idp.claims = { sub: "mixed", email: `mixed@${DOMAIN}` };
    world.idp.falsify = ({ payload }) =>
      Object.assign(payload, { email: "mixed@evil.test", email_verified: true });
    expectStatus(await new Browser(world.open).signIn("oidc"), 403);
  });

  it("takes the user info's word for an address of which the ID token says nothing, and for no other [T13]", async () => {
    Object.assign(world.idp.claims, { sub: "quiet", email: `quiet@${DOMAIN}`, email_verified: true });
    const says = (email: string) => {
      world.idp.falsify = ({ payload }) => Object.assign(payload, { email, email_verified: undefined });
    };
    says(`other@${DOMAIN}`);
    expectStatus(await new Browser(world.open).signIn("oidc"), 403);
    says(`quiet@${DOMAIN}`);
    expectStatus(await new Browser(world.open).signIn("oidc"), 303);
  });

  it("makes no person of a GitHub user outside the organization [T13]", async () => {
    world.github.user = { id: 7, login: "mallory", name: null, organizations: ["acme-evil"] };
    expect((await new Browser(world.open).signIn("github")).status).toBe(403);
  });

  it("joins by an invitation once, with its role, and knows the person afterwards", async () => {
    const code = await invited(world.invitedOnly, { role: "owner" });
    const browser = new Browser(world.invitedOnly);
    const joined = await browser.signIn("oidc", { invitation: code, return: "/#/account" });
    expect([joined.status, joined.headers["location"]]).toEqual([303, "/#/account"]);
    expect((await auditOf(world.invitedOnly, "invitation.accepted"))[0]).toMatchObject({
      outcome: "done",
      actor: { kind: "person", name: "Ada" },
      changes: { by: "oidc" },
    });
    expect(await browser.me()).toMatchObject({ name: "Ada", role: "owner" });
    world.idp.claims["sub"] = "eve";
    const late = await new Browser(world.invitedOnly).signIn("oidc", { invitation: code });
    expect([late.status, late.text]).toEqual([403, expect.stringContaining("This invitation is over")]);
    world.idp.claims["sub"] = "ada";
    const again = new Browser(world.invitedOnly);
    await again.signIn("oidc");
    expect(await again.me()).toEqual(await browser.me());
  });

  it("is refused for a deactivated person", async () => {
    const browser = new Browser(world.open);
    world.idp.claims["sub"] = "leaver";
    await browser.signIn("oidc");
    const { id } = (await browser.me()) as { id: string };
    expectStatus(await world.open.request("POST", `/v1/people/${id}/deactivate`), 200);
    expect(await browser.me()).toBe(401);
    const answer = await browser.signIn("oidc");
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("deactivated")]);
    expect(await browser.me()).toBe(401);
    const [refused, entered] = await auditOf(world.open, "sign_in");
    expect(refused).toMatchObject({
      outcome: "refused",
      actor: { kind: "unknown", id: null },
      changes: { by: "oidc", why: "deactivated" },
    });
    expect(entered).toMatchObject({
      outcome: "done",
      actor: { kind: "person", id },
      changes: { by: "oidc", new: true },
    });
  });

  it("says that the provider does not answer, to a person and to the page, and records it", async () => {
    const closed = await GithubLogin.open(CLIENT);
    const issuer = closed.url;
    await closed.close();
    const service = await startTestService(
      {},
      { signIn: [oidcProvider({ issuer, clientId: CLIENT.id, clientSecret: SECRET, allowedDomains: [] })] },
    );
    const browser = new Browser(service);
    const followed = await browser.ask("GET", "/dashboard/login/oidc");
    expect([followed.status, followed.text]).toEqual([502, expect.stringContaining("does not answer")]);
    const asked = await browser.ask("POST", "/dashboard/login/oidc", {});
    expect([asked.status, fields(asked)["code"]]).toEqual([502, "provider_unreachable"]);
    expect(service.logs.filter((line) => line.includes("a sign-in could not begin")).length).toBe(2);
    await service.close();
  });

  it("lets in who is in a group, if groups count, also by an invitation [T13]", async () => {
    const groups = { claim: "groups", allowed: ["engineering"] };
    const client = { clientId: CLIENT.id, clientSecret: SECRET, allowedDomains: [] };
    const signIn = [oidcProvider({ ...client, issuer: world.idp.issuer, groups })];
    const service = await startTestService({}, { signIn });
    const enter = async (given: unknown) => {
      world.idp.claims = { ...world.idp.claims, groups: given };
      return new Browser(service).signIn("oidc", { invitation: await invited(service) });
    };
    const refused = await enter(["Engineering"]);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("not in a group")]);
    const [row] = await auditOf(service, "sign_in");
    expect(row).toMatchObject({ outcome: "refused", changes: { why: "not_in_a_group" } });
    world.idp.falsify = ({ payload }) => Object.assign(payload, { _claim_names: { groups: "src1" } });
    const many = await enter(undefined);
    expect([many.status, many.text]).toEqual([403, expect.stringContaining("so many groups")]);
    expect(service.logs.findLast((line) => line.includes("a sign-in was refused"))).toContain(
      "so many groups",
    );
    world.idp.falsify = () => undefined;
    expect((await enter(["sales", "engineering"])).status).toBe(303);
    expect((await auditOf(service, "invitation.accepted"))[0]).toMatchObject({ outcome: "done" });
    await service.close();
  });

  it("says that the person cancelled", async () => {
    world.github.user = null;
    const answer = await new Browser(world.open).signIn("github");
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining("cancelled")]);
  });
});

describe("adding a provider to oneself", () => {
  it("lets a person sign in with it from then on", async () => {
    world.idp.claims["sub"] = "admin-at-the-provider";
    const { browser, csrf } = await withToken(world.invitedOnly, world.invitedOnly.token);
    const linked = await browser.signIn("oidc", { link: true, return: "/#/account" }, csrf);
    expect([linked.status, linked.headers["location"]]).toEqual([303, "/#/account"]);
    expect((await auditOf(world.invitedOnly, "identity.linked"))[0]).toMatchObject({
      outcome: "done",
      actor: { kind: "person", name: "admin" },
      changes: { by: "oidc" },
    });
    const later = new Browser(world.invitedOnly);
    await later.signIn("oidc");
    expect(await later.me()).toEqual(await browser.me());
  });

  it("needs the page's own header, a browser, and a token of the whole account [T13]", async () => {
    const { browser, csrf } = await withToken(world.open, world.open.token);
    const target = "/dashboard/login/oidc";
    expect((await browser.ask("POST", target, { link: true })).status).toBe(403);
    expect((await new Browser(world.open).ask("POST", target, { link: true })).status).toBe(401);
    expect((await world.open.request("POST", target, { body: { link: true } })).status).toBe(403);
    const project = await world.open.request("POST", "/v1/projects", {
      body: { name: "p", repository: { kind: "hosted" } },
    });
    const body = { name: "bound", project_id: fields(project)["id"] };
    const bound = fields(await world.open.request("POST", "/v1/tokens", { body }));
    const small = await withToken(world.open, String(bound["token"]));
    expect((await small.browser.ask("POST", target, { link: true }, small.csrf)).status).toBe(403);
    expect((await browser.ask("POST", target, { link: true }, csrf)).status).toBe(200);
  });
});
