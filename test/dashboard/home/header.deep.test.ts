/** The bar above every page: one line at every width, with long names and large text too. The other links are in its menu. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import { makeWorld } from "../samples/sample-project.ts";

const WIDTHS = [320, 375, 390, 480, 640, 768, 800, 863, 865, 1024, 1200, 1280, 1343, 1345, 1440, 1728, 2000];

const world = (user: string) => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const all = makeWorld(Date.now());
  all.me = { ...all.me, user: { ...Object(all.me["user"]), name: user } };
  return all;
};

/** The visible part of the bar: how many lines it has, which links lie outside of it, and its links. */
const barIn = (page: Page): Promise<{ lines: number; outside: string[]; shown: string[] }> =>
  page.evaluate(`(() => {
    const bar = document.querySelector(".bar");
    const parts = [...bar.querySelectorAll("a, button, summary")]
      .filter((one) => one.checkVisibility() && one.closest(".menu-items") === null);
    const { top, bottom, right } = document.querySelector(".top").getBoundingClientRect();
    const isOutside = (box) => box.top < top || box.bottom > bottom || box.right > right;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const middles = parts.map((one) => one.getBoundingClientRect()).map((box) => (box.top + box.bottom) / 2);
    return {
      lines: Math.max(...middles) - Math.min(...middles) < rem / 2 && bottom - top < 3 * rem ? 1 : 2,
      outside: parts.filter((one) => isOutside(one.getBoundingClientRect())).map((one) => one.innerText),
      shown: parts.map((one) => one.innerText.replaceAll(/\\s+/g, " ").trim()),
      wide: document.documentElement.scrollWidth - innerWidth,
    };
  })()`);

const title = hasChromium ? "the bar" : "the bar (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it.each([
    { names: "short", text: 100 },
    { names: "long", text: 100 },
    { names: "short", text: 200 },
    { names: "long", text: 200 },
  ])("is one line at every width: $names names, text of $text %", async ({ names, text }) => {
    const isLong = names === "long";
    const { page, visit } = await start(world(isLong ? "Maximiliane von Hohenstein-Waldburg" : "Mona"));
    await visit("#/projects");
    await page.locator(".asks").waitFor();
    await page.locator("html").evaluate((root, size) => {
      root.style.fontSize = `${String(size)}%`;
    }, text);
    if (isLong)
      await page.locator(".brand").evaluate((brand) => {
        brand.textContent = "The installation of the northern department of works";
        // In place of "live": the longer word, as after a broken connection.
        const word = brand.ownerDocument.querySelector(".live > span");
        if (word !== null) word.textContent = "reconnecting";
      });
    for (const width of WIDTHS) {
      /* oxlint-disable no-await-in-loop -- one window, one width after the other */
      await page.setViewportSize({ width, height: 700 });
      expect(await barIn(page), `${width} px`).toMatchObject({ lines: 1, outside: [], wide: 0 });
      /* oxlint-enable no-await-in-loop */
    }
  });

  it.each([
    { width: 390, shown: ["Platform", "", "1 needs you", "Menu"] },
    {
      width: 1024,
      shown: ["Platform", "Sessions", "Projects", "Automations", "Activity", "Search", "1 needs you", "Menu"],
    },
    {
      width: 1440,
      shown: [
        "Platform",
        "Sessions",
        "Projects",
        "Automations",
        "Activity",
        "Search Ctrl K",
        "1 needs you",
        "People",
        "Models",
        "Audit",
        "Operator",
        "Mona",
      ],
    },
  ])("shows what it has room for, and the rest in its menu: $width pixels", async ({ width, shown }) => {
    const { page, visit } = await start(world("Mona"));
    await page.setViewportSize({ width, height: 700 });
    await visit("#/projects");
    await page.locator(".asks").waitFor();
    expect((await barIn(page)).shown).toEqual(shown);
    await openBarMenu(page);
    const inMenu = await page.locator(".bar .menu-items > *:visible").allInnerTexts();
    const places = ["Sessions", "Projects", "Automations", "Activity"];
    const rights = ["People", "Models", "Audit", "Operator"];
    const all = [...places, ...rights, "Your account", "Guide", "Sign out"];
    expect([...shown, ...inMenu]).toEqual(expect.arrayContaining(all));
    expect(new Set([...shown, ...inMenu]).size).toBe(shown.length + inMenu.length);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".bar .menu-items").isVisible()).toBe(false);
    await openBarMenu(page);
    await page.locator(".bar .menu-items").getByRole("link", { name: "Your account" }).click();
    await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
    expect(await page.locator(".bar .menu-items").isVisible()).toBe(false);
  });
});
