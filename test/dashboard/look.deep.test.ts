/**
 * How a session looks in the midst of a turn. Each test leaves a picture for people to look at, in
 * node_modules/.cache/screenshots.
 */
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { sampleItem, text } from "./samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "./samples/sample-project.ts";

const PICTURES = path.resolve(import.meta.dirname, "../../node_modules/.cache/screenshots");
const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;

const shown = {
  wide: { width: 1200 },
  narrow: { width: 375, touch: true },
};
const LOOKS = Object.entries(shown).flatMap(([size, window]) =>
  [false, true].map((dark) => ({ name: `${size}-${dark ? "dark" : "light"}`, window: { ...window, dark } })),
);

const title = hasChromium ? "the look" : "the look (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it.each(LOOKS)("of a session with a request, a queue and a text: $name", async ({ name, window }) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit, fake } = await start(makeWorld(Date.now()), window);
    await visit(SESSION);
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    const permission = {
      kind: "request",
      status: "pending",
      completed_at: null,
      request: {
        kind: "permission",
        title: "bash",
        patterns: ["git push origin HEAD --follow-tags", "echo pushed"],
        command:
          "git push origin HEAD --follow-tags 2>&1 | tail -5 && echo pushed > /workspace/notes/last-push.txt",
        always: ["git push *", "echo *"],
        questions: [],
      },
    };
    fake.say("item", sampleItem("i-permission", permission));
    fake.say(
      "item",
      sampleItem("i-queued-2", {
        role: "user",
        author: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
        status: "queued",
        completed_at: null,
        ...text(
          "Also mention the change in the release notes, and keep the paragraph short and free of adjectives.",
        ),
      }),
    );
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    await page.getByText("2 messages waiting for the agent").waitFor();
    await page.getByRole("textbox", { name: "Message", exact: true }).fill("Name the tag v1.2.0.");
    fs.mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: path.join(PICTURES, `session-${name}.png`) });
    // The parts below the conversation took room from it, and the reader did not scroll.
    expect(await page.getByRole("button", { name: "Newest" }).count()).toBe(0);
    await page.getByRole("log").evaluate((log) => {
      log.scrollTop = 0;
    });
    await page.getByRole("button", { name: "Newest" }).waitFor();
    await page.screenshot({ path: path.join(PICTURES, `session-${name}-scrolled.png`) });
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByRole("radio", { name: "Add notes" }).check();
    await page.screenshot({ path: path.join(PICTURES, `session-${name}-asked.png`) });
    const places = await page.evaluate<{ overflow: number; composer: number; height: number }>(`({
      overflow: document.documentElement.scrollWidth - ${String(window.width)},
      composer: document.querySelector(".composer").getBoundingClientRect().bottom,
      height: innerHeight,
    })`);
    expect(places.overflow).toBe(0);
    // It is in the first screen.
    expect(places.composer).toBeLessThanOrEqual(places.height);
  });

  it.each(LOOKS)("of a project's usage: $name", async ({ name, window }) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start(makeWorld(Date.now()), window);
    await visit(`#/projects/${PROJECT_ID}/usage`);
    await page.getByText("Last 30 days: 851,540 tokens in · 52,694 out · $2.03.").waitFor();
    expect(await page.locator(".rows .row").count()).toBe(3);
    await page.locator(".row", { hasText: "2026-11-20" }).getByText("$1.55").waitFor();
    await page
      .locator(".row", { hasText: "2026-11-16" })
      .getByText("432,000 tokens", { exact: true })
      .waitFor();
    fs.mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: path.join(PICTURES, `usage-${name}.png`) });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(window.width);
  });
});
