/** How long a reader waits for the first view, and for another page of the project. Measured by the page's own clock. */
import type { Page } from "playwright-core";
import { quantile } from "../figures.ts";
import type { Stage } from "./stage.ts";

export interface Times {
  readonly median: number;
  readonly max: number;
  readonly count: number;
}

export const timesOf = (ms: readonly number[]): Times => ({
  median: Math.round(quantile(ms, 0.5)),
  max: Math.round(Math.max(...ms)),
  count: ms.length,
});

/** A reader's processor is four times slower, and her line has 1.6 Mbit/s and 150 ms. */
const SLOW = { rate: 4, bytesPerSecond: 200_000, latencyMs: 150 } as const;

/** Keeps the instant, in ms since the navigation began, at which the first row of a list was laid out. */
const FIRST_VIEW = `{
  const look = () => {
    const first = document.querySelector("#main .rows .row, #main .sessions > .session");
    if (first === null || first.getClientRects().length === 0) requestAnimationFrame(look);
    else window.shownAt = performance.now();
  };
  addEventListener("DOMContentLoaded", look);
}`;

/** Waits for it. The page's policy forbids the browser driver's own way of waiting. */
const SHOWN = `new Promise((resolve) => {
  const look = () => (window.shownAt === undefined ? requestAnimationFrame(look) : resolve(window.shownAt));
  look();
})`;

/** Makes a page's processor and line slow. */
const slow = async (page: Page): Promise<void> => {
  const { rate, bytesPerSecond, latencyMs } = SLOW;
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate });
  await cdp.send("Network.enable");
  await cdp.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: latencyMs,
    downloadThroughput: bytesPerSecond,
    uploadThroughput: bytesPerSecond,
  });
};

const firstView = async ({ life, open }: Stage, { address, isSlow }: Visit): Promise<number> => {
  const { context, page } = await open();
  try {
    if (isSlow) await slow(page);
    await page.addInitScript(FIRST_VIEW);
    await page.goto(`${life.url}/${address}`, { waitUntil: "commit" });
    return Number(await page.evaluate(SHOWN));
  } finally {
    await context.close();
  }
};

interface Visit {
  readonly address: string;
  readonly isSlow: boolean;
}

const visits = async (stage: Stage, rounds: number, visit: Visit): Promise<Times> => {
  const ms: number[] = [];
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let number = 0; number < rounds; number += 1) ms.push(await firstView(stage, visit));
  return timesOf(ms);
};

export interface FirstViews {
  readonly project: Times;
  readonly home: Times;
  /** The first page for a reader with a slow processor and line. */
  readonly slowHome: Times;
}

/** The first view of a list of sessions, each time in a browser window that has no file of the page. */
export const firstViews = async (stage: Stage, rounds: number): Promise<FirstViews> => ({
  project: await visits(stage, rounds, { address: `#/projects/${stage.projectId}`, isSlow: false }),
  home: await visits(stage, rounds, { address: "#/", isSlow: false }),
  slowHome: await visits(stage, rounds, { address: "#/", isSlow: true }),
});

const TABS = ["Sessions", "Automations", "Usage", "Change requests"] as const;

/** Presses a tab. @returns ms until its page is laid out with its data. */
const change = (page: Page, name: string): Promise<number> =>
  page.evaluate(
    `new Promise((resolve) => {
      const tab = [...document.querySelectorAll("#main .tabs:not(.parts-of-tab) a")].find((a) => a.textContent.startsWith(${JSON.stringify(name)}));
      const begun = performance.now();
      const look = () => {
        const current = document.querySelector("#main .tabs:not(.parts-of-tab) [aria-current]");
        const isThere = current !== null && current.textContent.startsWith(${JSON.stringify(name)});
        if (isThere && document.querySelector("#main .loading") === null) resolve(performance.now() - begun);
        else requestAnimationFrame(look);
      };
      tab.click();
      requestAnimationFrame(look);
    })`,
  );

export interface Changes {
  /** The page's data is read over the network first. */
  readonly first: Times;
  /** The page was shown a moment ago. */
  readonly again: Times;
}

/** Changes between the pages of a project: each once, then by turns. */
export const changes = async ({ life, projectId, open }: Stage, rounds: number): Promise<Changes> => {
  const { context, page } = await open();
  try {
    await page.goto(`${life.url}/#/projects/${projectId}`);
    await page.locator("#main .tabs").waitFor();
    const [first, again]: [number[], number[]] = [[], []];
    for (let number = 0; number <= rounds; number += 1)
      for (const name of [...TABS.slice(1), TABS[0]]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        (number === 0 ? first : again).push(await change(page, name));
      }
    return { first: timesOf(first), again: timesOf(again) };
  } finally {
    await context.close();
  }
};
