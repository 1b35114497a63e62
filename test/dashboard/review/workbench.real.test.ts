/** A person works in the dashboard, over the real service. Its sandboxes are simulated. */
import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import {
  commitFiles,
  fields,
  listOf,
  makeProject,
  pushFiles,
  putSecret,
  reached,
  runSession,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { followLink, hasChromium, launch, newPage } from "../browser.ts";
import { deepTest } from "../../support/vitest/rings.ts";
import { chosen } from "../states/state-of-a-page.ts";

/** More presses than any page has places for the focus. */
const TABS_MAX = 80;

const run = (lines: string, environment: Readonly<Record<string, string>> = {}) =>
  promisify(execFile)("sh", ["-c", lines], { env: { ...process.env, ...environment } });

const title = hasChromium ? "the workbench" : "the workbench (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let browser: Browser;
  let service: TestService;
  let context: BrowserContext;
  let page: Page;
  let complaints: readonly string[];

  beforeAll(async () => {
    service = await startTestService({}, { needsModel: true });
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });
  beforeEach(async () => {
    ({ context, page, complaints } = await newPage(browser));
    const { url } = fields(await service.request("POST", "/dashboard/links"));
    await followLink(page, String(url));
    await page.getByRole("heading", { name: "Home" }).waitFor();
  });
  afterEach(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });

  const visit = (hash: string) => page.goto(`${service.url}/${hash}`);
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  const agree = (name: string) => page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
  const tab = (name: string) =>
    page.getByRole("navigation", { name: "Project" }).getByRole("link", { name, exact: true }).click();
  const get = async (target: string) => fields(await service.request("GET", target));
  /** A project whose sessions have a model. */
  const readyProject = async (name: string) => {
    const pid = await makeProject(service, { files: {}, name });
    await putSecret(service, pid, "OPENAI_API_KEY", "sk-of-this-test");
    return pid;
  };

  it("leads from the first page to a session: a project, its code, a key and a prompt", async () => {
    await page.getByRole("link", { name: "Create a project" }).click();
    await page.getByLabel("Project name").fill("greeter");
    await press("Create the project");
    const step = (name: string) =>
      page.getByRole("listitem").filter({ has: page.getByRole("heading", { name }) });
    const code = step("Push your code");
    await code.getByText("The repository is empty.").waitFor();
    const command = await code.locator("code").innerText();

    await code.getByRole("button", { name: "Create an access token" }).click();
    const token = await page.getByRole("dialog").locator("code").innerText();
    await agree("Done");
    const work = mkdtempSync(path.join(service.importRoot, "work-"));
    await gitOk(work, "init", "--quiet", "--initial-branch=main");
    await commitFiles(work, { "README.md": "Hello\n" });
    // The line as it stands on the page. The token answers git's question for a password.
    const askpass = path.join(work, "askpass");
    await commitFiles(work, { askpass: '#!/bin/sh\nprintf %s "$TOKEN"\n' });
    await promisify(execFile)("chmod", ["+x", askpass]);
    await promisify(execFile)("sh", ["-c", command], {
      cwd: work,
      env: { ...process.env, GIT_ASKPASS: askpass, TOKEN: token },
    });
    await code.getByText("The branch main is at").waitFor();

    const model = step("Name a model");
    await step("Start a session").getByText("A session needs a model first.").waitFor();
    await model.getByLabel("Provider").selectOption({ label: "openai (gpt-5.5)" });
    await model.getByLabel("Key").fill("sk-a-key-of-a-newcomer");
    await press("Try and save the key");
    await model.getByText("api.openai.com is not asked by this service.").waitFor();
    await press("Save without a try");
    await model.getByText("Sessions use openai/gpt-5.5.").waitFor();
    await step("Start a session").getByLabel("What should the agent do?").fill("Say hello.\nThen stop.");
    await press("Start session");
    await page.locator("h1", { hasText: "Say hello." }).waitFor();
    await page.locator(".state-word", { hasText: "Working" }).waitFor();
    const [, pid, sid] = /projects\/([\w-]+)\/sessions\/([\w-]+)/.exec(page.url()) ?? [];
    expect(await get(`/v1/projects/${pid}/sessions/${sid}`)).toMatchObject({
      initial_prompt: "Say hello.\nThen stop.",
      base_ref: "main",
    });
    expect(await page.content()).not.toContain("sk-a-key-of-a-newcomer");
  });

  deepTest("says that a project's name is taken, and keeps what was typed", async () => {
    const name = "a name twice";
    await makeProject(service, { files: {}, name });
    await page.goto(`${service.url}/#/new`);
    await page.getByLabel("Project name").fill(name);
    await press("Create the project");
    await page.getByRole("alert").getByText("Choose another name.").waitFor();
    expect(await page.getByRole("textbox", { name: "Project name" }).inputValue()).toBe(name);
    await page.getByRole("textbox", { name: "Project name" }).fill("another name");
    await press("Create the project");
    await page.getByRole("heading", { name: "Set up the project" }).waitFor();
  });

  deepTest("copies a repository, and says beside the field what is wrong with an address", async () => {
    await page.goto(`${service.url}/#/new?from=import`);
    await page.getByLabel("Address").fill("http://127.0.0.1:9/greeter.git");
    await page.getByLabel("Project name").fill("a copy");
    await press("Create the project");
    const address = page.getByLabel("Address");
    await expect.poll(() => address.getAttribute("aria-invalid")).toBe("true");
    await page.getByRole("alert").getByText("Correct what is marked.").waitFor();
    expect(await address.inputValue()).toBe("http://127.0.0.1:9/greeter.git");
    expect(await page.getByLabel("Project name").inputValue()).toBe("a copy");
    await page.getByRole("link", { name: "GitHub", exact: true }).click();
    await page.getByLabel("Repository", { exact: true }).fill("greeter");
    await press("Create the project");
    await page.getByRole("alert").getByText("owner/name").waitFor();
    // Another kind of repository begins without the refusal.
    await page.getByRole("link", { name: "Git server", exact: true }).click();
    await page.getByLabel("Password or access token").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  deepTest("adds, replaces and deletes secrets, and names the required ones that are missing", async () => {
    const pid = await makeProject(service, {
      files: { "platform.toml": '[env]\nrequired = ["DEPLOY_KEY"]\noptional = ["SENTRY_DSN"]\n' },
    });
    await visit(`#/projects/${pid}/secrets`);
    await page.getByText("Sessions start without these required secrets: DEPLOY_KEY.").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("PLATFORM_X");
    await page.getByLabel("Value").fill("a value that stays");
    await press("Add the secret");
    await page.getByRole("alert").getByText("reserved").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("NPM_TOKEN");
    await press("Add the secret");
    await page.locator(".row", { hasText: "NPM_TOKEN" }).waitFor();
    expect(await page.getByLabel("Value").inputValue()).toBe("");
    await press("Set DEPLOY_KEY");
    await page.getByRole("dialog").getByLabel("New value").fill("a long value");
    await agree("Set");
    await page.getByText("Sessions start without").waitFor({ state: "detached" });
    await press("Replace NPM_TOKEN");
    await page.getByRole("dialog").getByLabel("New value").fill("another value");
    await agree("Replace");
    await page.getByText("The value of NPM_TOKEN is replaced.").waitFor();
    await press("Delete NPM_TOKEN");
    await agree("Delete");
    await page.locator(".row", { hasText: "NPM_TOKEN" }).waitFor({ state: "detached" });
    const { secrets } = await get(`/v1/projects/${pid}/secrets`);
    expect((secrets as { name: string }[]).map(({ name }) => name)).toEqual(["DEPLOY_KEY"]);
  });

  deepTest("renames a project, moves its default branch, pauses its triggers, and archives it", async () => {
    const pid = await makeProject(service, { files: {}, name: "old name" });
    await visit(`#/projects/${pid}/settings`);
    await page.getByLabel("Name", { exact: true }).fill("new name");
    await page.getByLabel("Default branch").fill("nowhere");
    await press("Save");
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Default branch").fill("feature");
    await press("Save");
    await page.getByRole("heading", { name: "new name" }).waitFor();
    await press("Read platform.toml now");
    await page.getByText("platform.toml was read: 0 triggers.").waitFor();
    await press("Pause all triggers");
    await press("Resume all triggers");
    await page.getByRole("button", { name: "Pause all triggers" }).waitFor();
    await press("Archive the project");
    await agree("Archive");
    await page.getByRole("button", { name: "Reactivate the project" }).waitFor();
    expect(await get(`/v1/projects/${pid}`)).toMatchObject({
      name: "new name",
      default_branch: "feature",
      status: "archived",
      triggers_paused: false,
    });
    await tab("Sessions");
    await page.getByText("No sessions yet.").waitFor();
    expect(await page.getByRole("link", { name: "New session" }).count()).toBe(0);
    await tab("Settings");
    await press("Reactivate the project");
    await page.getByRole("button", { name: "Archive the project" }).waitFor();
  });

  deepTest("makes a token that works, shows it once, and revokes it", async () => {
    await page.getByRole("link", { name: "admin" }).click();
    await page.getByLabel("Name", { exact: true }).fill("laptop");
    await press("Create the token");
    const token = await page.getByRole("dialog").locator("code").innerText();
    const whoami = () => service.request("GET", "/v1/me", { token });
    expect((await whoami()).status).toBe(200);
    await agree("Done");
    await page.locator(".row", { hasText: "laptop" }).getByText("expires in").waitFor();
    await expect.poll(() => page.content()).not.toContain(token);
    await press("Revoke laptop");
    await agree("Revoke");
    await page.locator(".row", { hasText: "laptop" }).waitFor({ state: "detached" });
    await expect.poll(async () => (await whoami()).status).toBe(401);
  });

  deepTest("starts, renames, filters and deletes sessions", async () => {
    const pid = await readyProject("sessions");
    await visit(`#/projects/${pid}`);
    await page.getByRole("link", { name: "New session" }).click();
    await page.getByLabel("What should the agent do?").fill("Add a test");
    await page.getByLabel("Start from").fill("nowhere");
    await press("Start session");
    await page.getByRole("alert").getByText("nowhere").waitFor();
    await page.getByLabel("Start from").fill("feature");
    await page.getByRole("combobox", { name: "Model", exact: true }).click();
    await page.getByRole("option", { name: "Another model" }).click();
    await page.getByLabel("Model, by name").fill("openai/gpt-of-this-test");
    await press("Start session");
    await page.locator("h1", { hasText: "Add a test" }).waitFor();
    const { sessions } = await get(`/v1/projects/${pid}/sessions`);
    const [session] = sessions as { id: string }[];
    expect(session).toMatchObject({ base_ref: "feature", agent_model: "openai/gpt-of-this-test" });
    await chosen("Rename")(page);
    await page.getByRole("dialog").getByLabel("Name").fill("the tests");
    await agree("Rename");
    await page.locator("h1", { hasText: "the tests" }).waitFor();
    await reached(service, pid, session?.id ?? "", "running");
    await page.getByRole("link", { name: "sessions", exact: true }).click();
    await page.getByLabel("State").selectOption("failed");
    await page.getByText("No sessions match the filter.").waitFor();
    await page.getByLabel("State").selectOption("working");
    await page.getByRole("link", { name: "the tests" }).click();
    await chosen("Delete")(page);
    await agree("Delete");
    await page.getByText("No sessions yet.").waitFor();
    expect(listOf(await service.request("GET", `/v1/projects/${pid}/sessions`), "sessions")).toEqual([]);
  });

  deepTest("starts a session with files, and offers branches and models of the project", async () => {
    const pid = await readyProject("files");
    await visit(`#/projects/${pid}/new`);
    const list = await page.getByLabel("Start from").getAttribute("list");
    const branches = await page.locator(`[id="${list}"] option`).all();
    expect(await Promise.all(branches.map((option) => option.getAttribute("value")))).toEqual([
      "feature",
      "main",
    ]);
    expect(await page.getByRole("combobox", { name: "Model" }).getAttribute("title")).toBe("openai/gpt-5.5");
    await page.getByLabel("What should the agent do?").fill("Explain the log\nIt is attached.");
    const log = { name: "failure.log", mimeType: "text/plain", buffer: Buffer.from("it failed\n") };
    await page.getByLabel("Files for the agent").setInputFiles([log, { ...log, buffer: Buffer.alloc(0) }]);
    await press("Start session");
    await page.getByRole("alert").getByText("The file is empty.").waitFor();
    await page.getByLabel("Files for the agent").setInputFiles([log]);
    await press("Start session");
    await page.locator("h1", { hasText: "Explain the log" }).waitFor();
    const [session] = (await get(`/v1/projects/${pid}/sessions`))["sessions"] as { id: string }[];
    const { items } = await get(`/v1/projects/${pid}/sessions/${session?.id}/conversation`);
    expect(items).toMatchObject([
      { content: [{ text: "Explain the log\nIt is attached." }, { type: "file", name: "failure.log" }] },
    ]);
  });

  deepTest(
    "adds a trigger by a change request, and its senders' lines work as they stand on the page",
    async () => {
      const pid = await readyProject("senders");
      await visit(`#/projects/${pid}/triggers`);
      await page.getByRole("link", { name: "Add a trigger" }).click();
      await page.getByRole("link", { name: "On a schedule" }).click();
      await page.getByLabel("Repeat").selectOption("Every weekday (Monday to Friday)");
      await page.locator(".instants tbody tr").nth(4).waitFor();
      await page.getByRole("link", { name: "Begin with something else" }).click();
      await page.getByRole("link", { name: "On a webhook" }).click();
      await page.getByLabel("Prompt").fill("Review {{ body.ref }}.");
      await page.getByLabel("Slug").fill("On Push");
      await page.getByText('slug "On Push" must have').waitFor();
      await page.getByLabel("Slug").fill("on-push");
      await page.getByLabel("Events").fill("push");
      await page.getByLabel("Branches").fill("main, release/*");
      await page.getByText("[webhooks.on-push]").waitFor();
      await press("Open a change request");
      await page.getByRole("heading", { name: "Add the trigger on-push" }).waitFor();
      await page.getByText("+[[triggers]]").waitFor();
      await press("Merge");
      await agree("Merge");
      await page.getByText("was merged into main.").waitFor();

      await visit(`#/projects/${pid}/triggers`);
      await page.locator("summary", { hasText: "Set up a sender" }).click();
      await press("Create a new value of WEBHOOK_SECRET_ON_PUSH");
      const secret = await page.getByRole("dialog").locator("code").innerText();
      await agree("Done");
      await page.locator("summary", { hasText: "curl" }).click();
      const curl = await page.getByLabel("the command", { exact: true }).innerText();
      const { stdout } = await run(curl.replace("the value of WEBHOOK_SECRET_ON_PUSH", secret));
      expect(JSON.parse(stdout)).toMatchObject({ status: "fired" });

      await page.locator("summary", { hasText: "GitLab" }).click();
      const job = await page.getByLabel("the job", { exact: true }).innerText();
      const [, script = ""] = job.split("    - |\n");
      const told = await run(script, {
        WEBHOOK_SECRET_ON_PUSH: secret,
        CI_COMMIT_BRANCH: "release/1",
        CI_COMMIT_SHA: "1a2b",
        CI_COMMIT_MESSAGE: `It's "quoted" $(false)`,
        CI_JOB_ID: "7",
      });
      expect(JSON.parse(told.stdout)).toMatchObject({ status: "fired" });
      const fires = listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires");
      expect(fires.map(({ status }) => status)).toEqual(["fired", "fired"]);
      // A preview takes the delivery.
      await press("Preview: on-push");
      const past = page.getByLabel("Past delivery");
      await past.selectOption({ index: 1 });
      await page.getByText("The body and three headers are stored").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Preview" }).click();
      await page.getByRole("dialog").getByText("Review refs/heads/release/1.").waitFor();
    },
  );

  deepTest("shows what a session has pushed, file by file, while the page is open", async () => {
    const pid = await readyProject("changes");
    const sid = await runSession(service, pid, { initial_prompt: "Write notes" });
    await visit(`#/projects/${pid}/sessions/${sid}`);
    await page.getByText("The agent has not changed a file yet.").waitFor();
    await pushFiles(service, pid, { branch: sid, from: sid, files: { "a.md": "one\n", "b.md": "two\n" } });
    // The simulated agent does not work, so the page reads the branch at the next change of the session.
    await chosen("Stop session")(page);
    await agree("Stop");
    await page.getByRole("heading", { name: "Changes in 2 files" }).waitFor();
    await page.getByRole("tab", { name: "Log" }).click();
    await page.getByRole("button", { name: "+2 −0" }).click();
    await page.getByText("+one").waitFor();
    await page.locator("summary", { hasText: "1 commit" }).click();
    await page.locator("#work .row", { hasText: "Change" }).waitFor();
  });

  deepTest("starts a session from the first page on with the keyboard alone", async () => {
    await readyProject("by keyboard");
    await visit("#/");
    await page.getByLabel("What should the agent do?").waitFor();
    const focused = () =>
      page.evaluate<string>(
        "document.activeElement.ariaLabel ?? (document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()",
      );
    const go = async (label: string) => {
      for (let count = 0; count < TABS_MAX; count += 1) {
        // oxlint-disable-next-line no-await-in-loop -- one press after the other
        await page.keyboard.press("Tab");
        // oxlint-disable-next-line no-await-in-loop -- the same
        if ((await focused()) === label) return;
      }
      expect.fail(`no press of the tab key leads to ${label}`);
    };
    await go("What should the agent do?");
    await page.keyboard.type("Typed without a mouse");
    await go("Project");
    await page.keyboard.type("by keyboard");
    await go("Start");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Typed without a mouse" }).waitFor();
  });
});
