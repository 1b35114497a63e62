/** Files that a person attaches to a message. The pictures are in node_modules/.cache/screenshots, for people to look at. */
import * as fs from "node:fs";
import * as path from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { imageSize } from "../../../src/domain/conversation/image-size.ts";
import { hasChromium, useBrowser } from "../browser.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { deepTest, sampled } from "../../support/vitest/rings.ts";

const PICTURES = path.resolve(import.meta.dirname, "../../../node_modules/.cache/screenshots");
const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const LOOKS = [
  { name: "wide-light", window: { width: 1200 } },
  { name: "narrow-dark", window: { width: 375, touch: true, dark: true } },
];

const LOG = { name: "error.log", mimeType: "text/plain", buffer: Buffer.from("it failed\n") };
/** One red pixel. */
const PNG = {
  name: "a screenshot of the page.png",
  mimeType: "image/png",
  buffer: Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
    "base64",
  ),
};

const chunk = (type: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
};

/** A whole picture of this size, in one colour. */
const blankPng = (width: number, height: number): Buffer<ArrayBuffer> => {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  // Eight bits of grey.
  head[8] = 8;
  const rows = deflateSync(Buffer.alloc((width + 1) * height));
  const chunks = [chunk("IHDR", head), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([PNG.buffer.subarray(0, 8), ...chunks]);
};

const title = hasChromium ? "attached files" : "attached files (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const open = async (window: { width?: number; touch?: boolean; dark?: boolean } = {}) => {
    const conversation = conversationOf([sampleItem("m0", text("Ready."))]);
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const opened = await start({ ...makeWorld(Date.now()), conversation }, window);
    await opened.visit(SESSION);
    const { page, fake } = opened;
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    return {
      ...opened,
      area: page.getByRole("textbox", { name: "Message", exact: true }),
      send: page.getByRole("button", { name: "Send", exact: true }),
      chips: page.getByRole("list", { name: "Attached files" }).getByRole("listitem"),
      choose: (...files: readonly (typeof LOG)[]) =>
        page.locator("input[type=file]").setInputFiles([...files]),
      posted: () =>
        fake.writes
          .filter((write) => write.includes("/messages "))
          .map((write) => JSON.parse(write.slice(write.indexOf("{"))) as Record<string, unknown>),
    };
  };

  it.each(sampled(LOOKS, LOOKS.slice(0, 1)))(
    "are uploaded, sent with the message, and shown in it: $name",
    async ({ name, window }) => {
      const { page, fake, area, send, chips, choose, posted } = await open(window);
      await choose(LOG, { ...PNG, buffer: Buffer.from(await page.screenshot()) });
      await expect
        .poll(() => chips.allInnerTexts())
        .toEqual([
          expect.stringMatching(/error\.log\s+10 B/),
          expect.stringMatching(/a screenshot of the page\.png\s+\d+ KiB/),
        ]);
      await area.fill("Why does this fail?");
      fs.mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: path.join(PICTURES, `attached-${name}.png`) });
      await send.click();
      const picture = page.getByRole("img", { name: PNG.name });
      await picture.waitFor();
      const width = () =>
        picture.evaluate((img) => (img as unknown as { naturalWidth: number }).naturalWidth);
      await expect.poll(width).toBe(window.width);
      expect(await chips.count()).toBe(0);
      await expect.poll(posted).toMatchObject([{ text: "Why does this fail?" }]);
      // Both are uploaded at once. The message has them in the order in which they were chosen.
      const ids = posted()[0]?.["attachments"] as readonly string[];
      expect(ids.toSorted()).toEqual([...fake.world.conversation.files.keys()].toSorted());
      const link = page.getByRole("link", { name: "error.log" });
      await link.waitFor();
      expect(await link.getAttribute("href")).toMatch(new RegExp(`/attachments/${ids[0]}$`));
      expect(await link.getAttribute("download")).toBe("error.log");
      await page.getByText("Cancel", { exact: true }).waitFor();
      const below = () =>
        page.getByRole("log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
      await expect.poll(below).toBeLessThan(2);
      await page.screenshot({ path: path.join(PICTURES, `attached-${name}-sent.png`) });
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    },
  );

  it("that are too large for models have a smaller copy with them", async () => {
    const { fake, chips, choose } = await open();
    await choose({ ...PNG, name: "map.png", buffer: blankPng(9000, 6) });
    await expect
      .poll(() => chips.allInnerTexts())
      .toEqual([expect.stringContaining("map.png"), expect.stringMatching(/map \(smaller\)\.jpg\s+\d/)]);
    const copy = () =>
      [...fake.world.conversation.files.values()].find(({ name }) => name === "map (smaller).jpg");
    await expect
      .poll(() => copy() !== undefined && imageSize("image/jpeg", copy()?.content ?? Buffer.alloc(0)))
      .toEqual({
        width: 2000,
        height: 1,
      });
    // One that would be refused goes out as its copy alone.
    await choose({
      ...PNG,
      name: "photo.png",
      buffer: Buffer.concat([blankPng(20, 20), Buffer.alloc(11 * 1024 * 1024)]),
    });
    await expect.poll(() => chips.allInnerTexts()).toHaveLength(3);
    expect((await chips.allInnerTexts())[2]).toContain("photo (smaller).jpg");
  });

  deepTest("need no text, can be removed, and survive a reload", async () => {
    const { page, send, chips, choose, posted } = await open();
    expect(await send.isDisabled()).toBe(true);
    await choose(LOG, PNG);
    await page.getByRole("button", { name: "Remove error.log" }).click();
    await expect.poll(() => chips.count()).toBe(1);
    await expect.poll(() => send.isEnabled()).toBe(true);
    await page.reload();
    await expect.poll(() => chips.allInnerTexts()).toEqual([expect.stringContaining(PNG.name)]);
    await send.click();
    await expect.poll(posted).toHaveLength(1);
    expect(posted()[0]).not.toHaveProperty("text");
    await page.getByRole("img", { name: PNG.name }).waitFor();
  });

  deepTest("that are refused say why, and hold the message until they are removed", async () => {
    const { page, fake, area, send, chips, choose, posted } = await open();
    await area.fill("Look at this.");
    fake.world.refused = {
      status: 422,
      code: "secret_in_message",
      error: "The file contains the value of the secret TOKEN. Name the secret instead of its value.",
    };
    await choose(LOG, { ...LOG, name: "empty.txt", buffer: Buffer.alloc(0) });
    await chips.getByText("The file contains the value of the secret TOKEN.").waitFor();
    await chips.getByText("The file is empty.").waitFor();
    expect(await send.isDisabled()).toBe(true);
    await area.press("Enter");
    fake.world.refused = null;
    await page.getByRole("button", { name: "Remove error.log" }).click();
    await page.getByRole("button", { name: "Remove empty.txt" }).click();
    expect(await area.inputValue()).toBe("Look at this.");
    await send.click();
    await expect.poll(posted).toMatchObject([{ text: "Look at this." }]);
    expect(posted()[0]).not.toHaveProperty("attachments");
  });

  deepTest("can be pasted and dropped", async () => {
    const { page, area, chips } = await open();
    await area.waitFor();
    for (const [sign, field] of [
      ["paste", "clipboardData"],
      ["drop", "dataTransfer"],
    ])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await page.evaluate(`{
        const data = new DataTransfer();
        data.items.add(new File(["x"], "${sign}.txt", { type: "text/plain" }));
        const event = new Event("${sign}", { bubbles: true, cancelable: true });
        Object.defineProperty(event, "${field}", { value: data });
        document.querySelector("#message").dispatchEvent(event);
      }`);
    await expect
      .poll(() => chips.allInnerTexts())
      .toEqual([expect.stringContaining("paste.txt"), expect.stringContaining("drop.txt")]);
  });
});
