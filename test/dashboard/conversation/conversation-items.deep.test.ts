/** A reader of a conversation opens tools and runs of them, copies, ends a turn, and acts on a failure. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { toolsConversation } from "../samples/sample-tools.ts";
import type { FakeConversation } from "../fakes/fake-conversation.ts";

type Json = Readonly<Record<string, unknown>>;

const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const API = `/v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const AT = "2026-11-20T06:53:00.000Z";

const title = hasChromium
  ? "a conversation's items"
  : "a conversation's items (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const openWith = async (conversation: FakeConversation, session: Json = {}) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const world = makeWorld(Date.now());
    const sessions = world.sessions.map((one, at) => (at === 0 ? { ...one, ...session } : one));
    const opened = await start({ ...world, conversation, sessions });
    await opened.visit(SESSION);
    const { page, fake } = opened;
    await page.locator(".items > .item").first().waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    const line = (words: RegExp) => page.locator("summary").filter({ hasText: words });
    return { ...opened, line };
  };

  it("show a run of reads as one line, and each of its calls for readers who open it", async () => {
    const { page, fake, line } = await openWith(toolsConversation());
    await line(/Explored 2 files, 1 search/).click();
    expect(await page.locator(".run > li").count()).toBe(3);
    await line(/bin\/greet\.sh/)
      .first()
      .click();
    expect(await page.locator("[data-item=r1] pre").innerText()).toContain('2: echo "Hello, $1"');
    fake.say("item", sampleItem("later", text("a later one")));
    await page.getByText("a later one").waitFor();
    expect(await page.locator(".run > li").count()).toBe(3);
  });

  it("show a command as it was typed, and its output in its colours", async () => {
    const { page, line } = await openWith(toolsConversation());
    expect(await line(/Run the tests/).innerText()).toContain("exit 1");
    await line(/Run the tests/).click();
    const block = page.locator("[data-item=t]");
    expect(await block.getByLabel("Command", { exact: true }).textContent()).toBe(
      "npm test -- --reporter verbose \\\n  && echo done",
    );
    const output = block.getByLabel("Output", { exact: true });
    expect(await output.textContent()).toContain("downloading 100 %\n");
    expect(await output.textContent()).not.toMatch(/\u241b|10 %/u);
    expect(await output.locator(".text-red").allTextContents()).toEqual(["×"]);
    expect(await output.locator(".ground-red").allTextContents()).toEqual([" FAIL "]);
  });

  it("fold long outputs in the middle", async () => {
    const { page, line } = await openWith(toolsConversation());
    await line(/cat build\.log/).click();
    const block = page.locator("[data-item=l]");
    await block.getByText("line 200 of the log").waitFor();
    expect(await block.getByText("line 100 of the log").count()).toBe(0);
    await block.getByRole("button", { name: "Show 155 more lines" }).click();
    await block.getByText("line 100 of the log").waitFor();
    expect(await block.getByRole("button", { name: /more lines/ }).count()).toBe(0);
  });

  it("show an edit as a diff, a search as its hits, and JSON of an unknown tool only", async () => {
    const { page, line } = await openWith(toolsConversation());
    await line(/^Edit/).click();
    expect(await page.locator("[data-item=e] .added").count()).toBe(2);
    await line(/Hello/).click();
    expect(await page.locator("[data-item=s2] .hits > li > code").allInnerTexts()).toEqual([
      "/workspace/bin/greet.sh",
      "/workspace/test/greet.test.sh",
    ]);
    await line(/odd_tool/).click();
    expect(await page.locator("[data-item=o]").getByLabel("Input", { exact: true }).innerText()).toContain(
      '"project": "greeter"',
    );
    const shown = await page.locator(":is([data-item=e], [data-item=s2])").allInnerTexts();
    expect(shown.join(" ")).not.toContain("{");
  });

  it("run from right to left where their text does, each paragraph for itself", async () => {
    const { page } = await openWith(
      conversationOf([
        sampleItem("ask", { role: "user", ...text("שלום, תקן את הבדיקה.") }),
        sampleItem("say", text("اكتمل الإصلاح.\n\nIt is done.\n\n- والاختبارات ناجحة.")),
      ]),
    );
    const directions = (place: string) =>
      page.evaluate(
        `[...document.querySelectorAll("${place}")].map((block) => getComputedStyle(block).direction)`,
      );
    expect(await directions("[data-item=say] .markdown > p")).toEqual(["rtl", "ltr"]);
    expect(await directions("[data-item=say] .markdown li")).toEqual(["rtl"]);
    expect(await directions("[data-item=ask] .markdown > p")).toEqual(["rtl"]);
  });

  it("are copied as they are: a message, code, a command and its output", async () => {
    const { page, line } = await openWith(toolsConversation());
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await line(/Run the tests/).click();
    const copied = async (within: string, name: string) => {
      await page.locator(`[data-item=${within}]`).getByRole("button", { name }).click();
      await page.locator(`[data-item=${within}]`).getByRole("button", { name: "Copied" }).waitFor();
      return page.evaluate("navigator.clipboard.readText()");
    };
    expect(await copied("end", "Copy the code")).toBe("npm test");
    expect(await copied("say", "Copy the message")).toBe("I change `bin/greet.sh`, then I run the tests.");
    expect(await copied("t", "Copy the command")).toBe("npm test -- --reporter verbose \\\n  && echo done");
  });

  it("end with a failed turn: its actor, the reason once, and a button that does something about it", async () => {
    const error = { code: "model_unavailable", message: "The provider answered 529: Overloaded." };
    const last_turn = { state: "failed", error, at: AT };
    const broken = sampleItem("a", { ...text("I begin."), status: "failed", error });
    const file = { type: "file", name: "log.txt", media_type: "text/plain", attachment_id: "0199-file" };
    const sent = sampleItem("own", { role: "user", content: [{ type: "text", text: "Fix it." }, file] });
    const { page, fake } = await openWith(conversationOf([sent, broken]), { last_turn });
    await page.getByText("The model's provider did not respond.").waitFor();
    expect(await page.getByText(error.message).count()).toBe(1);
    await page.getByRole("button", { name: "Try again" }).click();
    await expect
      .poll(() => fake.writes.at(-1))
      .toContain('"text":"Fix it.","delivery":"queue","attachments":["0199-file"]');
  });

  it("have a menu at the end of a turn that opens upwards at the lower edge of what is seen", async () => {
    const long = text(Array.from({ length: 80 }, (_, n) => `Line ${n}.`).join("\n\n"));
    const turn = { state: "idle", since: null, waiting_for: null };
    const { page } = await openWith(conversationOf([sampleItem("a", long)], { turn }));
    await page.getByLabel("Actions for this turn").click();
    await page.locator(".turn-menu[data-side=above]").waitFor();
    const bottomOf = (at: string) =>
      page.locator(at).evaluate((element) => element.getBoundingClientRect().bottom);
    expect(await bottomOf(".turn-menu .menu-items")).toBeLessThanOrEqual(await bottomOf(".talk"));
  });

  it("lead to another model if the provider does not have the chosen one", async () => {
    const error = { code: "unknown_model", message: "No such model." };
    const last_turn = { state: "failed", error, at: AT };
    const { page } = await openWith(conversationOf([sampleItem("a", text("I begin."))]), { last_turn });
    await page.getByRole("button", { name: "Choose another model" }).click();
    await page.getByRole("combobox", { name: "Model", exact: true }).waitFor();
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Model");
  });

  it("stop with Escape while the agent works, unless Escape closes something", async () => {
    const { page, fake } = await openWith(
      conversationOf([sampleItem("a", text("I work."))], {
        turn: { state: "running", since: AT, waiting_for: null },
      }),
    );
    const interrupts = () => fake.writes.filter((write) => write === `POST ${API}/interrupt {}`).length;
    await page.locator(".turn-state").getByText("Working", { exact: true }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(interrupts()).toBe(0);
    await page.getByRole("log").focus();
    await page.keyboard.press("Escape");
    await expect.poll(interrupts).toBe(1);
  });

  it("have the reader's last message for the arrow up in an empty composer, to be changed and sent anew", async () => {
    const { page } = await openWith(toolsConversation());
    const area = page.getByRole("textbox", { name: "Message", exact: true });
    await area.press("ArrowUp");
    expect(await area.inputValue()).toBe("Greet by the hour, and run the tests.");
    await area.fill("Not empty");
    await area.press("ArrowUp");
    expect(await area.inputValue()).toBe("Not empty");
  });
});
