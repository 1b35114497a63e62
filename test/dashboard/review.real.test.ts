/** Comments on lines of a change request, which its session's agent gets as one message. */
import { describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { hasChromium, useBrowser } from "./browser.ts";
import { makeWorld, PROJECT_ID } from "./sample-project.ts";
import { deepTest } from "../support/vitest/rings.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const CHANGE = `#/projects/${PROJECT_ID}/change-requests/7`;

const write = async (page: Page, text: string): Promise<void> => {
  await page.getByRole("dialog").getByLabel("Comment").fill(text);
  await page.getByRole("dialog").getByRole("button", { name: "Add the comment" }).click();
};

const title = hasChromium ? "a review" : "a review (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("goes to the agent as one message, and is kept until then", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    await page.locator(".file", { hasText: "greet.sh" }).locator(".diff .added").last().click();
    await page
      .getByRole("dialog")
      .getByText(/^Comment on greet\.sh, line \d+$/)
      .waitFor();
    await write(page, "Say it in <b>French</b>.\nAnd test it.");
    await page.getByRole("button", { name: "Comment on this file: notes/6113728.md" }).click();
    await write(page, "Name the file by its date.");
    await page.locator(".file", { hasText: "greet.sh" }).locator(".diff .removed").first().click();
    await page.getByRole("dialog").getByText("before the change").waitFor();
    await write(page, "Why?");
    await page.getByRole("button", { name: /^Remove the comment on greet\.sh, line \d+ before/ }).click();
    await page.reload();
    await page.locator(".callout li", { hasText: "Name the file" }).waitFor();
    expect(await page.locator(".callout li").count()).toBe(2);
    await page.getByRole("button", { name: "Restart and send 2 comments" }).click();
    await page.getByText("The agent has your comments.").waitFor();
    expect(await page.locator(".callout li").count()).toBe(0);
    expect(fake.writes).toHaveLength(1);
    const { text } = JSON.parse(fake.writes[0]?.replace(/^POST \S+ /, "") ?? "") as { text: string };
    expect(text).toMatch(
      /^Here are review comments .*\n\n1\. greet\.sh, line \d+\n> .*printf .*\n\nSay it in <b>French<\/b>\.\nAnd test it\.\n\n2\. notes\/6113728\.md\nName the file by its date\.$/,
    );
  });

  deepTest("is written with the keyboard, and stands at its line in both views", async () => {
    const { page, visit } = await start(world());
    await visit(CHANGE);
    const file = page.locator(".file", { hasText: "greet.sh" });
    await file.locator(".diff").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowDown");
    const line = page.locator(".diff > :focus");
    const text = await line.innerText();
    await page.keyboard.press("Enter");
    await write(page, "In two\nlines.");
    const comment = file.locator(".diff > .comment");
    await comment.waitFor();
    expect(await comment.innerText()).toContain("In two lines.");
    expect(await comment.evaluate((own) => own.previousElementSibling?.textContent)).toContain(text.trim());
    // The reader goes on where she was.
    expect((await line.innerText()).trim()).toBe(text.trim());
    await page.getByRole("button", { name: "Side by side" }).click();
    await file.locator(".split .comment").first().waitFor();
    const heights = await file
      .locator(".split .diff")
      .evaluateAll((sides) => sides.map((side) => side.childElementCount));
    expect(new Set(heights).size).toBe(1);
    await comment.first().click();
    expect(await page.getByRole("dialog").isVisible()).toBe(false);
  });

  deepTest("is not lost if the service refuses it", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    await page.getByRole("button", { name: "Comment on this file: greet.sh" }).click();
    await write(page, "Shorter, please.");
    fake.world.refused = { status: 503, code: "away", error: "The agent cannot be reached." };
    await page.getByRole("button", { name: /send 1 comment$/ }).click();
    await page.getByText("The agent cannot be reached.").waitFor();
    expect(await page.locator(".callout li", { hasText: "Shorter" }).count()).toBe(1);
  });

  deepTest("is not begun by selecting text, and not offered after a merge", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    const { x, y } = (await page.locator(".diff .added").first().boundingBox()) ?? { x: 0, y: 0 };
    await page.mouse.move(x + 130, y + 5);
    await page.mouse.down();
    await page.mouse.move(x + 200, y + 5);
    await page.mouse.up();
    await expect.poll(() => page.evaluate("getSelection().toString()")).not.toBe("");
    expect(await page.getByRole("dialog").isVisible()).toBe(false);
    for (const change of fake.world.changes) Object.assign(change, { status: "merged" });
    fake.emit("change_request.merged");
    await page.locator("h1 .badge", { hasText: "merged" }).waitFor();
    expect(await page.locator("[data-review]").count()).toBe(0);
    expect(await page.getByRole("button", { name: /^Comment on/ }).count()).toBe(0);
    expect(await page.getByRole("button", { name: /send 1 comment$/ }).count()).toBe(0);
  });

  deepTest("that was not sent before a merge can still be sent", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    await page.getByRole("button", { name: "Comment on this file: greet.sh" }).click();
    await write(page, "Next time with a test.");
    for (const change of fake.world.changes) Object.assign(change, { status: "merged" });
    fake.emit("change_request.merged");
    await page.locator("h1 .badge", { hasText: "merged" }).waitFor();
    await page.getByRole("button", { name: /send 1 comment$/ }).click();
    await page.getByText("The agent has your comments.").waitFor();
    expect(fake.writes.at(-1)).toContain("Next time with a test.");
  });
});
