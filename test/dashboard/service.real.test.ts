/** The page over the service itself: the real API, events, cookies and headers. Sandboxes are simulated: they are not the point. */
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client } from "../../demo/client.ts";
import { makeRepository } from "../../demo/sample.ts";
import { type Service, startService } from "../../demo/service.ts";
import { makeToken, TOKEN_BYTES } from "../../src/domain/ids.ts";
import { followLink, hasChromium, launch, newPage, openBarMenu } from "./browser.ts";
import { deepTest } from "../support/vitest/rings.ts";
import { chosen } from "./states/state-of-a-page.ts";

const title = hasChromium
  ? "the page over the service"
  : "the page over the service (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let browser: Browser;
  let directory: string;
  let service: Service;
  let client: Client;

  beforeAll(async () => {
    // Short: below it lie sockets, whose whole path has at most a hundred bytes.
    directory = fs.mkdtempSync("/tmp/page-");
    fs.chmodSync(directory, 0o711);
    makeRepository(path.join(directory, "greeter"));
    // The sample has no Dockerfile.
    const tools = path.join(directory, "tools");
    fs.mkdirSync(path.join(tools, ".platform"), { recursive: true });
    fs.writeFileSync(path.join(tools, ".platform/Dockerfile"), "FROM scratch\nRUN make\n");
    makeRepository(tools);
    const token = makeToken("pat", randomBytes(TOKEN_BYTES));
    const { signal } = new AbortController();
    service = await startService(
      {
        PLATFORM_DATA_DIR: path.join(directory, "data"),
        PLATFORM_BOOTSTRAP_TOKEN: token,
        PLATFORM_IMPORT_ROOTS: directory,
        PLATFORM_PORT: "0",
        PLATFORM_SANDBOX_PROVIDER: "simulated",
        TMPDIR: directory,
      },
      signal,
    );
    client = new Client({ baseUrl: service.baseUrl, token, signal });
    const make = (name: string) =>
      client.send("POST", "/v1/projects", {
        name,
        repository: { kind: "hosted", import_from: path.join(directory, name) },
      });
    await make("greeter");
    await make("tools");
    browser = await launch();
  });

  afterAll(async () => {
    await browser.close();
    await service.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });

  it("signs in by a one-time link, previews and fires a trigger, follows its session to running, stops it, and finds its fire in the ledger [T08]", async () => {
    const { url } = await client.send<{ url: string }>("POST", "/dashboard/links");
    const { context, page, complaints } = await newPage(browser);
    await followLink(page, url);
    await page.getByRole("link", { name: "Projects", exact: true }).click();
    await page.getByRole("link", { name: "greeter" }).click();
    await page.getByText("live", { exact: true }).waitFor();
    await page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
    await page.getByRole("button", { name: "Preview: Note each push" }).click();
    await page.getByLabel("Body (JSON)").fill('{"pusher": {"name": "Mona"}}');
    await page.getByRole("dialog").getByRole("button", { name: "Preview" }).click();
    await page.getByRole("dialog").getByText("Pushed by: Mona").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Run now: Note each push" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
    await page.getByRole("link", { name: /^Open the/ }).click();
    await page.locator(".state-word", { hasText: "Working" }).waitFor();
    await chosen("Stop session")(page);
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await page.locator(".state-word", { hasText: "Asleep" }).waitFor();
    await page.getByRole("tab", { name: "Details" }).click();
    await page
      .locator("main")
      .getByRole("link", { name: /^run …/ })
      .waitFor();
    await page.getByRole("link", { name: "greeter" }).click();
    await page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
    await page.getByRole("link", { name: "Runs and deliveries" }).click();
    await page.getByRole("link", { name: /^Note each push, by hand, \w+, stopped/ }).waitFor();
    await page.getByLabel("State").selectOption("queued");
    await page.getByText("No runs match the filter.").waitFor();
    await openBarMenu(page);
    await page.getByRole("link", { name: "0 queued" }).click();
    await page.getByText("The queue is empty.").waitFor();
    await openBarMenu(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Access token").waitFor();
    expect(complaints).toEqual([]);
    // A link opens once.
    await page.goto(url);
    await page.getByLabel("Access token").waitFor();
    await context.close();
  });

  deepTest("shows a project's environment, builds its Dockerfile anew, and shows the log", async () => {
    const { url } = await client.send<{ url: string }>("POST", "/dashboard/links");
    const { context, page, complaints } = await newPage(browser);
    await followLink(page, url);
    await page.getByRole("link", { name: "Projects", exact: true }).click();
    await page.getByRole("link", { name: "greeter" }).click();
    await page.getByRole("link", { name: "Settings", exact: true }).click();
    await page.getByRole("link", { name: "Environment", exact: true }).click();
    await page.getByText("The machine's own files.").waitFor();
    await page
      .getByRole("navigation", { name: "Breadcrumb" })
      .getByRole("link", { name: "Projects" })
      .click();
    await page.getByRole("link", { name: "tools" }).click();
    await page.getByRole("link", { name: "Settings", exact: true }).click();
    await page.getByRole("link", { name: "Environment", exact: true }).click();
    await page.getByText(".platform/Dockerfile").waitFor();
    // The first build begins with the first reading of the manifest.
    await page
      .locator("main")
      .getByRole("link", { name: /^Build \w+, ready/ })
      .waitFor();
    await page.getByRole("button", { name: "Build again" }).click();
    await page.locator("h1", { hasText: "Build" }).waitFor();
    await page.locator(".build-state .badge", { hasText: "ready" }).waitFor();
    await page.getByRole("region", { name: "Log of the build" }).getByText("[step 1, line 1]").waitFor();
    await page.getByText("a person asked for it").waitFor();
    await page
      .getByRole("navigation", { name: "Breadcrumb" })
      .getByRole("link", { name: "Environment" })
      .click();
    await expect.poll(() => page.locator(".row").count()).toBe(2);
    expect(complaints).toEqual([]);
    await context.close();
  });
});
