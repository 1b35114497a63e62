/** The page on a phone: everything can be seen and reached without a guess that something lies outside. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "./sample-project.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const WIDTH = 390;

const title = hasChromium ? "a phone" : "a phone (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("leads from a session back to its project, and shows all actions and tabs", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start(makeWorld(Date.now()), { width: WIDTH, touch: true });
    const rightmost = async (selector: string) => {
      const boxes = await Promise.all((await page.locator(selector).all()).map((one) => one.boundingBox()));
      expect(boxes.length).toBeGreaterThan(1);
      return Math.max(...boxes.map((box) => (box === null ? Infinity : box.x + box.width)));
    };
    await visit(`${PROJECT}/sessions/${SESSION_ID}`);
    await page.locator(".items > .item").first().waitFor();
    expect(await rightmost(".screen > .head .actions > *")).toBeLessThanOrEqual(WIDTH);
    await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "greeter" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(PROJECT);
    await page.locator(".tabs [aria-current=page]").waitFor();
    expect(await rightmost(".tabs > a")).toBeLessThanOrEqual(WIDTH);
  });
});
