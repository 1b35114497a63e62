import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import type { FakeConversation } from "../fakes/fake-conversation.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;

const world = (conversation?: FakeConversation) => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const made = makeWorld(Date.now());
  return conversation === undefined ? made : { ...made, conversation };
};

const growing = (said: string) =>
  sampleItem("g", { place: 1, status: "running", completed_at: null, ...text(said) });

/** So many messages, oldest first: "message 0." and so on. */
const messages = (count: number) =>
  conversationOf(Array.from({ length: count }, (_, n) => sampleItem(`m${n}`, text(`message ${n}.`))));

const distanceToEnd = (page: Page) =>
  page.locator(".talk").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);

/** Where an item's element is within the log, in pixels from its upper edge. */
const placeIn = (page: Page, id: string) =>
  page
    .locator(`[data-item=${id}]`)
    .evaluate(
      (item) => item.getBoundingClientRect().top - (item.closest(".talk")?.getBoundingClientRect().top ?? 0),
    );

const scrollTo = (page: Page, top: number) =>
  page.locator(".talk").evaluate((log, to) => {
    log.scrollTop = to;
  }, top);

const title = hasChromium ? "a conversation" : "a conversation (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const openWith = async (conversation?: FakeConversation) => {
    const opened = await start(world(conversation));
    await opened.visit(SESSION);
    await opened.page.locator(".items > .item").last().waitFor();
    return opened;
  };

  deepTest("shows each kind of item, and who said it", async () => {
    const { page } = await openWith();
    const log = page.getByRole("log", { name: "Conversation" });
    const shown = await log.innerText();
    const heads = (await log.locator(".said-by").allInnerTexts()).map((head) => head.replaceAll(/\s+/g, " "));
    expect(heads).toEqual([
      "on-push trigger 06:52",
      "release-notes openai/gpt-5 06:52",
      "Mona 06:52",
      "release-notes 06:52",
      "The agent asks 06:52 waiting",
    ]);
    const lines = await log.locator("summary").allInnerTexts();
    expect(lines.map((line) => line.replaceAll(/\s+/g, " "))).toEqual([
      "Thought 2.4 s",
      "Run git log --oneline 2.4 s",
      "Edit notes/6113728.md 2.4 s",
      "Run npm test exit 127",
      "Permission: Fetch a page https://example.com/guide allowed once by Mona",
      // The actions of the turn that has ended.
      "⋯",
    ]);
    expect(shown).toContain("The command ended with code 127.");
    expect(await log.locator(".plan li").allInnerTexts()).toEqual([
      "☑\nDone:\nRead the push",
      "▸\nIn progress:\nWrite the note",
      "☐\nTo do:\nOpen a change request",
      "☒\nCancelled:\nTag a release",
    ]);
    expect(shown).toContain("The sandbox was restarted.");
    const feet = await log.locator(".turn-foot").allInnerTexts();
    expect(feet.map((foot) => foot.replaceAll(/\s+/g, " "))).toEqual([
      "2.4 s · 4,210 tokens in · 318 out · 3,900 cached · $0.0123 · 1 file changed +3 −0 ⋯",
    ]);
    expect(await log.locator("[aria-busy=true]").count()).toBe(3);
  });

  it("shows what the agent does, what it asks, and what waits", async () => {
    const { page, fake } = await openWith();
    const waiting = page.getByRole("region", { name: "Queue" });
    expect(await waiting.locator(".item").allInnerTexts()).toEqual([
      expect.stringContaining("Then tag a release."),
    ]);
    await waiting.getByText("1 message waiting for the agent").waitFor();
    await page.getByText(/^Needs you\s*for \d+ (?:s|min)/).waitFor();
    await page.getByRole("log").getByText("Which title shall the change request have?").waitFor();
    const asked = fake.world.conversation.items.find(({ id }) => id === "i-question");
    fake.say("item", { ...asked, status: "completed", completed_at: "2026-11-20T06:53:00.000Z" });
    fake.say("state", {
      state: { state: "running", since: "2026-11-20T06:53:00.000Z", waiting_for: null },
      usage: { input_tokens: 12_345, output_tokens: 6, cached_tokens: 0, cost_usd: 1.5 },
    });
    await page.getByRole("log").getByText("The agent asks 06:52 answered").waitFor();
    await page.getByText("Session: 12,345 tokens in · 6 out · $1.50").waitFor();
    await page.locator(".turn-word", { hasText: "Working" }).waitFor();
    expect(await waiting.locator(".item").count()).toBe(1);
  });

  deepTest("opens thoughts, inputs, outputs and diffs by keyboard, and keeps them open", async () => {
    const { page, fake } = await openWith();
    expect(await page.locator(".folded :is(pre, p)").count()).toBe(0);
    await page.locator("[data-item=i-thought] summary").focus();
    for (const id of ["i-thought", "i-log", "i-edit"]) {
      expect(await page.locator("[data-item]:has(:focus)").getAttribute("data-item")).toBe(id);
      await page.keyboard.press("Enter");
      await page.locator(`[data-item=${id}] .folded > *`).first().waitFor();
      // Past what is in the details and can be scrolled.
      const rest = await page.locator(`[data-item=${id}] .folded :is([tabindex], button)`).count();
      for (let tab = 0; tab <= rest; tab += 1) await page.keyboard.press("Tab");
    }
    expect(await page.locator("[data-item=i-log] pre").allInnerTexts()).toEqual([
      "git log --oneline",
      "6113728 Initial commit\n",
    ]);
    expect(await page.locator("[data-item=i-edit] .diff .added").count()).toBe(3);
    const log = fake.world.conversation.items.find(({ id }) => id === "i-log");
    fake.say("item", { ...log, tool: { ...Object(log?.["tool"]), output: "another output" } });
    await page.locator("[data-item=i-log] pre").getByText("another output").waitFor();
    await page.locator("[data-item=i-log] summary").press("Enter");
    await page.locator("[data-item=i-log] pre").first().waitFor({ state: "detached" });
  });

  it("shows text as it grows, and no delta that does not continue it", async () => {
    const { page, fake } = await openWith(conversationOf([growing("one")]));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    fake.say("delta", { item_id: "g", offset: 3, text: " two" });
    await page.getByText("one two", { exact: true }).waitFor();
    fake.say("delta", { item_id: "g", offset: 3, text: " wrong" });
    fake.say("delta", { item_id: "g", offset: 7, text: " *three*" });
    await page.locator("[data-item=g] em", { hasText: "three" }).waitFor();
    expect(await page.locator("[data-item=g] .markdown").innerText()).toBe("one two three");
    fake.say("item", { ...growing("one two *three* four"), status: "completed" });
    await page.getByText("four").waitFor();
    expect(await page.locator("[data-item=g]").getAttribute("aria-busy")).toBe("false");
  });

  deepTest(
    "reads no message again that has not changed, and one that grows only when it is drawn",
    async () => {
      const quoted = sampleItem("q", { place: 2, ...text("> quoted") });
      const still = sampleItem("s", { place: 3, ...text("~~struck~~") });
      const { page, fake } = await openWith(conversationOf([growing("**bold**"), quoted, still]));
      await page.locator("[data-item=q] blockquote").waitFor();
      await expect.poll(() => fake.conversations.readers()).toBe(1);
      await page.evaluate(`{
      globalThis.made = { blockquote: 0, del: 0, strong: 0 };
      const create = document.createElement.bind(document);
      document.createElement = (tag) => {
        if (tag in made) made[tag] += 1;
        return create(tag);
      };
    }`);
      const DELTAS = 1000;
      for (let n = 0; n < DELTAS; n += 1) fake.say("delta", { item_id: "g", offset: 8 + 2 * n, text: " x" });
      fake.say("delta", { item_id: "g", offset: 8 + 2 * DELTAS, text: " end" });
      await page.locator("[data-item=g]").getByText("x end").waitFor();
      const made = await page.evaluate<Record<string, number>>("made");
      expect(made).toMatchObject({ blockquote: 0, del: 0 });
      // Its own element stays while it grows.
      expect(made["strong"]).toBe(0);
      fake.say("item", { ...quoted, ...text("> another") });
      await page.locator("[data-item=q] blockquote").getByText("another").waitFor();
    },
  );

  it("resumes after a cut where it was, and begins again after a reset", async () => {
    const { page, fake } = await openWith(messages(3));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    fake.say("item", sampleItem("live", text("a live one")));
    await page.getByText("a live one").waitFor();
    const reads = fake.conversations.reads();
    fake.cutStreams();
    fake.say("item", sampleItem("missed", text("said meanwhile")));
    await page.getByText("said meanwhile").waitFor();
    expect(await page.locator(".items > .item .markdown").allInnerTexts()).toEqual([
      "message 0.",
      "message 1.",
      "message 2.",
      "a live one",
      "said meanwhile",
    ]);
    expect(fake.conversations.reads()).toBe(reads);
    fake.world.conversation = { ...messages(2), seq: 90 };
    fake.say("reset", {});
    await page.getByText("said meanwhile").waitFor({ state: "detached" });
    expect(await page.locator(".items > .item").count()).toBe(2);
  });

  deepTest("shows code in colours as soon as it has ended, and keeps its text", async () => {
    const { page, fake } = await openWith(conversationOf([growing("```ts\nconst a = ")]));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    fake.say("delta", { item_id: "g", offset: 16, text: "1;\n```" });
    const code = page.locator(".markdown pre");
    await code.locator(".code-keyword", { hasText: "const" }).waitFor();
    await code.locator(".code-number", { hasText: "1" }).waitFor();
    expect((await code.innerText()).trim()).toBe("const a = 1;");
  });

  deepTest("follows new items from the end only", async () => {
    const { page, fake } = await openWith(messages(60));
    await expect.poll(() => distanceToEnd(page)).toBe(0);
    fake.say("item", sampleItem("next", text("next one")));
    await page.getByText("next one").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBe(0);
    await scrollTo(page, 900);
    await page.getByRole("button", { name: "Newest" }).waitFor();
    const before = await placeIn(page, "m20");
    fake.say("item", sampleItem("unseen", text("unseen one")));
    fake.say("item", sampleItem("m2", { place: 3, ...text("message 2 with\n\nmany\n\nmore\n\nlines") }));
    await page.getByText("unseen one").waitFor();
    expect(await placeIn(page, "m20")).toBeCloseTo(before, 0);
    // The reader does not go along with the first item in view that moves to the end.
    const view = await page.getByRole("log").boundingBox();
    const items = await page.locator(".items > [data-item]").evaluateAll((all) =>
      all.map((one) => ({
        id: one.getAttribute("data-item") ?? "",
        bottom: one.getBoundingClientRect().bottom,
      })),
    );
    const [first = "", next = ""] = items.flatMap(({ id, bottom }) => (bottom > (view?.y ?? 0) ? [id] : []));
    const seen = await placeIn(page, next);
    const moved = Number(first.slice(1));
    fake.say("item", sampleItem(first, { place: 100, ...text(`message ${moved} is later.`) }));
    await page.getByText(`message ${moved} is later.`).waitFor();
    expect(await placeIn(page, next)).toBeCloseTo(seen, 0);
    expect(await page.locator(`[data-item=${first}]`).count()).toBe(1);
    await page.getByRole("button", { name: "Newest" }).click();
    await expect.poll(() => distanceToEnd(page)).toBe(0);
    await page.getByRole("button", { name: "Newest" }).waitFor({ state: "detached" });
    expect(await page.locator(":focus").getAttribute("role")).toBe("log");
  });

  deepTest("reads older pages while the reader scrolls up, and keeps the place", async () => {
    const { page, fake } = await openWith(messages(450));
    expect(await page.getByText("message 349.").count()).toBe(0);
    const before = await page.locator("[data-item=m350]").evaluate((first) => {
      const log = first.closest(".talk");
      return (
        first.getBoundingClientRect().top - (log?.getBoundingClientRect().top ?? 0) + (log?.scrollTop ?? 0)
      );
    });
    await scrollTo(page, 1);
    await page.getByText("message 290.").waitFor();
    // It was the first before.
    await expect.poll(async () => Math.abs((await placeIn(page, "m350")) - before + 1)).toBeLessThan(0.5);
    await page.getByRole("log").focus();
    const goUp = async () => {
      await page.keyboard.press("Home");
      return page.getByText("The conversation begins here.").count();
    };
    await expect.poll(goUp).toBe(1);
    await page.getByText("message 0.", { exact: true }).waitFor();
    expect(fake.conversations.reads()).toBe(5);
    expect(await page.locator(".items > .item").count()).toBeLessThanOrEqual(120);
    await page.keyboard.press("End");
    await page.getByText("message 449.").waitFor();
    await expect.poll(() => distanceToEnd(page)).toBe(0);
  });

  deepTest("keeps the place of a reader at the upper end while an older page is read slowly", async () => {
    const { page } = await openWith(messages(450));
    const before = await placeIn(page, "m350");
    const scrolledBy = await page.locator(".talk").evaluate((log) => log.scrollTop);
    const answered = Promise.withResolvers<undefined>();
    await page.route(/conversation\?before=/, async (route) => {
      await answered.promise;
      await route.continue();
    });
    await scrollTo(page, 1);
    await page.locator(".edge").getByText("Loading…").waitFor();
    expect(await placeIn(page, "m350")).toBeCloseTo(before + scrolledBy - 1, 0);
    answered.resolve(undefined);
    await page.getByText("message 290.").waitFor();
    expect(await placeIn(page, "m350")).toBeCloseTo(before + scrolledBy - 1, 0);
  });

  deepTest("keeps a bounded number of elements with 10,000 items, and shows the newest [D08]", async () => {
    const { page, fake } = await openWith(messages(1));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    for (let n = 1; n <= 10_000; n += 1) fake.say("item", sampleItem(`n${n}`, text(`item ${n}.`)));
    await page.getByText("item 10000.").waitFor();
    expect(await page.locator(".items > .item").count()).toBe(120);
    await scrollTo(page, 0);
    await page.getByText("item 9821.").waitFor();
    expect(await page.locator(".items > .item").count()).toBe(120);
    await page.getByRole("button", { name: "Newest (60 more)" }).waitFor();
  });

  deepTest(
    "is read once, also if the browser reports the address a second time while the page loads",
    async () => {
      const { page, fake, visit } = await start(world(messages(3)));
      const { reads, readers } = fake.conversations;
      await page.getByRole("heading", { name: "Home" }).waitFor();
      const held = Promise.withResolvers<void>();
      await page.route("**/v1/me", async (route) => {
        await held.promise;
        await route.continue();
      });
      await visit(SESSION);
      await expect.poll(readers).toBe(1);
      // So it does if the address changes during the sign-in.
      await page.evaluate(`dispatchEvent(new HashChangeEvent("hashchange"))`);
      held.resolve();
      await page.locator(".items > .item").last().waitFor();
      fake.say("item", sampleItem("next", text("after the event.")));
      await page.getByText("after the event.").waitFor();
      expect(reads()).toBe(1);
    },
  );

  deepTest(
    "keeps a bounded number of items for a reader at the end, and reads older ones again",
    async () => {
      const { page, fake } = await openWith(messages(50));
      const { reads } = fake.conversations;
      const say = (from: number, to: number) => {
        for (let n = from; n < to; n += 1) fake.say("item", sampleItem(`m${n}`, text(`message ${n}.`)));
      };
      await expect.poll(() => fake.conversations.readers()).toBe(1);
      say(50, 900);
      await page.getByText("message 899.").waitFor();
      expect(reads()).toBe(1);
      say(900, 1_100);
      // It begins again with the newest page, and stays at the end.
      await expect.poll(reads).toBe(2);
      await page.getByText("message 1099.").waitFor();
      await expect.poll(() => fake.conversations.readers()).toBe(1);
      say(1_100, 1_101);
      await page.getByText("message 1100.").waitFor();
      expect(await page.locator(".items > .item").count()).toBe(120);
      expect(await distanceToEnd(page)).toBeLessThan(1);
      // Forgotten items come back when the reader scrolls up.
      await expect
        .poll(async () => {
          await scrollTo(page, 0);
          return reads();
        })
        .toBeGreaterThan(2);
    },
  );

  deepTest("keeps focus and selection while items change [D09]", async () => {
    const link = sampleItem("link", text("see [the guide](https://example.com/)"));
    const { page, fake } = await openWith(conversationOf([growing("one two"), link]));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    await page.getByRole("link", { name: "the guide" }).focus();
    await page.evaluate(`{
      const text = document.querySelector("[data-item=g] .markdown p").firstChild;
      getSelection().setBaseAndExtent(text, 0, text, 3);
    }`);
    fake.say("delta", { item_id: "g", offset: 7, text: " three" });
    fake.say("item", sampleItem("later", text("a later one")));
    await page.getByText("a later one").waitFor();
    await page.getByText("one two three").waitFor();
    expect(await page.evaluate("String(getSelection())")).toBe("one");
    expect(await page.locator(":focus").innerText()).toBe("the guide");
  });

  deepTest("keeps the conversation in place while the rest of the page changes", async () => {
    const { page, fake } = await openWith(messages(60));
    await scrollTo(page, 700);
    await page.getByRole("button", { name: "Newest" }).waitFor();
    const [first, ...others] = fake.world.sessions;
    fake.world.sessions = [{ ...first, status: "stopped" }, ...others];
    fake.emit("session.status");
    await page.locator(".state-word", { hasText: "Asleep" }).waitFor();
    expect(await page.locator(".talk").evaluate((log) => log.scrollTop)).toBe(700);
  });

  deepTest("says why it cannot be read, and shows the prompt meanwhile", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.conversation = { ...messages(1), broken: "The database does not answer." };
    await visit(SESSION);
    await page.getByText("The conversation could not be read. The database does not answer.").waitFor();
    await page.getByRole("heading", { name: "Prompt" }).waitFor();
  });

  deepTest("stops to follow when the reader leaves the page", async () => {
    const { page, fake, visit } = await openWith(messages(1));
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    await visit(`#/projects/${PROJECT_ID}`);
    await page.getByRole("link", { name: "Tidy the docs" }).waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(0);
  });

  deepTest("runs nothing and loads nothing that a text names [T08] [D09]", async () => {
    const hostile = [
      `<img src="https://evil.example/a.png" onerror="pwned=1"><script>pwned=1</script><iframe src="https://evil.example">`,
      "![pixel](https://evil.example/pixel.png) [run](javascript:pwned=1) <javascript:pwned=1>",
      "[https://good.example](https://evil.example/)",
      "```\n<style>@import 'https://evil.example'</style>",
    ].join("\n\n");
    const { page, fake } = await openWith(conversationOf([sampleItem("h", text(hostile)), growing("here")]));
    const elsewhere: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(fake.url)) elsewhere.push(request.url());
    });
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    fake.say("delta", { item_id: "g", offset: 4, text: ` and there ${hostile}` });
    await page.getByText("and there").waitFor();
    const links = page.locator(".items a");
    expect(
      await links.evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.getAttribute("rel")])),
    ).toEqual(
      Array.from({ length: 2 }).flatMap(() => [
        ["https://evil.example/a.png", "noopener noreferrer"],
        ["https://evil.example/", "noopener noreferrer"],
        ["https://evil.example/pixel.png", "noopener noreferrer"],
        ["https://evil.example/", "noopener noreferrer"],
      ]),
    );
    expect(await page.locator("[data-item=h]").innerText()).toContain(
      "https://good.example (https://evil.example/)",
    );
    expect(await page.locator(".talk :is(img, script, iframe, style, [onerror])").count()).toBe(0);
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect(elsewhere).toEqual([]);
  });
});
