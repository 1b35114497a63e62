import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasChromium, launch, open } from "./browser.ts";
import type { World } from "./fake-service.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "./world.ts";

// Real programs on a busy machine: a limit that ends a hung test.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const CANARY = `"'><img src=x onerror="pwned=1"><script>pwned=1</script><a href="javascript:pwned=1">x</a>`;

/** Keys that stand for choices of the page; every other string comes from whoever wrote it. */
const KEPT = new Set(["id", "project_id", "session_id", "status", "type", "kind"]);

/** Puts the canary into every string a stranger may have written. */
const poison = (value: unknown, key = ""): unknown => {
  if (typeof value === "string") {
    return KEPT.has(key) || key.endsWith("_at") || key === "upcoming" || key === "at"
      ? value
      : value + CANARY;
  }
  if (Array.isArray(value)) return value.map((one: unknown) => poison(one, key));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poison(one, name)]));
};

const PAGES = [
  ["#/", ".cards"],
  [`#/projects/${PROJECT_ID}`, ".rows"],
  [`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`, ".timeline"],
  [`#/projects/${PROJECT_ID}/triggers`, ".card"],
  [`#/projects/${PROJECT_ID}/change-requests`, ".rows"],
  [`#/projects/${PROJECT_ID}/change-requests/7`, ".diff"],
] as const;

const title = hasChromium ? "hostile data" : "hostile data (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  // Without a CSP, so that the page alone has to hold.
  it.each(PAGES)("is text and nothing else on %s [T08]", async (hash, selector) => {
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    const world = poison(makeWorld(Date.now())) as World;
    const { page, visit, complaints, close } = await open(browser, world, { csp: false });
    try {
      await visit(hash);
      await page.locator(selector).first().waitFor();
      expect(await page.locator("main").innerText()).toContain("onerror=");
      expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
      expect(
        await page.locator("body :is(img, script, iframe, [onerror], [href^='javascript'])").count(),
      ).toBe(0);
      expect(complaints).toEqual([]);
    } finally {
      await close();
    }
  });

  it("stays text in the question before an action and in its outcome [T08]", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    const world = poison(makeWorld(Date.now())) as World;
    const { page, visit, close } = await open(browser, world, { csp: false });
    try {
      await visit(`#/projects/${PROJECT_ID}/triggers`);
      await page.getByRole("button", { name: /^Fire/ }).first().click();
      await page.getByRole("dialog").getByText("onerror=").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Fire now" }).click();
      await page.getByText("started a session.").waitFor();
      expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
      expect(await page.locator("body img").count()).toBe(0);
    } finally {
      await close();
    }
  });

  it("does not turn a hostile address into a request or a link [T08]", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    const { page, visit, close } = await open(browser, makeWorld(Date.now()), { csp: false });
    try {
      await visit(`#/projects/..%2f..%2fdashboard/sessions/<img src=x onerror=pwned=1>`);
      await page.getByText("There is no such page.").waitFor();
      expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    } finally {
      await close();
    }
  });
});
