/**
 * Every page is accessible and whole, and in the deep tests every state of it: axe-core finds nothing wrong, light and dark, wide and narrow, and nothing
 * is cut off on a phone or with a zoom of 200 %.
 */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { CUT_OFF } from "./cut-off.ts";
import { makeWorld } from "./samples/sample-project.ts";
import { firstOfEachPage } from "./states/state-of-a-page.ts";
import { STATES } from "./states/states.ts";
import { sampled } from "../support/vitest/rings.ts";

/** @returns each violation with the first elements that have it. @param rules all rules, if it is null */
const runOf = (rules: readonly string[] | null): string => {
  const options = { resultTypes: ["violations"], ...(rules === null ? {} : { runOnly: rules }) };
  return `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ html, failureSummary }) =>
    html.slice(0, 160) + " " + failureSummary.slice(0, 300))]))`;
};
/** The two schemes differ in colours alone: so only the colours are checked dark. */
const RUNS = { light: runOf(null), dark: runOf(["color-contrast", "link-in-text-block"]) };

const [WIDE, PHONE] = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
];
/** What a wide window shows of the page at 200 %. */
const ZOOMED = { width: WIDE.width / 2, height: WIDE.height / 2 };

/** The faults, by the look that shows them. */
const faultsOf = async (page: Page): Promise<Readonly<Record<string, unknown>>> => {
  const found: Record<string, unknown> = {};
  for (const size of [WIDE, PHONE]) {
    await page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      found[`${String(size.width)} ${colorScheme}`] = await page.evaluate(RUNS[colorScheme]);
    }
  }
  for (const size of [PHONE, ZOOMED]) {
    await page.setViewportSize(size);
    found[`cut off at ${String(size.width)}`] = await page.evaluate(CUT_OFF);
  }
  return Object.fromEntries(
    Object.entries(found).filter(([, faults]) => !Array.isArray(faults) || faults.length > 0),
  );
};

const title = hasChromium ? "accessibility" : "accessibility (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it.each(sampled(STATES, firstOfEachPage(STATES)))(
    "finds nothing wrong and nothing cut off on $name",
    async ({ hash, shows, change, act, signedIn }) => {
      // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
      const world = makeWorld(Date.now());
      change?.(world);
      // The policy of the page forbids the checker's script.
      const { page, visit } = await start(world, {
        width: WIDE.width,
        csp: false,
        signedIn: signedIn ?? true,
      });
      await page.setViewportSize(WIDE);
      await visit(hash);
      await page.locator(shows).first().waitFor();
      await act?.(page);
      await page.evaluate(axe.source);
      expect(await faultsOf(page)).toEqual({});
    },
  );

  it("finds nothing wrong in the reader's own colours, which show what a session does", async () => {
    const state = STATES.find(({ name }) => name === "home");
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const world = makeWorld(Date.now());
    state?.change?.(world);
    const { page, visit } = await start(world, { csp: false });
    await page.emulateMedia({ forcedColors: "active" });
    await visit("#/");
    await page.locator(".session").first().waitFor();
    await page.evaluate(axe.source);
    expect(await page.evaluate(RUNS.light)).toEqual([]);
    const colours = await page.evaluate<readonly string[]>(
      `[...new Set([...document.querySelectorAll(".activity")].map((icon) => getComputedStyle(icon).color))]`,
    );
    expect(colours).toHaveLength(1);
    // Nothing but a line tells what Enter opens.
    await page.keyboard.press("Control+K");
    await page.locator(".palette [aria-selected=true]").waitFor();
    expect(
      await page.evaluate(
        'getComputedStyle(document.querySelector(".palette [aria-selected=true]")).outlineStyle',
      ),
    ).toBe("solid");
    await page.emulateMedia({ forcedColors: null });
  });

  it("moves nothing for a reader who does not want that", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const world = makeWorld(Date.now());
    STATES.find(({ name }) => name === "home")?.change?.(world);
    const { page, visit } = await start(world);
    await visit("#/");
    await page.locator(".session").first().waitFor();
    const moving = () => page.evaluate<number>("document.getAnimations().length");
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await expect.poll(moving).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await expect.poll(moving).toBe(0);
  });
});
