import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import { TOKEN } from "../fakes/fake-service.ts";
import { makeWorld, PROJECT_ID, QUEUED_ID, SESSION_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

const title = hasChromium ? "the page in Chromium" : "the page in Chromium (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  describe("signing in", () => {
    it("refuses a wrong token in the service's words, and accepts the right one", async () => {
      const { page } = await start(world(), { signedIn: false });
      await page.getByLabel("Access token").fill("platform_pat_wrong");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("This access token is not valid, or it has expired.").waitFor();
      await page.getByLabel("Access token").fill(TOKEN);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Home" }).waitFor();
    });

    it("returns to the sign-in form when the reader signs out, and when the session ends", async () => {
      const { page, fake, visit } = await start(world());
      await openBarMenu(page);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.locator("header.top").getByRole("link", { name: "Guide" }).waitFor();
      await page.getByLabel("Access token").fill(TOKEN);
      await page.keyboard.press("Enter");
      await visit(PROJECT);
      await page.getByText("Tidy the docs").waitFor();
      await page.context().clearCookies();
      fake.emit("session.status");
      await page.getByLabel("Access token").waitFor();
      expect(await page.getByText("Tidy the docs").count()).toBe(0);
    });
  });

  it("shows the account's usage, whether fires wait for a slot, and the projects", async () => {
    const { page, fake } = await start(world());
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await openBarMenu(page);
    expect(await page.locator("header.top").innerText()).toContain("1 of 50 sessions, 1 queued");
    expect(await page.getByRole("meter", { name: "Sessions in use" }).count()).toBe(1);
    await page.getByText("1 run waits for a free session.").waitFor();
    fake.world.me = {
      ...fake.world.me,
      account: { name: "Mona", tier: "free", session_cap: 50, active_sessions: 50, queued_fires: 3 },
    };
    fake.emit("fire.queued");
    await page
      .getByText("3 runs wait for a free session. All 50 sessions of the account are in use.")
      .waitFor();
    fake.world.me = world().me;
    fake.emit("fire.expired");
    await page.getByText("1 run waits for a free session.").waitFor();
    await page.getByRole("link", { name: "Projects", exact: true }).click();
    await page.getByRole("link", { name: "greeter" }).click();
    await page.getByRole("heading", { name: "greeter", level: 1 }).waitFor();
  });

  it("says what to do when it has no content yet", async () => {
    const { page, fake, visit } = await start({ ...world(), projects: [], queue: [] });
    await page.getByText("No projects yet.").waitFor();
    Object.assign(fake.world, {
      ...world(),
      sessions: [],
      changes: [],
      fires: [],
      refusals: [],
      queue: [],
      listing: { ...world().listing, triggers: [], errors: [] },
    });
    await visit(PROJECT);
    await page.getByText("No sessions yet.").waitFor();
    await visit(`${PROJECT}/triggers`);
    await page.getByText("No triggers yet.").waitFor();
    await visit(`${PROJECT}/fires`);
    await page.getByText("No runs yet.").waitFor();
    await visit(`${PROJECT}/change-requests`);
    await page.getByText("No change requests yet.").waitFor();
    await visit("#/queue");
    await page.getByText("The queue is empty.").waitFor();
    await visit("#/elsewhere");
    await page.getByText("Page not found.").waitFor();
  });

  it("says why a read failed, keeps its content, and tries again", async () => {
    const { page, fake, visit } = await start(world());
    await visit(PROJECT);
    await page.getByText("Tidy the docs").waitFor();
    fake.world.broken = { status: 503, error: "The database does not answer." };
    fake.emit("session.status");
    await page.getByRole("alert").getByText("The database does not answer.").waitFor();
    expect(await page.getByText("Tidy the docs").count()).toBe(1);
    fake.world.broken = null;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
  });

  describe("live state", () => {
    it("shows a session's new state when an event comes, and keeps the focus", async () => {
      const { page, fake, visit } = await start(world());
      const [first, ...others] = fake.world.sessions;
      fake.world.sessions = [{ ...first, status: "provisioning", running_at: null }, ...others];
      await visit(PROJECT);
      await page.locator(".row", { hasText: "Starting" }).waitFor();
      await page.getByText("live", { exact: true }).waitFor();
      const link = page.getByRole("link", { name: "Tidy the docs" });
      await link.focus();
      fake.world.sessions = [first ?? {}, ...others];
      fake.emit("session.status");
      await page.locator(".row", { hasText: "Starting" }).waitFor({ state: "detached" });
      expect(await page.locator(":focus").innerText()).toBe("Tidy the docs");
    });

    it("keeps opened parts open", async () => {
      const { page, fake, visit } = await start(world());
      await visit(`${PROJECT}/triggers`);
      await page.getByText("Prompt").first().click();
      fake.world.listing = { ...fake.world.listing, triggers_paused: true };
      fake.emit("trigger.fired");
      await page.getByText("All triggers of this project are paused.").waitFor();
      expect(await page.locator("details[open]").count()).toBe(1);
    });

    it("reads again after a broken stream, because it may have missed events", async () => {
      const { page, fake, visit } = await start(world());
      await visit(PROJECT);
      await page.getByText("live", { exact: true }).waitFor();
      fake.world.sessions = [];
      fake.cutStreams();
      await page.getByText("No sessions yet.").waitFor();
    });
  });

  it("fits windows of 360 and 1200 pixels without scrolling sideways", async () => {
    const { page, visit } = await start(world(), { width: 360, dark: true });
    for (const [hash, selector] of [
      ["#/", ".sessions"],
      ["#/projects", ".cards"],
      [PROJECT, ".rows"],
      [SESSION, ".session-page .item"],
      [`${PROJECT}/triggers`, ".card"],
      [`${PROJECT}/fires`, ".rows"],
      [`${PROJECT}/fires/${QUEUED_ID}`, ".request"],
      ["#/queue", ".rows"],
      [`${PROJECT}/change-requests/7`, ".diff"],
    ] as const) {
      /* eslint-disable no-await-in-loop -- one window, one page after the other */
      await visit(hash);
      await page.locator(selector).first().waitFor();
      for (const width of [1200, 360]) {
        await page.setViewportSize({ width, height: 800 });
        const overflow = () => page.evaluate("document.documentElement.scrollWidth - innerWidth");
        await expect.poll(overflow, { message: `${hash} at ${width}` }).toBe(0);
      }
      /* eslint-enable no-await-in-loop */
    }
  });

  it("lets the keyboard skip to the content", async () => {
    const { page, fake } = await start(world());
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.getByRole("link", { name: "Skip to content" }).focus();
    await page.keyboard.press("Enter");
    expect(await page.locator(":focus").getAttribute("id")).toBe("main");
    expect(page.url()).toBe(`${fake.url}/`);
  });
});
