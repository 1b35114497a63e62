/** A session's page: how it boots, its log, what a person does with it; and older sessions in the list. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { conversationOf, sampleItem, sampleTool, text } from "../samples/sample-conversation.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import {
  FAILED_ID,
  FIRED_ID,
  logLine,
  makeWorld,
  PROJECT_ID,
  SESSION_ID,
} from "../samples/sample-project.ts";
import { chosen } from "../states/state-of-a-page.ts";
import { withRole } from "../states/states-of-people.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

const openLog = (page: Page) => page.getByRole("tab", { name: "Log" }).click();

const title = hasChromium ? "a session on its page" : "a session on its page (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows how it boots, its facts, its prompt and its logs", async () => {
    const { page, visit } = await start(world());
    await visit(SESSION);
    await page.getByText("Pushed by: Codertocat").waitFor();
    await openLog(page);
    await page.getByText("a line of no form").waitFor();
    const log = await page.locator("main").innerText();
    expect(log).toContain("06:52:05.045 listening port=8000");
    expect(log).toContain("06:52:08.980 runtime: opencode server listening");
    await page.getByRole("tab", { name: "Details" }).click();
    await page.locator(".timeline").waitFor();
    expect(await page.locator(".timeline .step").allInnerTexts()).toEqual([
      "Accepted",
      "Sandbox requested local",
      "Sandbox live",
      "Running",
    ]);
    const words = await page.locator("main").innerText();
    expect(words).toContain(SESSION_ID);
    expect(words).toContain("node-1");
    await expect.poll(() => page.title()).toBe("(1) Needs you · on-push · Platform");
    const link = page.getByRole("link", { name: /^run …/ });
    expect(await link.getAttribute("href")).toBe(`${PROJECT}/fires/${FIRED_ID}`);
  });

  it.each([
    ["members", "member", 1],
    ["members", "viewer", 0],
    ["owners", "owner", 1],
    ["owners", "member", 0],
    ["off", "owner", 0],
  ])("has a terminal for %s: a reader with the role %s gets %i buttons", async (terminals, role, buttons) => {
    const all = world();
    withRole(role)(all);
    all.me = { ...all.me, terminals };
    const { page, visit } = await start(all);
    await visit(SESSION);
    await page.getByRole("tab", { name: "Log" }).waitFor();
    const tab = page.getByRole("tab", { name: "Terminal" });
    expect(await tab.count()).toBe(buttons);
    if (buttons === 0) return;
    await tab.click();
    await page.getByRole("button", { name: "Open a terminal" }).waitFor();
  });

  it("says what it does in the words of the list, and names what waits for a person first", async () => {
    const all = world();
    for (const one of all.sessions) Object.assign(one, { initial_prompt: null });
    all.conversation.turn = { state: "idle", since: null, waiting_for: null };
    const { page, fake, visit } = await start(all);
    const state = page.locator(".state-word");
    await visit(SESSION);
    await state.getByText("Resting").waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    for (const [turn, word] of [
      ["running", "Working"],
      ["requires_action", "Needs you"],
    ]) {
      for (const one of fake.world.sessions)
        Object.assign(one, { turn: { state: turn, since: null, waiting_for: null } });
      fake.say("state", { state: { state: turn, since: null, waiting_for: null } });
      fake.emit("session.turn");
      await state.getByText(String(word)).waitFor();
    }
    await expect.poll(() => page.title()).toBe("(2) Needs you · on-push · Platform");
  });

  it("is not asked for ports and waiting calls by a reader who may not use them", async () => {
    const all = world();
    withRole("viewer")(all);
    const { page, fake, visit } = await start(all);
    await visit(SESSION);
    await page.getByText("To write to the agent, you need the role member in the project.").waitFor();
    // The page knows the role now, and reads the session anew.
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    fake.emit("session.status");
    await expect.poll(() => asked.some((path) => path.endsWith(SESSION_ID))).toBe(true);
    await expect.poll(() => asked.some((path) => path.endsWith("/change-requests"))).toBe(true);
    expect(asked.filter((path) => /\/(?:ports|approvals)$/.test(path))).toEqual([]);
  });

  it("says why it failed, even if it has neither sandbox nor log", async () => {
    const all = world();
    const { page, visit } = await start({ ...all, sandbox: null, logs: [] });
    await visit(`${PROJECT}/sessions/${String(all.sessions[1]?.["id"])}`);
    await page.getByText("The repository could not be cloned.").waitFor();
    await page.getByText("No logs yet.").waitFor();
    const words = await page.locator("main").innerText();
    expect(words).toContain("couldn't find remote ref");
    expect(words).toContain("No logs yet.");
  });

  it("says that its last turn failed and why, in the details and in the list, until the next turn begins", async () => {
    const all = { ...world(), conversation: conversationOf([]) };
    const error = { code: "model_unauthorized", message: "The model's provider rejected the key." };
    const last_turn = { state: "failed", error, at: "2026-11-20T06:52:05.618Z" };
    const sessions = all.sessions.map((one, index) => (index === 0 ? { ...one, last_turn } : one));
    const { page, fake, visit } = await start({ ...all, sessions });
    await visit(SESSION);
    const box = page.getByText("The model's provider refused the key.");
    await box.waitFor();
    expect(await page.locator("main").innerText()).toContain(error.message);
    await page.getByRole("link", { name: "Replace the key" }).first().click();
    await page.getByRole("heading", { name: "Add a secret" }).waitFor();
    await visit(PROJECT);
    const row = page.getByText(`Last turn failed: ${error.message}`);
    await row.waitFor();
    await visit(SESSION);
    await box.waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    const turn = (state: string) => ({
      state: { state, since: all.sessions[0]?.["created_at"], waiting_for: null },
    });
    for (const one of fake.world.sessions) Object.assign(one, { turn: turn("running").state });
    fake.say("state", turn("running"));
    fake.emit("session.status");
    await box.waitFor({ state: "detached" });
    await page.locator(".state-word", { hasText: "Working" }).waitFor();
    // Until the page has read how the next turn ended, it does not show the old failure again.
    fake.say("state", turn("idle"));
    await page.locator(".turn-word", { hasText: "Resting" }).waitFor();
    expect(await box.count()).toBe(0);
    await visit(PROJECT);
    await page.locator(".row").first().waitFor();
    await expect.poll(() => row.count()).toBe(0);
  });

  it("shows its log as it grows, across the end of a sandbox and of a connection, each line once", async () => {
    const { page, fake, visit } = await start(world());
    await visit(SESSION);
    await openLog(page);
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

  it("keeps the newest lines of a long log on the page, and follows only an open log", async () => {
    const { page, fake, visit } = await start(world());
    await visit(SESSION);
    await page.getByRole("log").locator(".item").first().waitFor();
    expect(fake.logReaders()).toBe(0);
    await openLog(page);
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
    const stop = () => chosen("Stop session")(page);
    await stop();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Actions for on-push");
    expect(fake.writes).toEqual([]);
    await stop();
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    await page.getByText("The session was stopped.").waitFor();
    expect(fake.writes).toEqual([
      `POST /v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}/stop {"save":"require"}`,
    ]);
  });

  it("offers a change request only if something is new", async () => {
    const { page, visit } = await start(world());
    await visit(SESSION);
    await page.getByText("The agent has not changed a file yet.").waitFor();
    expect(await page.getByRole("button", { name: "Open a change request" }).count()).toBe(0);
  });

  it("says that nothing is new when all its commits are merged", async () => {
    const all = world();
    const { changes } = sampleWork(0);
    const merged = { ...changes, commits_total: 0, commits: [], files_changed_total: 0, files_changed: [] };
    const { page, visit } = await start({ ...all, work: { changes: merged, diff: "" } });
    await visit(SESSION);
    await page.getByText("Nothing is new: all pushed commits are merged.").waitFor();
    expect(await page.getByRole("button", { name: "Open a change request" }).count()).toBe(0);
  });

  it("names what is merged also after a later request was closed, and the session with which it began", async () => {
    const all = world();
    const [session = {}, ...others] = all.sessions;
    const begun_from = {
      session_id: "0199aaaa-0000-7000-8000-000000000001",
      title: "An older one",
      at: null,
    };
    all.sessions = [{ ...session, metadata: { begun_from } }, ...others];
    const request = { ...all.changes[0], session_id: SESSION_ID, head_ref: SESSION_ID };
    all.changes = [
      { ...request, id: "c-9", number: 9, status: "closed" },
      { ...request, id: "c-8", number: 8, status: "merged", merged_commit: "6dc2e72333".padEnd(40, "0") },
    ];
    const { page, visit } = await start(all);
    await visit(SESSION);
    await page.getByRole("link", { name: "#8 merged as 6dc2e72" }).waitFor();
    expect(await page.getByRole("link", { name: "#9" }).count()).toBe(0);
    const link = page.locator(".facts-of-session").getByRole("link", { name: "An older one" });
    expect(await link.getAttribute("href")).toBe(`${PROJECT}/sessions/0199aaaa-0000-7000-8000-000000000001`);
  });

  it("that failed says what to do about it, and has one button for that", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${PROJECT}/sessions/${FAILED_ID}`);
    const failure = page.locator(".callout", { hasText: "The repository could not be cloned." });
    await failure.getByText("Read the session's log and check the repository, then restart").waitFor();
    const restart = page.getByRole("button", { name: "Restart", exact: true, includeHidden: true });
    expect(await restart.count()).toBe(1);
    await failure.getByRole("button", { name: "Restart" }).click();
    await page.getByText("The session is restarting").waitFor();
    expect(fake.writes.at(-1)).toContain(`/sessions/${FAILED_ID}/restart`);
  });

  it("says in one line what the agent said last, also while it rests", async () => {
    const all = world();
    const [first = {}, ...others] = all.sessions;
    const last_sentence = "The greeting follows the hour.";
    all.sessions = [{ ...first, activity: "resting", last_sentence }, ...others];
    const { page, fake, visit } = await start({ ...all, conversation: conversationOf([]) });
    await visit(SESSION);
    await page.locator(".last-sentence", { hasText: last_sentence }).waitFor();
    // A turn has begun, and has said nothing yet.
    fake.world.sessions = [{ ...first, activity: "working", last_sentence }, ...others];
    fake.emit("session.turn_changed");
    await page.locator(".last-sentence").waitFor({ state: "detached" });
  });

  it("opens a change request, whose description begins with the agent's last message", async () => {
    const summary = "The greeting follows the hour.\n\n- `greet.sh` reads the clock.\n- The tests pass.";
    const conversation = conversationOf([
      sampleItem("first", text("I look.")),
      sampleItem("summary", text(summary)),
      sampleItem("of-a-call", { ...text("Not the agent's own."), parent_id: "call" }),
      ...Array.from({ length: 210 }, (_, n) => sampleItem(`call-${n}`, sampleTool())),
      sampleItem("grows", { ...text("And n"), status: "running", completed_at: null }),
    ]);
    const { page, fake, visit } = await start({ ...world(), conversation, work: sampleWork(0) });
    await visit(SESSION);
    await page.getByRole("button", { name: "Open a change request" }).click();
    const description = page.getByRole("dialog").getByLabel("Description");
    expect(await description.inputValue()).toBe(summary);
    await description.fill("Why it is so.");
    await page.getByRole("dialog").getByLabel("Title").fill("A note");
    await page.keyboard.press("Enter");
    await page.getByText("Change request #8 is open.").waitFor();
    expect(fake.writes).toEqual([
      `POST /v1/projects/${PROJECT_ID}/change-requests {"session_id":"${SESSION_ID}","title":"A note","description":"Why it is so."}`,
    ]);
  });

  it("finds a message of its conversation that is not read yet, and goes there", async () => {
    const conversation = conversationOf(
      Array.from({ length: 450 }, (_, n) =>
        sampleItem(`m${n}`, text(n === 40 ? "A porcupine." : `Step ${n}.`)),
      ),
    );
    const { page, visit } = await start({ ...world(), conversation });
    await visit(SESSION);
    await page.locator("[data-item=m449]").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("porcupine");
    await page.getByRole("option", { name: /^Message A porcupine\. in this session/ }).click();
    const found = page.locator("[data-item=m40][data-marked]");
    await found.waitFor();
    await expect.poll(() => found.evaluate((one) => one.getBoundingClientRect().top)).toBeLessThan(800);
  });

  it("leads from a project's usage, and by the palette, to the limits of spend in view", async () => {
    const { page, visit } = await start(world());
    const heading = page.getByRole("heading", { name: "Limits of spend" });
    const top = () => heading.evaluate((one) => one.getBoundingClientRect().top);
    await visit("#/models");
    await heading.waitFor();
    expect(await top()).toBeGreaterThan(800);
    await visit(`${PROJECT}/usage`);
    await page.getByRole("link", { name: /^Limits of spend/ }).click();
    await heading.waitFor();
    await expect.poll(top).toBeLessThan(200);
    await visit(PROJECT);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("limits of");
    await page.getByRole("option", { name: /Limits of spend/ }).click();
    await heading.waitFor();
    await expect.poll(top).toBeLessThan(200);
  });

  it("says how many models of a provider's list are left out, until they are named", async () => {
    const { page, visit } = await start(world());
    await visit("#/models");
    await page.getByText("Add a provider", { exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill("acme");
    await page.getByRole("button", { name: "Try and save", exact: true }).click();
    const row = page.getByRole("listitem").filter({ hasText: "acme/listed-0" });
    await row.getByText("Its list has 3 more models, left out here. Change it to name others.").waitFor();
    await page.getByRole("button", { name: "Change: acme" }).click();
    await page.getByLabel("Models", { exact: true }).fill("listed-202");
    await page.getByRole("button", { name: "Try and save", exact: true }).click();
    await page.getByRole("code").filter({ hasText: "acme/listed-202" }).waitFor();
    expect(await page.getByText("left out here").count()).toBe(0);
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
});
