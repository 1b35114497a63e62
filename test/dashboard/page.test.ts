import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { TOKEN } from "./fake-service.ts";
import { FIRED_ID, logLine, makeWorld, PROJECT_ID, QUEUED_ID, SESSION_ID } from "./sample-project.ts";

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
      await page.getByRole("alert").getByText("Invalid or expired token.").waitFor();
      await page.getByLabel("Access token").fill(TOKEN);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Projects" }).waitFor();
    });

    it("follows a one-time link and leaves no code in the address", async () => {
      const { page, fake } = await start(world());
      await page.getByRole("heading", { name: "Projects" }).waitFor();
      expect(page.url()).toBe(`${fake.url}/`);
    });

    it("returns to the sign-in form when the reader signs out, and when the session ends", async () => {
      const { page, fake, visit } = await start(world());
      await page.getByRole("button", { name: "Sign out" }).click();
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

  it("shows projects, the account's usage and whether fires wait for a slot", async () => {
    const { page, fake } = await start(world());
    await page.getByRole("link", { name: "greeter" }).waitFor();
    expect(await page.locator("header.top").innerText()).toContain("1 of 50 sessions, 1 waiting");
    expect(await page.getByRole("meter", { name: "Sessions in use" }).count()).toBe(1);
    await page.getByText("1 run is waiting for a free slot.").waitFor();
    fake.world.me = {
      ...fake.world.me,
      account: { name: "Mona", tier: "free", session_cap: 50, active_sessions: 50, queued_fires: 3 },
    };
    await page
      .getByText("3 runs are waiting for a free slot. All 50 sessions of the account are in use.")
      .waitFor();
    fake.world.me = world().me;
    await page.getByText("1 run is waiting for a free slot.").waitFor();
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
      await page.locator(".row", { hasText: "provisioning" }).waitFor();
      await page.getByText("live", { exact: true }).waitFor();
      const link = page.getByRole("link", { name: "Tidy the docs" });
      await link.focus();
      fake.world.sessions = [first ?? {}, ...others];
      fake.emit("session.status");
      await page.locator(".row", { hasText: "running" }).waitFor();
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

  describe("a session", () => {
    it("shows how it boots, its facts, its prompt and its logs", async () => {
      const { page, visit } = await start(world());
      await visit(SESSION);
      await page.getByText("a line of no form").waitFor();
      expect(await page.locator(".timeline .step").allInnerTexts()).toEqual([
        "Accepted",
        "Sandbox requested local",
        "Sandbox live",
        "Running",
      ]);
      const text = await page.locator("main").innerText();
      expect(text).toContain(SESSION_ID);
      expect(text).toContain("Pushed by: Codertocat");
      expect(text).toContain("06:52:05.045 listening port=8000");
      expect(text).toContain("06:52:08.980 runtime: opencode server listening");
      expect(text).toContain("a line of no form");
      await expect.poll(() => page.title()).toBe("The agent asks · on-push · running · Platform");
      const link = page.getByRole("link", { name: /^run …/ });
      expect(await link.getAttribute("href")).toBe(`${PROJECT}/fires/${FIRED_ID}`);
    });

    it("says why it failed, even if it has neither sandbox nor log", async () => {
      const all = world();
      const { page, visit } = await start({ ...all, sandbox: null, logs: [] });
      await visit(`${PROJECT}/sessions/${String(all.sessions[1]?.["id"])}`);
      await page.getByText("clone_failed").first().waitFor();
      await page.getByText("No logs yet.").waitFor();
      const text = await page.locator("main").innerText();
      expect(text).toContain("couldn't find remote ref");
      expect(text).toContain("No logs yet.");
    });

    it("says that its last turn failed and why, in the details and in the list", async () => {
      const all = world();
      const error = { code: "model_unauthorized", message: "The model's provider rejected the key." };
      const last_turn = { state: "failed", error, at: "2026-11-20T06:52:05.618Z" };
      const sessions = all.sessions.map((one, index) => (index === 0 ? { ...one, last_turn } : one));
      const { page, visit } = await start({ ...all, sessions });
      await visit(SESSION);
      await page.getByText("Last turn failed: model_unauthorized").waitFor();
      expect(await page.locator("main").innerText()).toContain(error.message);
      await visit(PROJECT);
      await page.getByText(`Last turn failed: ${error.message}`).waitFor();
    });

    it("says where its unpushed work was saved, and which parts are missing", async () => {
      const all = world();
      const { page, visit } = await start(all);
      const id = String(all.sessions[2]?.["id"]);
      await visit(`${PROJECT}/sessions/${id}`);
      await page.getByText(`refs/wip/${id}`).waitFor();
      expect(await page.locator("main").innerText()).toContain("Skipped: node_modules/ (ignored by git)");
    });

    it("shows its log as it grows, across the end of a sandbox and of a connection, each line once", async () => {
      const { page, fake, visit } = await start(world());
      await visit(SESSION);
      const log = page.locator(".logs");
      await log.getByText("a line of no form").waitFor();
      fake.log(logLine("2026-11-20T06:53:00.000Z", "runtime", "a live line"));
      await log.getByText("06:53:00.000 runtime: a live line").waitFor();
      fake.cutStreams();
      fake.world.logs.push(logLine("2026-11-20T06:54:00.000Z", "daemon", "said meanwhile", "0199bbbb"));
      await log.getByText("said meanwhile").waitFor();
      fake.log(null);
      fake.log(logLine("2026-11-20T06:55:00.000Z", "runtime", "\u001b[31mafter a gap", "0199bbbb"));
      await log.getByText("after a gap").waitFor();
      expect((await log.innerText()).trimEnd().split("\n")).toEqual([
        "06:52:05.045 listening port=8000",
        "06:52:08.980 runtime: opencode server listening",
        "- sandbox: a line of no form",
        "06:53:00.000 runtime: a live line",
        "── new sandbox ──",
        "06:54:00.000 said meanwhile",
        "… some lines are missing …",
        "06:55:00.000 runtime: ␛[31mafter a gap",
      ]);
    });

    it("keeps the newest lines of a long log on the page, and follows only a visible log", async () => {
      const { page, fake, visit } = await start(world());
      await visit(SESSION);
      await page.getByText("a line of no form").waitFor();
      for (let n = 0; n < 3500; n += 1) fake.log(logLine(null, "runtime", `line ${n}.`));
      await page.getByText("line 3499.").waitFor();
      const lines = (await page.locator(".logs").innerText()).trimEnd().split("\n");
      expect([lines.length, lines[0]]).toEqual([3000, "- runtime: line 500."]);
      expect(fake.logReaders()).toBe(1);
      await visit(PROJECT);
      await page.getByRole("link", { name: "on-push" }).first().waitFor();
      await expect.poll(() => fake.logReaders()).toBe(0);
    });

    it("stops after a confirmation, and does not stop if it is declined", async () => {
      const { page, fake, visit } = await start(world());
      await visit(SESSION);
      const stop = page.locator("main").getByRole("button", { name: "Stop session" });
      await stop.click();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
      expect(await page.locator(":focus").innerText()).toBe("Stop session");
      expect(fake.writes).toEqual([]);
      await stop.click();
      await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
      await page.getByText("The session was stopped.").waitFor();
      expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}/stop {}`]);
    });

    it("opens a change request under the title that the user types", async () => {
      const { page, fake, visit } = await start(world());
      await visit(SESSION);
      await page.getByRole("button", { name: "Open a change request" }).click();
      await page.getByRole("dialog").getByLabel("Title").fill("A note");
      await page.keyboard.press("Enter");
      await page.getByText("Change request #8 is open.").waitFor();
      expect(fake.writes).toEqual([
        `POST /v1/projects/${PROJECT_ID}/change-requests {"session_id":"${SESSION_ID}","title":"A note"}`,
      ]);
    });
  });

  it("shows older sessions on request", async () => {
    const all = world();
    const many = Array.from({ length: 120 }, (_, index) => ({
      ...all.sessions[2],
      id: `01995e90-0000-7000-8000-${String(index).padStart(12, "0")}`,
      name: `Session ${String(index)}`,
    }));
    const { page, visit } = await start({ ...all, sessions: many });
    await visit(PROJECT);
    await page.getByRole("button", { name: "Show older sessions" }).click();
    await page.getByRole("link", { name: "Session 99" }).waitFor();
    await page.getByRole("button", { name: "Show older sessions" }).click();
    await page.getByRole("link", { name: "Session 119" }).waitFor();
    expect(await page.getByRole("button", { name: "Show older sessions" }).count()).toBe(0);
  });

  describe("a change request", () => {
    it("shows its commits, and its diff file by file", async () => {
      const { page, visit } = await start(world());
      await visit(`${PROJECT}/change-requests`);
      await page.getByRole("link", { name: "#7 Note the first push" }).click();
      await page.getByText("Write notes/6113728.md").waitFor();
      expect(await page.locator(".file > summary").allInnerTexts()).toEqual([
        "notes/6113728.md new file +3 −0",
        "greet.sh +1 −1",
      ]);
      expect(await page.locator(".diff .removed").allInnerTexts()).toEqual([
        expect.stringContaining("-printf 'Hello"),
      ]);
    });

    it("says which files conflict", async () => {
      const all = world();
      const changes = all.changes.map((change) => ({ ...change, mergeable: false, conflicts: ["greet.sh"] }));
      const { page, visit } = await start({ ...all, changes });
      await visit(`${PROJECT}/change-requests/7`);
      await page.getByText("This change request cannot be merged.").waitFor();
      expect(await page.locator(".callout").innerText()).toContain("greet.sh");
      expect(await page.getByRole("button", { name: "Merge" }).count()).toBe(0);
      expect(await page.getByRole("button", { name: "Close" }).count()).toBe(1);
    });

    it("is merged after a question, and can then be neither merged nor closed", async () => {
      const { page, fake, visit } = await start(world());
      await visit(`${PROJECT}/change-requests/7`);
      await page.getByRole("button", { name: "Merge" }).click();
      await page.getByText("Merge #7 into main?").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
      expect(fake.writes).toEqual([]);
      await page.getByRole("button", { name: "Merge" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Merge" }).click();
      await page.getByText("#7 was merged into main.").waitFor();
      expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/change-requests/7/merge {}`]);
      await page.locator("h1 .badge", { hasText: "merged" }).waitFor();
      expect(await page.locator(".facts").innerText()).toContain("5ca1ab1e5c");
      expect(await page.locator("header.head .actions button").count()).toBe(0);
    });

    it("that now conflicts says where, and shows it", async () => {
      const { page, fake, visit } = await start(world());
      await visit(`${PROJECT}/change-requests/7`);
      await page.getByRole("button", { name: "Merge" }).click();
      fake.world.changes = fake.world.changes.map((change) => ({
        ...change,
        mergeable: false,
        conflicts: ["greet.sh"],
      }));
      fake.world.refused = { status: 409, code: "merge_conflict", error: "They conflict in greet.sh." };
      await page.getByRole("dialog").getByRole("button", { name: "Merge" }).click();
      await page.getByText("They conflict in greet.sh.").waitFor();
      await page.getByText("This change request cannot be merged.").waitFor();
    });

    it("is closed after a question", async () => {
      const { page, fake, visit } = await start(world());
      await visit(`${PROJECT}/change-requests/7`);
      await page.getByRole("button", { name: "Close" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
      await page.getByText("#7 was closed.").waitFor();
      expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/change-requests/7/close {}`]);
      await page.locator("h1 .badge", { hasText: "closed" }).waitFor();
      expect(await page.locator("header.head .actions button").count()).toBe(0);
    });
  });

  it.each([360, 1200])("fits a window of %i pixels without scrolling sideways", async (width) => {
    const { page, visit } = await start(world(), { width, dark: true });
    for (const [hash, selector] of [
      ["#/", ".cards"],
      [PROJECT, ".rows"],
      [SESSION, ".timeline"],
      [`${PROJECT}/triggers`, ".card"],
      [`${PROJECT}/fires`, ".rows"],
      [`${PROJECT}/fires/${QUEUED_ID}`, ".request"],
      ["#/queue", ".rows"],
      [`${PROJECT}/change-requests/7`, ".diff"],
    ] as const) {
      /* eslint-disable no-await-in-loop -- one window, one page after the other */
      await visit(hash);
      await page.locator(selector).first().waitFor();
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      /* eslint-enable no-await-in-loop */
      expect(overflow).toBe(0);
    }
  });

  it("lets the keyboard skip to the content", async () => {
    const { page, fake } = await start(world());
    await page.getByRole("link", { name: "greeter" }).waitFor();
    await page.getByRole("link", { name: "Skip to content" }).focus();
    await page.keyboard.press("Enter");
    expect(await page.locator(":focus").getAttribute("id")).toBe("main");
    expect(page.url()).toBe(`${fake.url}/`);
  });
});
