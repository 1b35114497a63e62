/** Writing to the agent: sending, what waits, ending a turn, and what becomes of a text that the service refuses. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import type { FakeConversation } from "../fakes/fake-conversation.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { sampleWorkspace } from "../samples/sample-workspace.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const API = `/v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const WORKING = { state: "running", since: "2026-11-20T06:52:09.000Z", waiting_for: null };
const IDLE = { state: "idle", since: "2026-11-20T06:52:09.000Z", waiting_for: null };
const MONA = { kind: "user", name: "Mona", trigger_slug: null, fire_id: null };

const messages = (count: number, rest: Partial<FakeConversation> = {}) =>
  conversationOf(
    Array.from({ length: count }, (_, n) => sampleItem(`m${n}`, text(`message ${n}.`))),
    rest,
  );

const queued = (id: string, said: string) =>
  sampleItem(id, { role: "user", author: MONA, status: "queued", completed_at: null, ...text(said) });

const distanceToEnd = (page: Page) =>
  page.locator(".talk").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);

/** What the reader typed: in the tab's storage, and in the browser's. */
const stored = (page: Page) =>
  page.evaluate(() => {
    const typed = Object.entries({ ...localStorage, ...sessionStorage });
    return JSON.stringify(Object.fromEntries(typed.filter(([name]) => name.startsWith("typed:"))));
  });

