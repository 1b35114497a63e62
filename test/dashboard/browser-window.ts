/** A real Chromium and the page in it, signed in by the one-time link. It needs no test runner. */
import { randomInt } from "node:crypto";
import * as fs from "node:fs";
import { setTimeout } from "node:timers/promises";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { CODE, type FakeService, startFakeService, type World } from "./fakes/fake-service.ts";
import { WAIT_MS } from "../support/patience.ts";
import { countStart } from "../support/vitest/starts.ts";

const EXECUTABLE = "/usr/bin/chromium";
/**
 * Delays each request of the page to the API by a random time up to this, in ms. Tests of the page must pass with it: a
 * busy machine does the same.
 */
const LATENCY_MS = Number(process.env["PLATFORM_TEST_PAGE_LATENCY_MS"] ?? "0");
export const hasChromium = fs.existsSync(EXECUTABLE);

/** Quiet, offline, and able to run as root; with further switches. */
export const launchWith = (switches: readonly string[]): Promise<Browser> => {
  countStart("browsers");
  return chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...switches,
    ],
  });
};

export const launch = (): Promise<Browser> => launchWith([]);

export interface Opened {
  readonly fake: FakeService;
  readonly page: Page;
  /** What the browser complained about: errors of scripts, violations of the CSP. */
  readonly complaints: string[];
  /** Goes to a part of the page, e.g. `#/projects/…`. */
  readonly visit: (hash: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

interface Window {
  readonly width?: number;
  readonly dark?: boolean;
  /** A phone: fingers, and no mouse. */
  readonly touch?: boolean;
}

export interface OpenWindow {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: string[];
}

/** An empty page in a separate window, and the errors that the browser reports while it is open. */
export const newPage = async (browser: Browser, options: Window = {}): Promise<OpenWindow> => {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1200, height: options.touch === true ? 667 : 800 },
    hasTouch: options.touch === true,
    isMobile: options.touch === true,
    // Without a graphics card, each frame of an animation is drawn by the processor.
    reducedMotion: "reduce",
    colorScheme: options.dark === true ? "dark" : "light",
    locale: "en-GB",
    timezoneId: "UTC",
  });
  // Ends a hung test on a busy machine; it asserts nothing about speed.
  context.setDefaultTimeout(WAIT_MS);
  if (LATENCY_MS > 0) {
    await context.route("**/v1/**", async (route) => {
      await setTimeout(randomInt(LATENCY_MS));
      // The page may be gone by then.
      await route.continue().catch(() => {});
    });
  }
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // The browser reports refused requests by itself; those are part of some tests.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      complaints.push(message.text());
    }
  });
  return { context, page, complaints };
};

export type Options = Window & { readonly csp?: boolean; readonly signedIn?: boolean };

/** Opens the page over `world` in that window, signed in unless told otherwise. */
export const openIn = async (window: OpenWindow, world: World, options: Options): Promise<Opened> => {
  const fake = await startFakeService(world, { csp: options.csp ?? true });
  const { context, page, complaints } = window;
  await page.goto(options.signedIn === false ? fake.url : `${fake.url}/dashboard/open?code=${CODE}`);
  return {
    fake,
    page,
    complaints,
    visit: async (hash) => {
      await page.goto(`${fake.url}/${hash}`);
    },
    close: async () => {
      await context.close();
      fake.close();
    },
  };
};

/** Opens the page over `world` in a window of its own, signed in unless told otherwise. */
export const open = async (browser: Browser, world: World, options: Options = {}): Promise<Opened> =>
  openIn(await newPage(browser, options), world, options);

/** Opens the menu at the end of the bar: sessions in use, the account, signing out, and what a narrow window has no room for. */
export const openBarMenu = (page: Page): Promise<void> => page.locator(".bar .menu > summary").click();

/** Signs the browser in by a one-time link, as its person does: the link's page says who it is, with a button. */
export const followLink = async (page: Page, url: string): Promise<void> => {
  await page.goto(url);
  await page.getByRole("button", { name: /^Sign in as / }).click();
};
