/** The browser of a suite of tests. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { launch, open, type Opened, type Options } from "./browser-window.ts";
import type { World } from "./fake-service.ts";

export { hasChromium, launch, launchWith, newPage, open, type Opened } from "./browser-window.ts";

/**
 * A browser for the tests of a suite. Each may open one page, of which the browser must have nothing to complain.
 *
 * @returns opens it
 */
export const useBrowser = () => {
  let browser: Browser;
  let opened: Opened | null = null;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    const complaints = opened?.complaints;
    await opened?.close();
    opened = null;
    expect(complaints ?? []).toEqual([]);
  });
  return async (world: World, options: Options = {}) => {
    opened = await open(browser, world, options);
    return opened;
  };
};
