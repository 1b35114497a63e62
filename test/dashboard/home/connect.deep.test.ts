/** A person connects a repository on GitHub in the dashboard, over the real service and a stub of GitHub. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { GithubHost } from "../../git/github/github-host.ts";
import { OWNER } from "../../git/github/github-host-pulls.ts";
import {
  commitFiles,
  deliver,
  fields,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { followLink, hasChromium, launch, newPage, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

const title = hasChromium ? "connecting GitHub" : "connecting GitHub (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const root = mkdtempSync(path.join(tmpdir(), "connected-host-"));
  let browser: Browser;
  let service: TestService;
  let host: GithubHost;
  let context: BrowserContext;
  let page: Page;
  let complaints: readonly string[];
  let name = "";

  beforeAll(async () => {
    host = await new GithubHost(root).open();
    service = await startTestService({ PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1" }, { needsModel: true });
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    await host?.close();
    rmSync(root, { recursive: true, force: true });
  });
  beforeEach(async () => {
    name = `greeter-${randomUUID().slice(0, 8)}`;
    const clone = path.join(root, name);
    mkdirSync(clone);
    await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=trunk", `${name}.git`);
    await gitOk(clone, "init", "--quiet", "--initial-branch=trunk");
    await commitFiles(clone, { "platform.toml": webhookEntry("on-push") });
    await gitOk(clone, "push", "--quiet", path.join(root, `${name}.git`), "HEAD:refs/heads/trunk");
    ({ context, page, complaints } = await newPage(browser));
    const { url } = fields(await service.request("POST", "/dashboard/links"));
    await followLink(page, String(url));
    await page.getByRole("heading", { name: "Home" }).waitFor();
  });
  afterEach(async () => {
    host.mayPush = () => true;
    host.installedOn = () => true;
    await context.close();
    expect(complaints).toEqual([]);
  });

  const press = (label: string) => page.getByRole("button", { name: label, exact: true }).click();
  const steps = () =>
    page
      .locator(".check-step")
      .evaluateAll((all) =>
        all.map((one) => `${one.getAttribute("data-key") ?? ""} ${one.getAttribute("data-outcome") ?? ""}`),
      );
  const PASSED = [
    "host passed",
    "credential passed",
    "repository passed",
    "default_branch passed",
    "push passed",
  ];
  const fill = async (label: string, value: string): Promise<void> => {
    await page.getByLabel(label, { exact: true }).fill(value);
    await page.keyboard.press("Tab");
  };
  const openForm = async () => {
    await page.getByRole("link", { name: "Projects", exact: true }).click();
    await page.getByRole("link", { name: "Create a project" }).click();
    await page.getByRole("link", { name: "GitHub", exact: true }).click();
    await page.getByText("The service tries each step as soon as").waitFor();
    await page.getByText("GitHub Enterprise Server").click();
    await fill("Address of its API", host.apiUrl);
  };

  it("with a token: each step is tried while the form is filled in, and each failure says what to do", async () => {
    await openForm();
    await fill("Repository", `${OWNER}/${name}`);
    await fill("Access token", "ghp_canaryWrong");
    await page.getByText("Generate a new token on GitHub, and paste it whole.").waitFor();
    expect(await steps()).toEqual([
      "host passed",
      "credential failed",
      "repository later",
      "default_branch later",
      "push later",
    ]);
    const [reader, token] = [host.token(), host.token()];
    host.mayPush = (used) => used !== reader;
    await fill("Access token", reader);
    await page.getByText("write access to the repository's contents").waitFor();
    expect((await steps()).at(-1)).toBe("push failed");
    await fill("Repository", `${OWNER}/nothing-there`);
    await page.getByText("Check owner and name.").waitFor();
    await fill("Repository", `${OWNER}/${name}`);
    await fill("Access token", token);
    await page.getByText("The service can work with this repository.").waitFor();
    expect((await steps()).slice(0, 5)).toEqual(PASSED);
    await press("Create the project");
    // The first step of the new project shows the connection, with the webhook that its trigger waits for.
    await page.getByRole("heading", { name: "Set up the project" }).waitFor();
    await page.getByText("The branch trunk is at").waitFor();
    await page.getByText("No delivery has arrived for on-push.").waitFor();
    expect((await steps()).slice(0, 5)).toEqual(PASSED);
    expect(await page.content()).not.toContain("canary");

    // A delivery with a wrong signature, then a right one.
    const [, pid = ""] = /projects\/([\w-]+)/.exec(page.url()) ?? [];
    await putSecret(service, pid, SECRET_NAME, SECRET);
    const wrong = { "x-platform-signature": `sha256=${"0".repeat(64)}` };
    // A busy service may not know the new secret at once.
    const delivered = async () => (await deliver(service, `${pid}/on-push`, { headers: wrong })).status;
    await expect.poll(delivered).toBe(401);
    const again = async () => {
      await press("Check again");
      return (await steps()).at(-1);
    };
    await expect.poll(again).toBe("webhook failed");
    await page.getByRole("link", { name: "Show the refused deliveries" }).waitFor();
    const answer = await deliver(service, `${pid}/on-push`);
    // Without a model no session starts, but the delivery has its row.
    expect([answer.status, answer.json]).toMatchObject([422, { code: "no_model" }]);
    await expect.poll(again).toBe("webhook passed");
  });

  it("as an app, and again in the settings after the token was revoked", async () => {
    await openForm();
    await fill("Repository", `${OWNER}/${name}`);
    await page.getByText("Use a GitHub App instead of a token").click();
    await fill("App id", host.app.app_id);
    await fill("Installation id", "1");
    await fill("Private key of the app", host.app.private_key);
    await page.getByText("The app has no installation with this number.").waitFor();
    host.installedOn = () => false;
    await fill("Installation id", host.app.installation_id);
    await page.getByText("add this repository under “Repository access”").waitFor();
    host.installedOn = () => true;
    await press("Check again");
    await page.getByText("The app may open pull requests.").waitFor();
    await press("Create the project");
    await page.getByRole("heading", { name: "Set up the project" }).waitFor();

    await page.getByRole("link", { name: "Settings", exact: true }).click();
    await page.getByText("The code host accepts the app and its installation.").waitFor();
    await page.getByText("Replace the credential").first().click();
    await fill("Access token", "ghp_canaryWrong");
    await press("Use this credential");
    await page
      .getByRole("alert")
      .getByText(/rejects the credential/)
      .waitFor();
    await fill("Access token", host.token());
    await press("Use this credential");
    await page.getByText("The code host accepts the token.").waitFor();
    host.tokens.clear();
    await press("Check again");
    await page.getByText("The service cannot work with this repository yet.").waitFor();
    await page.getByText("Generate a new token on GitHub, and paste it whole.").waitFor();
    // The first steps say so, too, and lead back.
    await page.locator(".tabs").getByRole("link", { name: "Sessions" }).click();
    await page.getByRole("link", { name: "Set up the project" }).click();
    await page.getByText("The repository cannot be read now.").waitFor();
    await page.getByRole("link", { name: "Replace the credential in the settings" }).click();
    await page.getByText("Replace the credential").first().click();
    await page.getByText("Use a GitHub App instead of a token").click();
    await fill("App id", host.app.app_id);
    await fill("Installation id", host.app.installation_id);
    await fill("Private key of the app", host.app.private_key);
    await press("Use this credential");
    await page.getByText("The code host accepts the app and its installation.").waitFor();
  });

  it("with the keyboard alone", async () => {
    const token = host.token();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").waitFor();
    await page.keyboard.type("create a proj");
    await page
      .getByRole("option", { name: /Create a project/ })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Create a project" }).waitFor();
    const focused = () =>
      page.evaluate<string>(
        "(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()",
      );
    const go = async (label: string) => {
      for (let count = 0; count < 60; count += 1) {
        // oxlint-disable-next-line no-await-in-loop -- one press after the other
        await page.keyboard.press("Tab");
        // oxlint-disable-next-line no-await-in-loop -- the same
        if ((await focused()) === label) return;
      }
      expect.fail(`no press of the tab key leads to ${label}`);
    };
    await go("GitHub");
    await page.keyboard.press("Enter");
    await page.getByText("The service tries each step as soon as").waitFor();
    await go("Repository");
    await page.keyboard.type(`${OWNER}/${name}`);
    await go("Access token");
    await page.keyboard.type(token);
    await go("GitHub Enterprise Server");
    await page.keyboard.press("Enter");
    await go("Address of its API");
    await page.keyboard.type(host.apiUrl);
    await go("Project name");
    await page.getByText("The service can work with this repository.").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Set up the project" }).waitFor();
  });
});

describe.skipIf(!hasChromium)("the check of a project's connection", () => {
  const start = useBrowser();

  it("says instants in the reader's time zone", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const all = makeWorld(Date.now());
    const message = "A delivery for on-push arrived at 2026-11-20T06:52:05.618Z.";
    all.projects = [
      { ...all.projects[0], repository: { kind: "git", url: "https://git.example.org/greeter.git" } },
    ];
    all.check = {
      usable: true,
      default_branch: "main",
      steps: [{ step: "webhook", outcome: "passed", message, advice: null }],
    };
    const { page, visit } = await start(all);
    await visit(`#/projects/${PROJECT_ID}/settings`);
    await page.getByText(/^A delivery for on-push arrived at 20 Nov 2026, 0?6:52:05\.$/).waitFor();
  });
});
