/** The browser of a suite of tests. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { launch, newPage, openIn, type Opened, type OpenWindow, type Options } from "./browser-window.ts";
import type { World } from "./fakes/fake-service.ts";

export { followLink, hasChromium, launch, launchWith, newPage, openBarMenu } from "./browser-window.ts";

/** What a test leaves in a window must not reach the next one. The page itself goes to another origin. */
const emptied = async ({ context, page, complaints }: OpenWindow): Promise<void> => {
  await Promise.all(
    context
      .pages()
      .filter((other) => other !== page)
      .map((other) => other.close()),
  );
  await Promise.all([context.clearCookies(), context.clearPermissions(), page.unrouteAll()]);
  complaints.length = 0;
};

/** Files that share a worker share its modules (test/real.config.ts), so this is one for each worker. It ends with the worker. */
let shared: Promise<Browser> | null = null;

/**
 * The worker's browser for the tests of a suite. Each may open one page, of which the browser must have nothing to complain. Tests with the same
 * kind of window share it, because a new one costs a second of CPU time. Each test has a service, and so an origin, of its own.
 *
 * @returns opens it
 */
export const useBrowser = () => {
  const windows = new Map<string, OpenWindow>();
  let browser: Browser;
  let opened: Opened | null = null;
  let used: OpenWindow | null = null;
  beforeAll(async () => {
    shared ??= launch();
    browser = await shared;
  });
  afterAll(() => Promise.all([...windows.values()].map(({ context }) => context.close())));
  afterEach(async () => {
    opened?.fake.close();
    const complaints = [...(used?.complaints ?? [])];
    if (used !== null) await emptied(used);
    [opened, used] = [null, null];
    expect(complaints).toEqual([]);
  });
  return async (world: World, options: Options = {}) => {
    const { width, dark, touch } = options;
    const kind = JSON.stringify({ width, dark, touch });
    used = windows.get(kind) ?? (await newPage(browser, options));
    windows.set(kind, used);
    opened = await openIn(used, world, options);
    return opened;
  };
};
