/** The page on a phone, and at a high zoom: everything can be seen and reached without a guess that something lies outside. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { STATES } from "../states/states.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const WIDTH = 390;

const title = hasChromium ? "a narrow page" : "a narrow page (/usr/bin/chromium is missing)";
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
    expect(await rightmost(".head-line > *")).toBeLessThanOrEqual(WIDTH);
    expect(await rightmost(".panel-choice > *")).toBeLessThanOrEqual(WIDTH);
    await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "greeter" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(PROJECT);
    await page.locator(".tabs-menu > details > summary").click();
    expect(await rightmost(".tabs-menu a")).toBeLessThanOrEqual(WIDTH);
    await page.getByRole("link", { name: "Runs and deliveries" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(`${PROJECT}/fires`);
  });

  it("shows a project's first session high, below one line of the bar, and its filters on demand", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const all = makeWorld(Date.now());
    STATES.find(({ name }) => name === "sessions")?.change?.(all);
    const { page, visit } = await start(all, { width: WIDTH, touch: true });
    await visit(PROJECT);
    const first = page.locator(".rows > .row").first();
    await page.getByRole("link", { name: /^\d+ needs? you$/ }).waitFor();
    await first.waitFor();
    expect((await page.locator(".top").boundingBox())?.height).toBeLessThanOrEqual(48);
    expect((await first.boundingBox())?.y).toBeLessThanOrEqual(200);
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByLabel("State").selectOption("failed");
    await expect.poll(() => new URL(page.url()).hash).toBe(`${PROJECT}?status=failed`);
  });

  it.each([WIDTH, 1200])(
    "does not scroll sideways for a long name without a space: %i pixels",
    async (width) => {
      // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
      const all = makeWorld(Date.now());
      for (const one of all.sessions) Object.assign(one, { name: "a".repeat(200) });
      const { page, visit } = await start(all, { width });
      for (const part of ["", "/state"]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        await visit(`${PROJECT}/sessions/${SESSION_ID}${part}`);
        // oxlint-disable-next-line no-await-in-loop
        await page
          .locator(part === "" ? ".items > .item" : ".machine")
          .first()
          .waitFor();
        // oxlint-disable-next-line no-await-in-loop
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      }
    },
  );

  it("shows all tabs in half a window too, as at 200 % zoom", async () => {
    const width = 700;
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start(makeWorld(Date.now()), { width });
    await visit(PROJECT);
    await page.locator(".tabs [aria-current=page]").waitFor();
    for (const tab of await page.locator(".tabs > a").all()) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const box = await tab.boundingBox();
      expect(box === null ? Infinity : box.x + box.width).toBeLessThanOrEqual(width);
    }
  });
});
