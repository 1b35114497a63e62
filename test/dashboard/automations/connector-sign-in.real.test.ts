/** A person signs in to a connector at a real authorization server, in a real browser, and an agent uses its tokens. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectStatus, fields } from "../../support/service/requests.ts";
import { ConnectorLogin } from "../../support/servers/connector-login.ts";
import { ExecutorWorld, textOf } from "../../http/connectors/executor-world.ts";
import { oauthManifest } from "../../http/connectors/connector-sign-in-world.ts";
import { followLink, hasChromium, launch, newPage } from "../browser.ts";

const title = hasChromium
  ? "a sign-in to a connector"
  : "a sign-in to a connector (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let world: ExecutorWorld;
  let login: ConnectorLogin;
  let browser: Browser;

  beforeAll(async () => {
    world = await ExecutorWorld.start({ PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1,localhost" });
    login = await ConnectorLogin.before(world.server);
    browser = await launch();
  });

  afterAll(async () => {
    await browser.close();
    await world.close();
    await login.close();
  });

  const owner = async () => {
    const { page } = await newPage(browser);
    const made = expectStatus(await world.service.request("POST", "/dashboard/links"), 201);
    await followLink(page, String(fields(made)["url"]));
    return page;
  };
  type Page = Awaited<ReturnType<typeof owner>>;

  /** At the server: its person logs in and agrees. */
  const agree = async (page: Page): Promise<void> => {
    await page.waitForURL(`${login.issuer}/**`);
    const name = page.getByPlaceholder("Enter any login");
    if (await name.isVisible()) {
      await name.fill("ada");
      await page.getByPlaceholder("and password").fill("any");
      await page.getByRole("button", { name: "Sign-in" }).click();
    }
    await page.getByRole("button", { name: "Continue" }).click();
    await page.waitForURL(`${world.service.url}/#/projects/*/connectors/wiki`);
  };

  it("lets an agent call a tool, goes on when tokens end, and asks for a person when it was revoked", async () => {
    const project = await world.newProject(oauthManifest(world.server.url));
    const page = await owner();
    await page.goto(`${world.service.url}/#/projects/${project}/connectors`);
    await page.getByText("needs a sign-in").waitFor();
    login.tokenSeconds = 30;
    await page.getByRole("button", { name: "Sign in: wiki" }).click();
    await agree(page);
    await page.getByRole("button", { name: "Accept these tools: wiki" }).click();
    await page.getByText("The tools are accepted.").waitFor();
    await page.getByRole("link", { name: "Connectors" }).click();
    await page.getByText(/signed in .* at/).waitFor();
    expect(await page.getByText(login.issuer).count()).toBe(1);

    const session = await world.freshSession(project);
    const read = async () => textOf(await world.call("wiki_read", {}, { by: session.by, project }));
    login.granted.length = 0;
    // A token of 30 s is renewed before it ends. The server rotates the refresh token each time.
    expect([await read(), await read()]).toEqual(["read ran", "read ran"]);
    expect(login.granted).toEqual(["refresh_token", "refresh_token"]);
    login.tokenSeconds = 3600;
    expect([await read(), await read()]).toEqual(["read ran", "read ran"]);
    expect(login.granted).toHaveLength(3);

    await login.revokeAll();
    expect(await read()).toMatch(/has ended: .*invalid_grant.* A person can sign in again/);
    await page.reload();
    await page.getByText("needs a sign-in").waitFor();
    await page.getByText("The sign-in of the connector wiki has ended").first().waitFor();
    await page.getByRole("button", { name: "Sign in again: wiki" }).click();
    await agree(page);
    expect(await read()).toBe("read ran");
    expect((await session.rows()).map(({ outcome }) => outcome)).toEqual([
      "ok",
      "error",
      "ok",
      "ok",
      "ok",
      "ok",
    ]);
  });
});
