/** What the agent asks: cards with the form of the answer, the bar for a card out of view, and what became of a request. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { conversationOf, planItems, sampleItem, sampleTool, text } from "../samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

type Json = Readonly<Record<string, unknown>>;

const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const API = `/v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const HUBOT = { kind: "user", name: "Hubot", trigger_slug: null, fire_id: null };
const AT = "2026-11-20T06:53:00.000Z";

const open = { status: "pending", completed_at: null };
const permission = (rest: Json = open) => ({
  kind: "request",
  request: { kind: "permission", title: "Fetch a page", patterns: ["https://example.com/*"], questions: [] },
  ...rest,
});
const question = (questions: readonly Json[], rest: Json = open) => ({
  kind: "request",
  request: {
    kind: "question",
    title: "",
    patterns: [],
    questions: questions.map((one) => ({ title: "", options: [], multiple: false, ...one })),
  },
  ...rest,
});
const failedTool = (message: string) => ({
  ...sampleTool(),
  status: "failed",
  error: { code: "tool_failed", message },
});
const option = (label: string, description: string | null = null) => ({ label, description });

const title = hasChromium ? "a request" : "a request (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const openWith = async (items: readonly Json[]) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const opened = await start({ ...makeWorld(Date.now()), conversation: conversationOf(items) });
    await opened.visit(SESSION);
    const { page, fake } = opened;
    await page.locator(".items > .item").last().waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    return {
      ...opened,
      card: page.locator("[data-item=r]"),
      press: (name: string) => page.locator("[data-item=r]").getByRole("button", { name }).click(),
      asked: () => fake.writes.map((write) => write.replace(`POST ${API}/requests/`, "")),
    };
  };

  it.each([
    ["Allow once", "once", "allowed once by Mona"],
    ["Always in this session", "always", "always allowed by Mona"],
    ["Deny", "reject", "denied by Mona"],
  ])("for a permission is answered with %s", async (button, choice, outcome) => {
    const { page, card, press, asked } = await openWith([sampleItem("r", permission())]);
    expect(await card.innerText()).toContain("https://example.com/*");
    await press(button);
    await card.getByText(outcome).waitFor();
    expect(await card.getByRole("button").count()).toBe(0);
    expect(asked()).toEqual([`r/answer {"choice":"${choice}"}`]);
    // The focus stays in the conversation.
    expect(await page.locator(":focus").getAttribute("role")).toBe("log");
  });

  it("shows the whole command as it will run, and what `Always` allows", async () => {
    const command =
      "rm -f a && (echo aGkK | base64 -d | sh) > README.md 2>&1\nfor i in 1 2; do rm -f b; done " +
      "x".repeat(300);
    const patterns = ["rm -f a", "echo aGkK", "base64 -d", "sh", "rm -f b"];
    const request = {
      kind: "permission",
      title: "bash",
      patterns,
      command,
      always: ["rm *", "sh *"],
      questions: [],
    };
    const { card } = await openWith([sampleItem("r", { ...permission(), request })]);
    const shown = card.getByLabel("The command");
    expect(await shown.textContent()).toBe(command);
    expect(await shown.evaluate((pre) => pre.scrollWidth > pre.clientWidth)).toBe(false);
    expect(await shown.evaluate((pre) => pre.scrollHeight > pre.clientHeight)).toBe(false);
    await card.getByText("“Always” allows").waitFor();
    expect(await card.locator(".plain code").allInnerTexts()).toEqual(["rm *", "sh *"]);
  });

  it("for a change shows it, its call waits, and the answer folds it to a line", async () => {
    const patch = "--- a.sh\n+++ a.sh\n@@ -1,1 +1,1 @@\n-echo one\n+echo two\n";
    const changes = [{ path: "a.sh", operation: "update", patch }];
    const request = { kind: "permission", title: "edit", patterns: ["a.sh"], changes, questions: [] };
    const { page, card, press } = await openWith([
      sampleItem("t", { ...sampleTool(), ...open, status: "running" }),
      sampleItem("r", { ...permission(), request }),
    ]);
    expect(await page.locator("[data-item=t] .badge").innerText()).toBe("waiting");
    expect(await card.locator(".diff").innerText()).toContain("echo two");
    await press("Allow once");
    await card.getByText("Permission: edit a.sh").waitFor();
    expect(await card.locator(".diff").count()).toBe(0);
    await card.locator("summary").first().click();
    expect(await card.locator(".diff").innerText()).toContain("echo two");
    expect(await card.getByText("once", { exact: true }).count()).toBe(0);
  });

  it("is denied with words by Enter, which never allows", async () => {
    const { page, card, asked } = await openWith([sampleItem("r", permission())]);
    await card.getByRole("textbox").fill("Use the copy in docs/.");
    await page.keyboard.press("Enter");
    await card.getByText("denied by Mona").waitFor();
    expect(asked()).toEqual(['r/answer {"choice":"reject","message":"Use the copy in docs/."}']);
    expect(await card.locator("blockquote").innerText()).toBe("Use the copy in docs/.");
  });

  it("for a plan shows it once, and is approved with a way to go on", async () => {
    const { page, card, press, asked } = await openWith(planItems("r"));
    expect(await page.getByText("I do not touch the translations").count()).toBe(1);
    await card.getByLabel("How the agent goes on").selectOption("acceptEdits");
    await press("Approve");
    await card.getByText("approved by Mona").waitFor();
    expect(asked()).toEqual(['r/answer {"approve":true,"mode":"acceptEdits"}']);
  });

  it("for a plan asks for another one with a message", async () => {
    const { page, card, press, fake } = await openWith(planItems("r"));
    await press("Ask for another plan");
    await card.getByText("Write what to change, or approve the plan.").waitFor();
    await card.getByLabel("What to change in the plan").fill("Leave the README.");
    await press("Ask for another plan");
    await card.getByText("not approved").waitFor();
    expect(fake.writes.at(-1)).toMatch(
      /messages \{"id":"[^"]+","text":"Leave the README\.","restore_saved":true\}$/,
    );
    await page.getByText("Leave the README.").first().waitFor();
  });

  it("names a question once, also if the runtime names the request like it", async () => {
    const { card } = await openWith([
      sampleItem("r", {
        kind: "request",
        request: {
          kind: "question",
          title: "Licence",
          patterns: [],
          questions: [{ title: "Licence", text: "Which one?", options: [option("MIT")], multiple: false }],
        },
        ...open,
      }),
    ]);
    expect(await card.getByText("Licence").count()).toBe(1);
  });

  it("with several questions is answered by choices and own words, once all are answered", async () => {
    const questions = [
      {
        title: "Title",
        text: "Which title?",
        options: [option("Note it", "As the note says"), option("Add")],
      },
      { text: "Which checks?", multiple: true, options: [option("lint"), option("types"), option("tests")] },
      { text: "Which base?", options: [option("main")] },
      { text: "Anything else?" },
    ];
    const { page, fake, card, press, asked } = await openWith([sampleItem("r", question(questions))]);
    await card.getByRole("radio", { name: "Note it As the note says" }).check();
    await card.getByRole("checkbox", { name: "lint" }).check();
    await card.getByRole("checkbox", { name: "tests" }).check();
    await card.getByRole("textbox", { name: "In your own words: Which checks?" }).fill("spelling");
    await card.getByRole("textbox", { name: "In your own words: Which base?" }).fill("next");
    // The choices survive a new version and later items.
    fake.say("item", sampleItem("r", { place: 1, rev: 2, ...question(questions) }));
    fake.say("item", sampleItem("later", text("a later one")));
    await page.getByText("a later one").waitFor();
    await press("Answer");
    await card.getByRole("alert").getByText("Answer each question.").waitFor();
    expect(await page.locator(":focus").getAttribute("name")).toBe("other3");
    expect(asked()).toEqual([]);
    await page.keyboard.type("No.");
    await press("Answer");
    await card.getByText("answered by Mona").waitFor();
    expect(asked()).toEqual([
      'r/answer {"answers":[["Note it"],["lint","tests","spelling"],["next"],["No."]]}',
    ]);
    expect(await card.locator(".given").allInnerTexts()).toEqual([
      "Note it",
      "lint, tests, spelling",
      "next",
      "No.",
    ]);
  });

  it("keeps what is typed while its card is out of the document", async () => {
    const many = Array.from({ length: 80 }, (_, n) => sampleItem(`m${n}`, text(`message ${n}.`)));
    const { page, fake, card } = await openWith([sampleItem("r", question([{ text: "Why?" }])), ...many]);
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await card.getByRole("textbox").fill("Because.");
    await page.getByRole("button", { name: "Newest" }).click();
    for (let n = 0; n < 80; n += 1) fake.say("item", sampleItem(`n${n}`, text(`newer ${n}.`)));
    await page.getByText("newer 79.").waitFor();
    await card.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Show", exact: true }).click();
    expect(await card.getByRole("textbox").inputValue()).toBe("Because.");
  });

  it("for one answer in words is answered in the composer, which keeps the text until then", async () => {
    const { page, fake, card, asked } = await openWith([
      sampleItem("r", question([{ text: "Which title?" }])),
    ]);
    const area = page.getByRole("textbox", { name: "Message", exact: true });
    fake.say("state", {
      state: { state: "requires_action", since: AT, waiting_for: { kind: "question", item_id: "r" } },
    });
    await expect.poll(() => area.getAttribute("placeholder")).toBe("Answer the agent…");
    await area.fill("“Greet in French”");
    fake.world.refused = { status: 503, code: "busy", error: "The service is busy." };
    await area.press("Enter");
    await page.locator(".composer-problem").getByText("The service is busy.").waitFor();
    expect(await area.inputValue()).toBe("“Greet in French”");
    fake.world.refused = null;
    await page.locator(".composer").getByRole("button", { name: "Answer", exact: true }).click();
    await card.getByText("answered by Mona").waitFor();
    await expect.poll(() => area.inputValue()).toBe("");
    expect(asked().at(-1)).toBe('r/answer {"answers":[["“Greet in French”"]]}');
    expect(await page.locator(".composer-problem").innerText()).toBe("");
  });

  it("for which words are not enough is not answered in the composer", async () => {
    const { page, fake, asked } = await openWith([sampleItem("r", permission())]);
    const area = page.getByRole("textbox", { name: "Message", exact: true });
    fake.say("state", {
      state: { state: "requires_action", since: AT, waiting_for: { kind: "permission", item_id: "r" } },
    });
    await expect
      .poll(() => area.getAttribute("placeholder"))
      .toBe("Answer above. A message waits until then…");
    await area.fill("And then test it.");
    await area.press("Enter");
    await page.getByRole("region", { name: "Queue" }).getByText("And then test it.").waitFor();
    expect(asked()).toEqual([expect.stringContaining('"text":"And then test it.","delivery":"queue"')]);
  });

  it("out of view is shown as a bar above the composer, which leads to it", async () => {
    const many = Array.from({ length: 60 }, (_, n) => sampleItem(`m${n}`, text(`message ${n}.`)));
    const { page, fake, card } = await openWith([...many, sampleItem("r", permission())]);
    const bar = page.locator(".ask-bar");
    expect(await bar.innerText()).toBe("");
    await page.locator(".talk").evaluate((log) => {
      log.scrollTop = 300;
    });
    await bar.getByText("The agent asks for permission: Fetch a page").waitFor();
    expect(await bar.getAttribute("role")).toBe("status");
    fake.say("item", sampleItem("r2", question([{ text: "Which one?" }])));
    await bar.getByText("and 1 more").waitFor();
    expect(await page.locator(".talk").evaluate((log) => log.scrollTop)).toBe(300);
    await bar.getByRole("button", { name: "Show", exact: true }).click();
    await expect.poll(() => page.locator(":focus").innerText()).toBe("Allow once");
    await page.keyboard.press("Enter");
    await card.getByText("allowed once by Mona").waitFor();
  });

  it("that somebody answered first says who and how", async () => {
    const { fake, card, press, asked } = await openWith([sampleItem("r", permission())]);
    // The page does not know it yet.
    Object.assign(Object(fake.world.conversation.items[0]), {
      status: "completed",
      answer: { by: HUBOT, at: AT, choice: "reject", message: "Not this one." },
    });
    await press("Allow once");
    await card.getByText("denied by Hubot").waitFor();
    expect(await card.innerText()).toContain("Not this one.");
    expect(await card.getByRole("button").count()).toBe(0);
    expect(asked()).toHaveLength(1);
  });

  it("shows its answer once, though the runtime says it as a text, too", async () => {
    const { card } = await openWith([
      sampleItem("r", {
        ...text("CHF"),
        ...question([{ text: "Which currency?", options: [option("CHF"), option("EUR")] }], {
          status: "completed",
        }),
        answer: { by: HUBOT, at: AT, answers: [["CHF"]] },
      }),
    ]);
    await card.getByText("answered by Hubot").waitFor();
    expect((await card.innerText()).split("CHF")).toHaveLength(2);
  });

  it("keeps its form if the answer could not be sent, and says why", async () => {
    const { fake, card, press, asked } = await openWith([sampleItem("r", permission())]);
    fake.world.refused = { status: 503, code: "busy", error: "The service is busy." };
    await press("Allow once");
    await card.getByRole("alert").getByText("The service is busy.").waitFor();
    fake.world.refused = null;
    await press("Allow once");
    await card.getByText("allowed once by Mona").waitFor();
    expect(asked()).toHaveLength(2);
  });

  it("to call a tool that a person denied is no failure of the tool", async () => {
    const denied =
      "The call of publish of the connector wiki was denied by a person, and was not made. The reason: Not today.";
    const { page } = await openWith([
      sampleItem("d", failedTool(denied)),
      sampleItem("f", failedTool("No such page.")),
    ]);
    expect(await page.locator(".items .badge").allInnerTexts()).toEqual(["denied", "failed"]);
    const shown = await page.getByRole("log").innerText();
    expect(shown).toContain(denied);
    expect(shown).not.toContain("tool_failed");
  });

  it("without an answer says why", async () => {
    const unattended = { status: "failed", answer: { by: null, at: AT, declined: "unattended" } };
    const expired = { status: "failed", answer: { by: null, at: AT, declined: "expired" } };
    const { page } = await openWith([
      sampleItem("a", permission(unattended)),
      sampleItem("b", question([{ text: "Which one?" }], expired)),
      sampleItem("c", permission({ status: "interrupted" })),
    ]);
    expect(await page.locator(".items .badge").allInnerTexts()).toEqual(["declined", "expired", "expired"]);
    const shown = await page.getByRole("log").innerText();
    expect(shown).toContain("a trigger started this session, so it has no person to ask");
    expect(shown).toContain("No answer came in time.");
    expect(await page.getByRole("log").getByRole("button").count()).toBe(0);
  });
});
