/** The first page: the composer keeps what is typed and remembers choices, and the list shows each session where it belongs. */
import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { REQUEST_ID, STATES_OF_HOME } from "../states/states-of-home.ts";

const SECOND = "01995f10-77aa-7c31-9f21-3d0c64b2a911";

/** With a second project. */
const world = () => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const made = makeWorld(Date.now());
  made.projects = [...made.projects, { ...made.projects[0], id: SECOND, name: "docs" }];
  return made;
};

const stateOf = (name: string) => {
  const all = world();
  STATES_OF_HOME.find((state) => state.name === name)?.change?.(all);
  return all;
};

const title = hasChromium ? "home" : "home (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const open = async (all = world(), window: { readonly width?: number; readonly touch?: boolean } = {}) => {
    const opened = await start(all, window);
    await opened.visit("#/");
    const { page, fake } = opened;
    const prompt = page.getByLabel("What should the agent do?");
    await prompt.waitFor();
    return {
      ...opened,
      prompt,
      project: page.getByLabel("Project", { exact: true }),
      startButton: page.getByRole("button", { name: "Start", exact: true }),
      group: (name: string) => page.getByRole("region", { name }),
      written: (end: string) => fake.writes.filter((write) => write.split(" ")[1]?.endsWith(end) === true),
    };
  };

  it("shows each session in the group that says what it needs", async () => {
    const { group } = await open(stateOf("home"));
    const names = (name: string) => group(name).locator(".cover").allInnerTexts();
    await group("Done").waitFor();
    expect(await names("Needs you")).toEqual([
      "Rename the greeting",
      "Order the imports",
      expect.stringContaining("A very long name"),
      // It has news.
      expect.stringMatching(/^New:\s+Fix the nightly build$/),
    ]);
    expect(await names("Working")).toEqual([
      "Sort the list of greetings",
      "Add a dark theme",
      "Translate the page",
    ]);
    expect(await names("Ready for review")).toEqual(["Greet in two languages", "Update the dependencies"]);
    expect(await names("Done")).toEqual(["Explain the log", "Measure the start", "Remove the old greeter"]);
    const row = group("Ready for review").locator(".session", { hasText: "Greet in two languages" });
    expect(await row.innerText()).toMatch(
      /The greeting is now in English.*\s+greeter · Mona\s+\+1,212 −3\s+#12 open\s+changes asked for by Grace, 2 comments\s+\$1\.24/,
    );
  });

  it("opens a session by a click anywhere on its row, beside the row's own links and buttons", async () => {
    const { page, group } = await open(stateOf("home"));
    const row = group("Ready for review").locator(".session > .row", { hasText: "Greet in two languages" });
    const about = row.locator(".about");
    await about.click({ position: { x: 3, y: 3 }, force: true });
    await page.waitForURL(/\/sessions\//);
    await page.goBack();
    await row.getByRole("link", { name: "#12 open" }).click();
    await page.waitForURL(/\/change-requests\/12$/);
  });

  it("shows a change request that waits for the reader's review, counts it above, and leads to it", async () => {
    const { page, group, fake } = await open(stateOf("home-review"));
    const asked = group("Needs you").getByRole("listitem").filter({ hasText: "asks for your review" });
    expect(await asked.locator(".cover").innerText()).toBe("Note the first push");
    expect(await asked.innerText()).toContain("Karl asks for your review");
    // Three sessions that ask, one that failed, and the review.
    await page.getByRole("link", { name: "5 need you" }).waitFor();
    await asked.getByRole("link", { name: "Review: Note the first push" }).click();
    await page.getByRole("heading", { name: "Note the first push" }).waitFor();
    fake.world.changes = [{ ...fake.world.changes[0], review_asked: null }];
    fake.emit("change_request.updated");
    await page.getByRole("link", { name: "4 need you" }).waitFor();
  });

  it("moves a session to its new group without a reload", async () => {
    const { fake, group } = await open(stateOf("home"));
    await group("Working").getByText("Add a dark theme").waitFor();
    const moved = fake.world.sessions.find((one) => one["name"] === "Add a dark theme");
    fake.world.sessions = [{ ...moved, activity: "ready_for_review" }];
    fake.emit("session.turn_changed");
    await group("Ready for review").getByText("Add a dark theme").waitFor();
    expect(await group("Working").getByText("Add a dark theme").count()).toBe(0);
  });

  it("opens a menu near the lower edge of the window above its button, so that all of it is in sight", async () => {
    const { page } = await open(stateOf("home"));
    const button = page.getByLabel("Actions for Remove the old greeter");
    await button.evaluate((summary) => summary.scrollIntoView({ block: "end" }));
    await button.click();
    await page.locator(".menu[data-side=above]").waitFor();
    const { y = -1, height = 0 } = (await page.locator(".menu[open] > .menu-items").boundingBox()) ?? {};
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y + height).toBeLessThanOrEqual(page.viewportSize()?.height ?? 0);
  });

  it("folds what is done to the newest, and shows more of it", async () => {
    const { page, group } = await open(stateOf("home-done"));
    await expect.poll(() => group("Done").locator(".session").count()).toBe(5);
    await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => group("Done").locator(".session").count()).toBe(8);
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
  });

  it("begins the next session with the last project and its choices", async () => {
    const { page, prompt, project, written, visit } = await open();
    await project.selectOption({ label: "docs" });
    await page.getByLabel("Branch").selectOption({ label: "release" });
    await prompt.fill("Write a page.");
    await page.keyboard.press("Enter");
    await expect
      .poll(() => written("/sessions"))
      .toEqual([
        `POST /v1/projects/${SECOND}/sessions {"base_ref":"release","initial_prompt":"Write a page."}`,
      ]);
    await expect.poll(() => page.url()).toContain(`${SECOND}/sessions/`);
    await visit("#/");
    await page.reload();
    expect(await project.inputValue()).toBe(SECOND);
    expect(await page.getByLabel("Branch").inputValue()).toBe("release");
    expect(await prompt.inputValue()).toBe("");
  });

  it("keeps what is typed through a reload, takes it to another project, and shows it on the page of a new session", async () => {
    const { page, prompt, project } = await open();
    await prompt.fill("Say good day.\nTwice.");
    await page.reload();
    await expect.poll(() => prompt.inputValue()).toBe("Say good day.\nTwice.");
    await project.selectOption({ label: "docs" });
    await page.getByRole("link", { name: "More options" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(`#/projects/${SECOND}/new`);
    await page.getByRole("button", { name: "Start session" }).waitFor();
    expect(await prompt.inputValue()).toBe("Say good day.\nTwice.");
    await page.goto(`${new URL(page.url()).origin}/#/projects/${PROJECT_ID}/new`);
    await expect.poll(() => prompt.inputValue()).toBe("");
  });

  it("offers the repository's commands for the chosen agent after `/`", async () => {
    const { page, prompt } = await open();
    await prompt.pressSequentially("/");
    const rows = page.getByRole("listbox", { name: "Commands" }).getByRole("option");
    await expect.poll(() => rows.allInnerTexts()).toEqual(["/release\n.opencode/command/release.md"]);
    await page.getByText("The agent's other commands are listed once it runs.").waitFor();
    await page.keyboard.press("Enter");
    expect(await prompt.inputValue()).toBe("/release ");
  });

  it("greys what an agent cannot have, with the reason, and offers the same on the page of a new session", async () => {
    const { page, prompt } = await open();
    await prompt.fill("Say good day.");
    const option = (label: string, text: string) =>
      page.getByLabel(label, { exact: true }).locator("option", { hasText: text });
    const isGrey = async () => {
      await page.getByRole("combobox", { name: "Model" }).click();
      const row = page.getByRole("option", { name: /gpt-small .*codex does not speak to this provider/ });
      return row.isDisabled();
    };
    expect(await page.getByLabel("Effort").count()).toBe(0);
    await page.getByLabel("Agent", { exact: true }).selectOption("fast");
    await page.getByLabel("Effort").selectOption("high");
    expect(await isGrey()).toBe(true);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "More options" }).click();
    await page.getByRole("button", { name: "Start session" }).waitFor();
    expect(await page.getByLabel("Agent", { exact: true }).inputValue()).toBe("fast");
    expect(await page.getByLabel("Effort").inputValue()).toBe("high");
    expect(await isGrey()).toBe(true);
    expect(await option("Agent", "broken (cannot start): There is no runtime codex.").isDisabled()).toBe(
      true,
    );
  });

  it("says why a session did not start, keeps the text, and does not keep a secret", async () => {
    const { page, fake, prompt, startButton } = await open();
    await prompt.fill("Use ghp_secret.");
    fake.world.refused = {
      status: 400,
      code: "secret_in_message",
      error: "The prompt has the value of the secret `TOKEN`.",
    };
    await startButton.click();
    await page.getByRole("alert").getByText("The prompt has the value of the secret TOKEN.").waitFor();
    expect(await prompt.inputValue()).toBe("Use ghp_secret.");
    await prompt.pressSequentially(" Or not.");
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("ghp_secret");
    await page.reload();
    await expect.poll(() => prompt.inputValue()).toBe("");
  });

  it("shows sessions that wait with their places, after those that work, and counts the runs beside them", async () => {
    const { page, group } = await open(stateOf("home-waiting"));
    const row = group("Working").locator(".session", { hasText: "Say good day." });
    expect(await row.innerText()).toMatch(
      /Waits for a free session, place 2\.\s+Queued · greeter · Mona · 2 files/,
    );
    expect((await group("Working").locator(".cover").allInnerTexts()).slice(-2)).toEqual([
      "Say good day.",
      expect.stringMatching(/^Translate every greeting/),
    ]);
    await page.getByText("1 run waits for a free session.").waitFor();
  });

  it("keeps a prompt that waits in the list, and opens its session when that starts", async () => {
    const { page, fake, prompt, startButton, group } = await open(stateOf("home-waiting"));
    const [, request] = fake.world.queue;
    const { queue } = fake.world;
    fake.world.queue = queue.filter((one) => one !== request);
    fake.world.created = { status: "queued", queue_id: REQUEST_ID, position: 2 };
    await prompt.fill("Say good day.");
    fake.world.queue = queue;
    await startButton.click();
    await group("Working").getByText("Say good day.").waitFor();
    expect(await prompt.inputValue()).toBe("");
    fake.world.queue = [];
    const waiting = fake.world.fires.find(({ id }) => id === REQUEST_ID);
    fake.world.fires = [{ ...waiting, status: "fired", session_id: SESSION_ID }];
    await page.waitForURL(new RegExp(`/sessions/${SESSION_ID}$`));
  });

  it("does not start with a file that the service would refuse", async () => {
    const { page, prompt, startButton } = await open();
    await prompt.fill("Why?");
    await page
      .locator("input[type=file]")
      .setInputFiles({ name: "empty.log", mimeType: "text/plain", buffer: Buffer.from("") });
    await page.getByRole("alert").getByText("“empty.log”: The file is empty.").waitFor();
    expect(await startButton.isDisabled()).toBe(true);
  });

  it("asks for a sandbox once while a prompt is written", async () => {
    const { prompt, written } = await open();
    await prompt.pressSequentially("Fix the tests.");
    await expect.poll(() => written("/environment/warm").length).toBe(1);
  });

  it("says what the chosen project lacks, and leads to its first steps", async () => {
    const all = world();
    all.setup = { ...Object(all.setup), model: { required: true, source: null } };
    const { page } = await open(all);
    await page.getByText("greeter has no key for a model yet.").waitFor();
    await page.getByRole("link", { name: "Set up the project" }).click();
    await page.getByRole("heading", { name: "Set up the project" }).waitFor();
  });

  it("starts sessions in no archived project", async () => {
    const all = world();
    all.projects = all.projects.map((one, at) => (at === 0 ? { ...one, status: "archived" } : one));
    const { project } = await open(all);
    expect(await project.locator("option").allInnerTexts()).toEqual(["docs"]);
  });

  it("offers a person the projects in which she may start sessions, and no composer without one", async () => {
    const all = world();
    const viewer = { id: "u", name: "Mona", role: "member" };
    all.me = { ...all.me, user: viewer };
    all.members = [{ user: viewer, role: "viewer", own_role: null }];
    const [first, second] = all.projects;
    all.projects = [{ ...first, default_role: "viewer" }, { ...second }];
    const { page, fake, project, prompt } = await open(all);
    expect(await project.locator("option").allInnerTexts()).toEqual(["docs"]);
    fake.world.projects = [
      { ...first, default_role: "viewer" },
      { ...second, default_role: "viewer" },
    ];
    await page.reload();
    await page.locator(".session").first().waitFor();
    expect(await prompt.count()).toBe(0);
    fake.world.members = [{ user: viewer, role: "member", own_role: "member" }];
    await page.reload();
    await prompt.waitFor();
  });

  it("finds a session by the words of a message, an archived one too, and shows the sentence", async () => {
    const { page, visit, group } = await open(stateOf("palette-found"));
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("porcupine");
    const option = page.getByRole("option").filter({ hasText: "A porcupine greets you" });
    expect(await option.innerText()).toMatch(/Look for animals[^]*Archived · /);
    await page.keyboard.press("Escape");
    await visit("#/?search=porcupine");
    await group("Done").getByText("A porcupine greets you").waitFor();
    expect(await group("Done").locator(".about").innerText()).toContain("Archived · ");
  });

  it("narrows the list by project, starter and name, in the address, and shows everything again", async () => {
    const { page, group } = await open(stateOf("home"));
    await group("Done").waitFor();
    const names = () => page.locator(".session .cover").allInnerTexts();
    const whole = (await names()).length;
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    const filters = page.getByRole("group", { name: "Filter" });
    await filters.getByLabel("Name").fill("greet");
    await expect.poll(async () => (await names()).every((name) => /greet/i.test(name))).toBe(true);
    expect((await names()).length).toBeLessThan(whole);
    await filters.getByLabel("Started by").selectOption("Triggers");
    await expect.poll(() => page.url()).toMatch(/by=trigger&?.*search=greet|search=greet&by=trigger/);
    await page.reload();
    expect(await filters.getByLabel("Name").inputValue()).toBe("greet");
    const asked = page.waitForRequest((request) => request.url().includes(`/projects/${SECOND}/sessions?`));
    await filters.getByLabel("Project").selectOption("docs");
    await asked;
    await filters.getByLabel("Name").fill("no such name");
    await page.getByText("No session matches.").waitFor();
    await page.getByRole("button", { name: "Show everything" }).click();
    await expect.poll(async () => (await names()).length).toBe(whole);
    expect(page.url()).not.toContain("?");
  });

  it("shows the first session high on a phone, in one line each of the bar and the composer", async () => {
    const all = stateOf("home");
    const { page, prompt, startButton } = await open(all, { width: 390, touch: true });
    const first = page.locator(".session").first();
    await first.waitFor();
    expect((await first.boundingBox())?.y).toBeLessThanOrEqual(200);
    expect(await startButton.isVisible()).toBe(false);
    await prompt.focus();
    await startButton.waitFor();
    const operator = page.getByRole("link", { name: "Operator" });
    expect(await operator.isVisible()).toBe(false);
    await openBarMenu(page);
    await operator.click();
    await page.getByRole("heading", { name: "Database" }).waitFor();
    expect(await operator.isVisible()).toBe(false);
  });
});
