/** Comments on lines of a change request: for people, and for the agent, which gets them as one message. */
import { describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import { deepTest } from "../../support/vitest/rings.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const CHANGE = `#/projects/${PROJECT_ID}/change-requests/7`;
const REMARKS = `POST /v1/projects/${PROJECT_ID}/change-requests/7/remarks`;
const HEAD = "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5";

const inFile = (page: Page, name: string) => page.locator(`.file[data-path="${name}"]`);
const form = (page: Page) => page.locator(".note-below .comment-form");

/** Writes the comment whose form is open, and sends it. */
const write = async (page: Page, text: string, way: string): Promise<void> => {
  await form(page).getByRole("textbox").fill(text);
  await form(page).getByRole("button", { name: way }).click();
  await form(page).waitFor({ state: "detached" });
};

/** The middle of a line's numbers. */
const numbersAt = async (page: Page, index: number) => {
  const box = await inFile(page, "greet.sh").locator(".gutter").nth(index).boundingBox();
  return { x: (box?.x ?? 0) + 10, y: (box?.y ?? 0) + (box?.height ?? 0) / 2 };
};

const title = hasChromium ? "a review" : "a review (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("has comments by people on lines, and for the agent, which gets them as one message and not before", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    await inFile(page, "greet.sh").locator(".diff .added").last().click();
    await write(page, "Say it in French.", "Comment");
    await page.getByText("The comment was added.").waitFor();
    expect(fake.writes).toEqual([
      `${REMARKS} {"body":"Say it in French.","commit":"${HEAD}","place":{"file":"greet.sh","side":"head","first_line":2,"last_line":2}}`,
    ]);
    await inFile(page, "greet.sh").locator(".diff .removed").first().click();
    await page.getByLabel("Comment on greet.sh, line 2 before the change").waitFor();
    await write(page, "Why <b>this</b>?\nAnd test it.", "Add for the agent");
    await page.getByRole("button", { name: "Ask the agent about this file: notes/6113728.md" }).click();
    await write(page, "Name the file by its date.", "Add for the agent");
    await inFile(page, "greet.sh").locator(".thread.ask", { hasText: "Why <b>this</b>?" }).waitFor();
    await page.reload();
    await page.locator(".thread.ask", { hasText: "Name the file" }).waitFor();
    expect(await page.locator(".thread.ask", { hasText: "not sent yet" }).count()).toBe(2);
    expect(fake.writes).toHaveLength(1);
    await page.getByRole("button", { name: "Restart and send 2 comments" }).click();
    await page.getByText("The agent has your comments.").waitFor();
    expect(await page.locator(".thread.ask", { hasText: "Sent to the agent" }).count()).toBe(2);
    expect(fake.writes).toHaveLength(2);
    const { text } = JSON.parse(fake.writes[1]?.replace(/^POST \S+ /, "") ?? "") as { text: string };
    expect(text).toMatch(
      /^Here are review comments .*\n\n1\. greet\.sh, line 2 before the change\n```\n.*printf .*\n```\n\nWhy <b>this<\/b>\?\nAnd test it\.\n\n2\. notes\/6113728\.md\nName the file by its date\.$/,
    );
  });

  deepTest("says of a comment that the agent got whether its lines have changed since", async () => {
    const changing = world();
    const { page, visit } = await start(changing);
    await visit(CHANGE);
    await inFile(page, "greet.sh").locator(".diff .added").last().click();
    await write(page, "Say it in French.", "Add for the agent");
    await page.getByRole("button", { name: "Restart and send 1 comment" }).click();
    const note = page.locator(".thread.ask", { hasText: "Sent to the agent" });
    await note.waitFor();
    expect(await note.getByText("changed since").count()).toBe(0);
    changing.diff = changing.diff.replace("Good day", "Bonjour");
    await page.reload();
    await note.getByText("these lines have changed since").waitFor();
  });

  it("is about several lines that a mouse draws over, and keeps what is typed over a reload", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    await page.locator(".gutter").first().waitFor();
    await inFile(page, "greet.sh").locator(".gutter").nth(2).scrollIntoViewIfNeeded();
    const [from, to] = [await numbersAt(page, 0), await numbersAt(page, 2)];
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 4 });
    await page.locator(".chosen").nth(2).waitFor();
    await page.mouse.up();
    const field = page.getByLabel("Comment on greet.sh, lines 1 to 2");
    await field.fill("Both of them.");
    await page.reload();
    await expect.poll(() => field.inputValue()).toBe("Both of them.");
    await field.press("Control+Enter");
    await page.getByText("The comment was added.").waitFor();
    expect(fake.writes.at(-1)).toContain(
      `"body":"Both of them.","commit":"${HEAD}","place":{"file":"greet.sh","side":"head","first_line":1,"last_line":2}`,
    );
  });

  deepTest("is drawn with a finger on a phone", async () => {
    const { page, visit } = await start(world(), { width: 390, touch: true });
    await visit(CHANGE);
    await inFile(page, "greet.sh").locator(".gutter").nth(2).scrollIntoViewIfNeeded();
    const [from, to] = [await numbersAt(page, 0), await numbersAt(page, 2)];
    const client = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", at?: { x: number; y: number }) =>
      client.send("Input.dispatchTouchEvent", { type, touchPoints: at === undefined ? [] : [at] });
    await touch("touchStart", from);
    await touch("touchMove", { x: from.x, y: (from.y + to.y) / 2 });
    await touch("touchMove", to);
    await touch("touchEnd");
    await page.getByLabel("Comment on greet.sh, lines 1 to 2").waitFor();
  });

  deepTest("is written with the keyboard alone, and gives the focus back to the line", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    const file = inFile(page, "greet.sh");
    await file.locator(".diff").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowUp", "Shift+ArrowDown", "Shift+ArrowDown"])
      await page.keyboard.press(key);
    expect(await file.locator(".chosen").count()).toBe(3);
    await page.keyboard.press("Enter");
    await page.getByLabel("Comment on greet.sh, lines 1 to 2").waitFor();
    await page.keyboard.type("In two");
    await page.keyboard.press("Enter");
    await page.keyboard.type("lines.");
    await page.keyboard.press("Control+Enter");
    await page.getByText("The comment was added.").waitFor();
    expect(fake.writes.at(-1)).toContain(String.raw`"body":"In two\nlines."`);
    expect(await page.locator(".diff > :focus").innerText()).toContain("Good day");
    await page.keyboard.press("Enter");
    await form(page).waitFor();
    await page.keyboard.press("Escape");
    await form(page).waitFor({ state: "detached" });
    expect(await page.locator(".diff > :focus").count()).toBe(1);
  });

  deepTest("stands at its lines in both views", async () => {
    const all = world();
    const remarks = all.remarks.map((remark) => ({ ...remark, outdated: false }));
    const { page, visit } = await start({ ...all, remarks });
    await visit(CHANGE);
    const thread = inFile(page, "greet.sh").locator(".file-lines .thread");
    await thread.getByText("Does this need the whole address?").waitFor();
    const above = () =>
      thread.evaluate((own) => own.parentElement?.previousElementSibling?.textContent ?? "");
    expect(await above()).toMatch(/Good day.*\n$/);
    await page.getByRole("button", { name: "Side by side" }).click();
    await page.locator(".split").first().waitFor();
    expect(await above()).toMatch(/Good day.*\n$/);
  });

  deepTest("has older comments below their file, marked, and one resolved thread in one line", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    const file = inFile(page, "greet.sh");
    await file.locator(".thread", { hasText: "before the last push" }).waitFor();
    expect(await file.locator(".file-lines .thread").count()).toBe(0);
    await file.getByRole("button", { name: "Answer" }).click();
    await page.keyboard.type("Done.");
    await page.keyboard.press("Control+Enter");
    await page.getByText("The answer was added.").waitFor();
    expect(fake.writes).toEqual([`${REMARKS} {"body":"Done.","reply_to":"r1"}`]);
    fake.world.remarks = fake.world.remarks.map((one) =>
      one["id"] === "r1" ? { ...one, resolved_by: "u", resolved_at: one["created_at"] } : one,
    );
    fake.emit("change_request.updated");
    await file.getByText("Resolved: Ben, greet.sh, lines 1 to 2").waitFor();
    expect(await file.getByText("Does this need").isVisible()).toBe(false);
    await page.getByRole("button", { name: "greet.sh, lines 1 to 2" }).click();
    expect(await file.getByText("Does this need").isVisible()).toBe(true);
  });

  deepTest("is not lost if the service refuses it", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    fake.world.refused = { status: 503, code: "away", error: "The agent cannot be reached." };
    await inFile(page, "greet.sh").locator(".diff .added").last().click();
    await form(page).getByRole("textbox").fill("Shorter, please.");
    await form(page).getByRole("button", { name: "Comment" }).click();
    await page.getByText("The agent cannot be reached.").waitFor();
    expect(await form(page).getByRole("textbox").inputValue()).toBe("Shorter, please.");
    await form(page).getByRole("button", { name: "Add for the agent" }).click();
    await page.getByRole("button", { name: /^Restart and send 1 comment/ }).click();
    await page.getByText("The agent cannot be reached.").waitFor();
    const note = page.locator(".thread.ask", { hasText: "Shorter" });
    expect(await note.innerText()).toContain("not sent yet");
    await page.getByRole("button", { name: "Remove: the comment on greet.sh, line 2" }).click();
    await note.waitFor({ state: "detached" });
  });

  deepTest("is not begun by selecting text, and asks the agent nothing after a merge", async () => {
    const { page, fake, visit } = await start(world());
    await visit(CHANGE);
    const { x, y } = (await page.locator(".diff .added").first().boundingBox()) ?? { x: 0, y: 0 };
    await page.mouse.move(x + 130, y + 5);
    await page.mouse.down();
    await page.mouse.move(x + 200, y + 5);
    await page.mouse.up();
    await expect.poll(() => page.evaluate("getSelection().toString()")).not.toBe("");
    expect(await form(page).count()).toBe(0);
    await page.getByRole("button", { name: "Ask the agent about this file: greet.sh" }).click();
    await write(page, "Next time with a test.", "Add for the agent");
    for (const change of fake.world.changes) Object.assign(change, { status: "merged" });
    fake.emit("change_request.merged");
    await page.locator("h1 .badge", { hasText: "merged" }).waitFor();
    expect(await page.getByRole("button", { name: /^Ask the agent/ }).count()).toBe(0);
    // A comment that was not sent before the merge can still be sent.
    await page.getByRole("button", { name: /send 1 comment/ }).click();
    await page.getByText("The agent has your comments.").waitFor();
    expect(fake.writes.at(-1)).toContain("Next time with a test.");
  });

  deepTest("of the changes in a session goes to its agent only", async () => {
    const { page, fake, visit } = await start({ ...world(), work: sampleWork(0) });
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}?tab=changes`);
    await page.locator("#work .diff .added").last().click();
    expect(await form(page).getByRole("button").allInnerTexts()).toEqual(["Add for the agent", "Cancel"]);
    await write(page, "Shorter.", "Add for the agent");
    await page.getByRole("button", { name: /^Send 1 comment/ }).click();
    await page.getByText("The agent has your comments.").waitFor();
    expect(fake.writes.at(-1)).toContain("Shorter.");
  });
});
