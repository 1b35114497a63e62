/** Signing in at a real OpenID Connect provider, in a real browser: the whole way, with the cookies as a browser treats them. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { oidcProvider } from "../../../src/sign-in/oidc.ts";
import { OidcProvider } from "../../support/servers/oidc-provider.ts";
import { expectStatus, fields, listOf } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { followLink, hasChromium, launch, newPage } from "../browser.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const CLIENT = { id: "platform", secret: "a-secret-of-the-client" };

/** Logs in on the provider's own pages. */
const logIn = async (page: Page, name: string): Promise<void> => {
  await page.getByPlaceholder("Enter any login").fill(name);
  await page.getByPlaceholder("and password").fill("anything");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
};

const title = hasChromium
  ? "signing in by a provider"
  : "signing in by a provider (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let provider: OidcProvider;
  let service: TestService;
  let browser: Browser;
  let label = "";

  beforeAll(async () => {
    provider = await OidcProvider.open();
    provider.groups.set("gina", ["sales", "engineering"]);
    provider.groups.set("uma", "engineering");
    provider.groups.set("max", [...Array.from({ length: 10_000 }, (_, of) => `group-${of}`), "engineering"]);
    provider.groups.set("sam", ["sales", "Engineering"]);
    label = new URL(provider.issuer).host;
    service = await startTestService(
      {},
      {
        signIn: [
          oidcProvider({
            issuer: provider.issuer,
            clientId: CLIENT.id,
            clientSecret: CLIENT.secret,
            allowedDomains: [],
          }),
        ],
      },
    );
    provider.serve({ ...CLIENT, redirectUri: `${service.url}/dashboard/callback/oidc` });
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    await provider?.close();
  });

  it("joins by an invitation, signs in again where the page was, and is signed out everywhere [T13]", async () => {
    const invited = await service.request("POST", "/v1/invitations", { body: { name: "Mia" } });
    const { url } = fields(expectStatus(invited, 201));
    const first = await newPage(browser);
    await first.page.goto(String(url));
    await first.page.getByRole("button", { name: `Join with ${label}` }).click();
    await logIn(first.page, "mia");
    await first.page.getByRole("heading", { name: "Home" }).waitFor();
    expect(first.page.url()).toBe(`${service.url}/`);
    const cookies = await first.context.cookies(service.url);
    expect(cookies.map(({ name, sameSite, httpOnly }) => [name, sameSite, httpOnly])).toEqual([
      ["platform_dashboard", "Strict", true],
    ]);

    const second = await newPage(browser);
    await second.page.goto(`${service.url}/#/browsers`);
    await second.page.getByRole("link", { name: `Sign in with ${label}` }).click();
    await logIn(second.page, "mia");
    await second.page.getByRole("heading", { name: "Browsers" }).waitFor();
    expect(second.page.url()).toBe(`${service.url}/#/browsers`);
    await second.page.getByText("this browser").waitFor();
    expect(await second.page.getByRole("list", { name: "Browsers" }).getByRole("listitem").count()).toBe(2);
    await second.page.getByText(`mia at ${label}`).waitFor();

    await second.page.getByRole("button", { name: "Sign out everywhere" }).click();
    await second.page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
    await second.page.getByLabel("Access token").waitFor();
    await first.page.reload();
    await first.page.getByLabel("Access token").waitFor();
    await Promise.all([first.context.close(), second.context.close()]);
  });

  deepTest("says that a one-time link is used or expired, once", async () => {
    const { page, context } = await newPage(browser);
    await page.goto(`${service.url}/dashboard/open?code=used`);
    await page.getByText("This one-time link was used before, or has expired.").waitFor();
    expect(page.url()).toBe(`${service.url}/`);
    await page.reload();
    await page.getByLabel("Access token").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await context.close();
  });

  deepTest("tells a stranger that she needs an invitation, and lets her go back", async () => {
    const { page, context } = await newPage(browser);
    await page.goto(service.url);
    await page.getByRole("link", { name: `Sign in with ${label}` }).click();
    await logIn(page, "stranger");
    await page.getByRole("heading", { name: "You need an invitation" }).waitFor();
    await page.getByRole("link", { name: "Back to the sign-in" }).click();
    await page.getByLabel("Access token").waitFor();
    await context.close();
  });

  deepTest("lets a person add the provider to herself", async () => {
    const { page, context } = await newPage(browser);
    const { url } = fields(expectStatus(await service.request("POST", "/dashboard/links"), 201));
    await followLink(page, String(url));
    await page.goto(`${service.url}/#/browsers`);
    await page.getByRole("button", { name: `Add ${label}` }).click();
    await logIn(page, "admin-there");
    await page.getByRole("heading", { name: "Browsers" }).waitFor();
    await context.clearCookies();
    await page.goto(`${service.url}/?again#/account`);
    await page.getByRole("link", { name: `Sign in with ${label}` }).click();
    await logIn(page, "admin-there");
    await page.getByText("Signed in as").waitFor();
    expect(await page.locator(".facts").innerText()).toContain("admin");
    await context.close();
  });

  deepTest("lets in only who is in one of the groups [T13]", async () => {
    const { issuer } = provider;
    const options = { issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, allowedDomains: [] };
    const groups = { claim: "groups", allowed: ["engineering"] };
    const settings = {
      PLATFORM_SIGN_UP: "allowed",
      PLATFORM_OIDC_ISSUER: issuer,
      PLATFORM_OIDC_CLIENT_ID: CLIENT.id,
      PLATFORM_OIDC_CLIENT_SECRET_FILE: "unread",
      PLATFORM_OIDC_GROUPS_CLAIM: groups.claim,
      PLATFORM_OIDC_ALLOWED_GROUPS: "engineering",
      PLATFORM_PORT: String(service.port),
    };
    await service.close();
    // At the address that the provider knows.
    service = await startTestService(settings, { signIn: [oidcProvider({ ...options, groups })] });
    for (const [name, heading] of [
      ["gina", "Home"],
      ["uma", "Home"],
      ["max", "Home"],
      ["sam", "You may not sign in here"],
      ["nora", "You may not sign in here"],
    ] as const) {
      const { page, context } = await newPage(browser);
      await page.goto(`${service.url}/`);
      await page.getByRole("link", { name: `Sign in with ${label}` }).click();
      await logIn(page, name);
      await page.getByRole("heading", { name: heading }).waitFor();
      await context.close();
    }
    const refused = await service.request("GET", "/v1/audit?action=sign_in");
    const rows = listOf(expectStatus(refused, 200), "events").filter(({ outcome }) => outcome === "refused");
    expect(rows.map(({ changes }) => changes)).toEqual([
      { by: "oidc", why: "groups_missing" },
      { by: "oidc", why: "not_in_a_group" },
    ]);
  });
});