const title = hasChromium ? "the composer" : "the composer (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const openWith = async (
    conversation: FakeConversation,
    { waits = false, ...options }: { touch?: boolean; width?: number; waits?: boolean } = {},
  ) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const opened = await start({ ...makeWorld(Date.now()), conversation }, options);
    await opened.visit(SESSION);
    // A message that waits is no item of the log yet.
    if (!waits) await opened.page.locator(".items > .item").last().waitFor();
    const { page, fake } = opened;
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    return {
      ...opened,
      area: page.getByRole("textbox", { name: "Message", exact: true }),
      queue: page.getByRole("region", { name: "Queue" }),
      alert: page.locator(".composer-problem"),
      press: (name: string) => page.getByRole("button", { name, exact: true }).click(),
      /** The calls to the service, without the ids of messages. */
      asked: () => fake.writes.map((write) => write.replace(`${API}/`, "").replace(/"id":"[^"]*",/, "")),
      sentIds: () => fake.writes.map((write) => /"id":"([^"]*)"/.exec(write)?.[1]),
    };
  };

  it("sends with Enter, begins a line with Shift+Enter, and keeps the focus", async () => {
    const { page, fake, area, asked, sentIds } = await openWith(messages(3));
    const send = page.getByRole("button", { name: "Send", exact: true });
    expect(await send.isDisabled()).toBe(true);
    await area.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("Open the change");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("request.");
    expect(await send.isEnabled()).toBe(true);
    const height = await area.evaluate((one) => one.clientHeight);
    await page.keyboard.press("Enter");
    await page.getByRole("log").getByText("Open the change\nrequest.").waitFor();
    expect(await area.inputValue()).toBe("");
    expect(await area.evaluate((one) => one.clientHeight)).toBeLessThan(height);
    expect(await page.locator(":focus").getAttribute("id")).toBe("message");
    await expect
      .poll(asked)
      .toEqual(['POST messages {"text":"Open the change\\nrequest.","delivery":"queue"}']);
    const [id = ""] = sentIds();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const item = fake.world.conversation.items.find((one) => one["id"] === id);
    const { place: _place, ...moved } = Object(item) as Record<string, unknown>;
    fake.say("item", { ...moved, status: "sending" });
    fake.say("state", { state: WORKING });
    fake.say("item", { ...moved, status: "accepted" });
    await page.locator(`.items [data-item="${id}"]`).waitFor();
    await page.getByText("Sending…").waitFor({ state: "detached" });
    expect(await page.getByText("Open the change").count()).toBe(1);
    expect(await stored(page)).toBe("{}");
  });

  it("shows a message before the service answers, and sends it again under its id until it does", async () => {
    const { page, fake, area, sentIds } = await openWith(messages(3, { faults: ["unavailable", "lost"] }));
    await area.fill("Once, please.");
    await area.press("Enter");
    const shown = page.getByRole("log").getByText("Once, please.");
    await shown.waitFor();
    await page.getByText("Sending…").waitFor();
    await expect.poll(() => fake.world.conversation.items.length).toBe(4);
    // The lost answer's message comes with the stream.
    await page.getByText("Cancel", { exact: true }).waitFor();
    const ids = sentIds();
    expect([ids.length >= 2, new Set(ids).size]).toEqual([true, 1]);
    expect(await shown.count()).toBe(1);
    await expect.poll(() => stored(page)).toBe("{}");
  });

  it("keeps a message while the service is away, over a reload too, and sends it once", async () => {
    const { page, fake, area, queue, sentIds, complaints } = await openWith(messages(3));
    await fake.down();
    await area.fill("A long text.");
    await area.press("Enter");
    const [kept, cancelled] = ["A long text.", "Another text."].map((hasText) =>
      queue.locator("li", { hasText }),
    );
    await kept?.getByText("Waits for the service.").waitFor();
    await area.fill("Another text.");
    await area.press("Enter");
    await cancelled?.getByRole("button", { name: "Cancel" }).click();
    await cancelled?.waitFor({ state: "detached" });
    await fake.up();
    await page.reload();
    await expect.poll(() => fake.world.conversation.items.length).toBe(4);
    await page.getByRole("log").getByText("A long text.").waitFor();
    await expect.poll(() => stored(page)).toBe("{}");
    expect(sentIds()).toHaveLength(1);
    // The browser itself reports each connection that failed.
    complaints.length = 0;
  });

  it("says on any page that the service refused a message, whose text its session has", async () => {
    const { page, fake, area, queue, alert, complaints } = await openWith(messages(3));
    await fake.down();
    await area.fill("A long text.");
    await area.press("Enter");
    await queue.getByText("Waits for the service.").waitFor();
    await page.evaluate("location.hash = '#/projects'");
    fake.world.refused = { status: 429, code: "queue_full", error: "20 messages wait." };
    await fake.up();
    const notice = page.locator(".notices").getByRole("alert");
    await notice.getByText("20 messages wait.").waitFor();
    await notice.getByRole("link", { name: "Open its session" }).click();
    await expect.poll(() => area.inputValue()).toBe("A long text.");
    await alert.waitFor();
    complaints.length = 0;
  });

  it("queues during a turn, interrupts with Send now, and cancels what waits", async () => {
    const { page, fake, area, queue, press, asked, alert } = await openWith(messages(3, { turn: WORKING }));
    await area.fill("First.");
    await page.keyboard.press("Enter");
    await queue.getByText("First.").waitFor();
    await area.fill("Second.");
    await press("Queue");
    await queue.getByText("2 messages waiting for the agent").waitFor();
    expect(await page.locator(":focus").getAttribute("id")).toBe("message");
    // An interrupting message does not wait for those before it.
    await expect.poll(() => asked().length).toBe(2);
    await area.fill("At once.");
    await press("Send now");
    await queue.getByText("3 messages waiting for the agent").waitFor();
    await queue.locator("li", { hasText: "Second." }).getByRole("button", { name: "Cancel" }).click();
    await queue.getByText("2 messages waiting for the agent").waitFor();
    expect(await page.locator(":focus").getAttribute("id")).toBe("message");
    await page.locator(".items").getByText("Second.").waitFor();
    expect(asked()).toEqual([
      'POST messages {"text":"First.","delivery":"queue"}',
      'POST messages {"text":"Second.","delivery":"queue"}',
      'POST messages {"text":"At once.","delivery":"interrupt"}',
      expect.stringMatching(/^DELETE messages\/[0-9a-f-]{36} $/),
    ]);
    // It was sent meanwhile, and the page does not know it yet.
    const first = fake.world.conversation.items.find((one) => JSON.stringify(one).includes("First."));
    Object.assign(Object(first), { status: "accepted" });
    await queue.locator("li", { hasText: "First." }).getByRole("button", { name: "Cancel" }).click();
    await alert.getByText("The agent has this message.").waitFor();
  });

  it("ends the turn with Stop, and shows a paused queue until it is resumed", async () => {
    const conversation = messages(3, { turn: WORKING });
    const { page, queue, press, asked, fake } = await openWith({
      ...conversation,
      items: [...conversation.items, { ...queued("w", "Then this."), seq: 4, place: 4 }],
      seq: 4,
    });
    await queue.getByText("1 message waiting for the agent").waitFor();
    expect(await queue.getByText("The queue is paused.").count()).toBe(0);
    await press("Stop");
    await page.locator(".turn-word", { hasText: "Resting" }).waitFor();
    await queue.getByRole("status").getByText("The queue is paused.").waitFor();
    expect(await page.getByRole("button", { name: "Stop", exact: true }).count()).toBe(0);
    await queue.getByRole("button", { name: "Resume" }).click();
    await queue.getByText("The queue is paused.").waitFor({ state: "detached" });
    expect(asked()).toEqual(["POST interrupt {}", "POST queue/resume {}"]);
    // The agent rests, so that it gets the message now.
    await page.locator(".next-messages").getByText("Then this.").waitFor();
    fake.say("state", { state: WORKING });
    await queue.getByText("Then this.").waitFor();
  });

  it("says how long the agent works, and what the turn and the session cost", async () => {
    const usage = { input_tokens: 100, output_tokens: 20, cached_tokens: 0, cost_usd: 0.25 };
    const { page, fake } = await openWith(
      conversationOf([sampleItem("a", { turn_id: "t", usage, ...text("one") })], {
        turn: { ...WORKING, since: new Date(new Date().getTime() - 12_000).toISOString() },
      }),
    );
    await page.getByText(/^Working\s*for \d+ (?:s|min \d+ s)$/).waitFor();
    await page.getByText("This turn: 100 tokens in · 20 out · $0.2500").waitFor();
    fake.say("item", sampleItem("b", { turn_id: "t", usage, ...text("two") }));
    fake.say("state", { state: IDLE, usage: { ...usage, cost_usd: 3 } });
    // A turn that has ended has its cost at its end.
    await page.locator(".turn-foot").getByText("200 tokens in · 40 out · $0.5000").waitFor();
    expect(await page.getByText("This turn:").count()).toBe(0);
    await page.getByText("Session: 100 tokens in · 20 out · $3.00").waitFor();
  });

  it("names the model that the agent used last", async () => {
    const { page, fake } = await openWith(
      conversationOf([sampleItem("a", { model: "openai/gpt-5.5", ...text("one") })]),
    );
    const choice = page.getByRole("button", { name: /^Model/ });
    await expect.poll(() => choice.innerText()).toBe("Model: openai/gpt-5.5");
    fake.say("item", sampleItem("b", { model: "anthropic/claude-sonnet-4-5", ...text("two") }));
    await expect.poll(() => choice.innerText()).toBe("Model: anthropic/claude-sonnet-4-5");
  });

  it("promises no former model and no silence while the first message waits", async () => {
    const { page, fake } = await openWith(conversationOf([queued("first", "Begin.")]), { waits: true });
    await page.getByText("Begin.").waitFor();
    const choice = page.getByRole("button", { name: /^Model/ });
    await expect.poll(() => choice.innerText()).toBe("Model: the session's");
    expect(await page.getByText("Nothing was said yet.").count()).toBe(0);
    fake.say("item", sampleItem("answer", text("Done.")));
    await expect.poll(() => choice.innerText()).toBe("Model: as before");
  });

  it("keeps what is typed for each session, over a reload and other pages, until the reader signs out", async () => {
    const { page, fake, area, visit, press } = await openWith(messages(3));
    await area.fill("Half a sent");
    await page.reload();
    await expect.poll(() => area.inputValue()).toBe("Half a sent");
    const other = String(fake.world.sessions[2]?.["id"]);
    await visit(`#/projects/${PROJECT_ID}/sessions/${other}`);
    await page.getByRole("button", { name: "Send and restart" }).waitFor();
    expect(await area.inputValue()).toBe("");
    await visit(SESSION);
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    expect(await area.inputValue()).toBe("Half a sent");
    await openBarMenu(page);
    await press("Sign out");
    await page.getByLabel("Access token").waitFor();
    expect(await stored(page)).toBe("{}");
  });

  it("keeps the first message in the conversation while the agent begins, until it is an item", async () => {
    const first = queued("w", "Say hello.");
    const { page, fake, queue } = await openWith(conversationOf([first], { turn: IDLE }), { waits: true });
    const shown = page.getByRole("log").getByText("Say hello.");
    await shown.waitFor();
    fake.say("state", { state: WORKING });
    await page.locator(".turn-word", { hasText: "Working" }).waitFor();
    expect([await shown.count(), await queue.count()]).toEqual([1, 0]);
    fake.say("item", { ...first, status: "accepted" });
    await page.locator(".items > .item").waitFor();
    expect(await shown.count()).toBe(1);
  });

  it("restarts a stopped session with a message", async () => {
    const { page, fake, area, press, asked, queue, alert } = await openWith(
      conversationOf([sampleItem("a", text("one")), queued("w", "Waits since the stop.")]),
    );
    const [first, ...others] = fake.world.sessions;
    fake.world.sessions = [{ ...first, status: "stopped" }, ...others];
    fake.emit("session.status");
    await page.locator(".turn-word", { hasText: "Asleep" }).waitFor();
    await queue.getByText("The agent gets them after a restart.").waitFor();
    await area.fill("Go on.");
    fake.world.refused = { status: 429, code: "session_cap_reached", error: "All 3 sessions are in use." };
    await press("Send and restart");
    await alert.getByText("All 3 sessions are in use. Stop another session, then send again.").waitFor();
    fake.world.refused = null;
    await press("Send and restart");
    await expect.poll(asked).toHaveLength(2);
    fake.emit("session.status");
    await page.locator(".turn-word", { hasText: "Starting" }).waitFor();
    await page.locator(".next-messages").getByText("Waits for the sandbox").waitFor();
  });

  it("asks for models and agents when the reader opens the choice, and sends what is chosen once", async () => {
    const { page, fake, area, asked } = await openWith(messages(3, { models: null }));
    let reads = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/models")) reads += 1;
    });
    const choice = page.getByRole("button", { name: /^Model:/ });
    expect(await choice.innerText()).toBe("Model: as before");
    await choice.click();
    await page.getByText("The models are known while the session runs.").waitFor();
    fake.world.conversation.models = conversationOf([]).models;
    await choice.click();
    await choice.click();
    const model = page.getByRole("combobox", { name: "Model" });
    expect(await model.innerText()).toBe("As before");
    expect(await page.getByRole("combobox", { name: "Agent" }).inputValue()).toBe("");
    const effort = page.getByRole("combobox", { name: "Effort" });
    expect(await effort.locator("option").allInnerTexts()).toEqual([
      "As before",
      "the model's own",
      "low",
      "high",
    ]);
    await page.getByText("Gemini CLI does not tell the exit code of a command.").waitFor();
    await model.click();
    await page.getByRole("option", { name: /^GPT-5 openai in use/ }).waitFor();
    await page.getByRole("option", { name: /^Claude Sonnet 4.5/ }).click();
    expect(await effort.isDisabled()).toBe(true);
    await page.getByRole("combobox", { name: "Agent" }).selectOption("plan");
    expect(await choice.innerText()).toBe("Model: Claude Sonnet 4.5 · plan");
    await area.fill("Plan it.");
    await area.press("Enter");
    await page.locator(".next-messages").getByText("Plan it.").waitFor();
    expect(await choice.innerText()).toBe("Model: as before");
    await area.fill("Again.");
    await area.press("Enter");
    await expect
      .poll(asked)
      .toEqual([
        'POST messages {"text":"Plan it.","delivery":"queue","model":"anthropic/claude-sonnet-4-5","agent":"plan"}',
        'POST messages {"text":"Again.","delivery":"queue"}',
      ]);
    expect(reads).toBe(2);
  });

  it("completes a command by keyboard, and sends what stands there", async () => {
    const { page, area, asked } = await openWith(messages(3, { turn: WORKING }));
    let reads = 0;
    page.on("request", (request) => {
      if (request.url().endsWith("/models")) reads += 1;
    });
    const rows = page.getByRole("listbox", { name: "Commands" }).getByRole("option");
    await area.focus();
    await page.keyboard.type("/");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(4);
    // Escape closes the menu, and does not end the turn. The menu stays closed for this word.
    await page.keyboard.press("Escape");
    await rows.first().waitFor({ state: "detached" });
    await page.keyboard.type("r");
    expect(await rows.count()).toBe(0);
    await area.fill("");
    await page.keyboard.type("/re");
    await rows.first().waitFor();
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(/^\/review/),
      expect.stringMatching(/^\/release/),
    ]);
    await page.keyboard.press("ArrowDown");
    const chosen = page.locator(`[id="${(await area.getAttribute("aria-activedescendant")) ?? ""}"]`);
    expect(await chosen.innerText()).toMatch(/^\/release/);
    await page.keyboard.press("Enter");
    expect(await area.inputValue()).toBe("/release ");
    await page.keyboard.type("2.0 today");
    await page.keyboard.press("Enter");
    await expect.poll(asked).toEqual(['POST messages {"text":"/release 2.0 today","delivery":"queue"}']);
    expect(reads).toBe(1);
  });

  it("says why there are no commands, and has no menu if the runtime names none", async () => {
    const { page, fake, area, asked } = await openWith(messages(3, { models: null }));
    await area.focus();
    await page.keyboard.type("/init");
    await page.locator(".completion").getByText("The models are known while the session runs.").waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(asked).toEqual(['POST messages {"text":"/init","delivery":"queue"}']);
    fake.world.conversation.models = { ...conversationOf([]).models, commands: undefined };
    const answered = page.waitForResponse((response) => response.url().endsWith("/models"));
    await page.keyboard.type("/");
    await answered;
    await expect.poll(() => page.locator(".completion").count()).toBe(0);
  });

  it("completes files of the repository and of the workspace, folder by folder or by their letters", async () => {
    const { page, fake, area } = await openWith(messages(3));
    fake.world.workspace = sampleWorkspace;
    const rows = page.getByRole("listbox", { name: "Files" }).getByRole("option");
    const names = async () => (await rows.allInnerTexts()).map((row) => row.split("\n")[0]);
    await area.focus();
    await page.keyboard.type("Read @");
    await expect
      .poll(names)
      .toEqual([
        ".opencode/",
        "bin/",
        "docs/",
        "notes/",
        "src/",
        "test/",
        "LICENSE",
        "README.md",
        "todo.txt",
      ]);
    await page.keyboard.type("sr");
    await page.keyboard.press("Tab");
    expect(await area.inputValue()).toBe("Read @src/");
    await expect.poll(names).toEqual(["greeting/", "main.ts"]);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    expect(await area.inputValue()).toBe("Read @src/main.ts ");
    expect(await rows.count()).toBe(0);
    await page.keyboard.type("and @tdo");
    await rows.first().click();
    expect(await area.inputValue()).toBe("Read @src/main.ts and @todo.txt ");
    expect(await page.locator(":focus").getAttribute("id")).toBe("message");
  });

  it("has no menu while an input method composes", async () => {
    const { page, area } = await openWith(messages(3));
    const keys = await page.context().newCDPSession(page);
    const menu = page.locator(".completion");
    await area.focus();
    await keys.send("Input.imeSetComposition", { text: "/", selectionStart: 1, selectionEnd: 1 });
    expect([await area.inputValue(), await menu.count()]).toEqual(["/", 0]);
    await keys.send("Input.insertText", { text: "/" });
    await menu.waitFor();
  });

  it("keeps the end of the conversation in view while the text grows, and only from the end", async () => {
    const { page, fake, area } = await openWith(messages(60));
    const lines = "line\n".repeat(8);
    await area.fill(lines);
    await expect.poll(() => distanceToEnd(page)).toBeLessThan(1);
    // The reader scrolls in the very frame in which the text area gives its height back to the conversation.
    await page.evaluate(`{
      const area = document.getElementById("message");
      // As the browser itself does: an assignment to the element alone is no typing.
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(area, "");
      area.dispatchEvent(new Event("input", { bubbles: true }));
      document.querySelector(".talk").scrollTop = 500;
    }`);
    await page.getByRole("button", { name: "Newest" }).waitFor();
    await area.fill(lines);
    fake.say("item", sampleItem("later", text("a later one")));
    fake.say("state", { state: WORKING });
    await page.locator(".turn-word", { hasText: "Working" }).waitFor();
    expect(await page.locator(".talk").evaluate((log) => log.scrollTop)).toBe(500);
    await area.fill("Queued.");
    await area.press("Enter");
    await page.getByRole("region", { name: "Queue" }).getByText("Queued.").waitFor();
    expect(await page.locator(".talk").evaluate((log) => log.scrollTop)).toBe(500);
  });

  it("keeps the caret and the selection in the text area while the page changes", async () => {
    const { page, fake, area } = await openWith(messages(3));
    await area.fill("one two three");
    await area.focus();
    await page.evaluate(`document.getElementById("message").setSelectionRange(4, 7)`);
    fake.say("item", sampleItem("later", text("a later one")));
    fake.say("state", { state: WORKING });
    fake.emit("session.status");
    await page.getByRole("button", { name: "Queue" }).waitFor();
    await page.keyboard.type("2");
    expect(await area.inputValue()).toBe("one 2 three");
  });

  it("begins a line with Enter on a phone, and sends with the button", async () => {
    const { page, area, asked, press } = await openWith(messages(3), { touch: true, width: 375 });
    await area.tap();
    await page.keyboard.type("one");
    await page.keyboard.press("Enter");
    await page.keyboard.type("two");
    expect(await area.inputValue()).toBe("one\ntwo");
    await press("Send");
    await expect.poll(asked).toEqual(['POST messages {"text":"one\\ntwo","delivery":"queue"}']);
  });
});
