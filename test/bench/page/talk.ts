/**
 * What a long conversation costs its reader, over the small server of the page's tests: how long the browser pauses and how late it shows
 * a key while an answer grows, whether a reader above it stays in place, and what the events of a day leave in the page's memory.
 */
import type { CDPSession, Page } from "playwright-core";
import { setTimeout as delay } from "node:timers/promises";
import { launch, open, type Opened } from "../../dashboard/browser-window.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../../dashboard/samples/sample-project.ts";
import { conversationOf, sampleItem, text } from "../../dashboard/samples/sample-conversation.ts";
import { quantile } from "../figures.ts";

const ITEMS = 5_000;
const LINES = 20_000;
/** A line has about ten tokens. */
const LINE = "  const total = items.reduce((sum, one) => sum + one.size, 0);\n";
const EVERY_MS = 50;
const KEY_EVERY_MS = 100;
const MIB = 1024 * 1024;

/** Longer than this, the browser calls a task long. */
const LONG_MS = 50;

export interface Talk {
  readonly linesPerSecond: number;
  /** Tasks of the page's thread above 50 ms while the answer grew. */
  readonly pauses: { readonly count: number; readonly longest: number };
  /** From a key to the frame that shows it, ms. */
  readonly keys: { readonly count: number; readonly p50: number; readonly p99: number };
  /** By how many pixels the first line in view moved for a reader above the growing text. */
  readonly moved: number;
  /** What 5,000 events left after a collection, MiB. */
  readonly heapMiB: number;
}

const PROMPT = sampleItem("asked", {
  role: "user",
  status: "accepted",
  turn_id: "asked",
  ...text("Write it."),
});

const longWorld = () => {
  const world = makeWorld(new Date().getTime());
  world.conversation = conversationOf(
    Array.from({ length: ITEMS }, (_, at) =>
      sampleItem(`said-${at}`, text(`Item ${at} of the conversation.`)),
    ),
    { turn: { state: "running", since: new Date().toISOString(), waiting_for: null } },
  );
  return world;
};

/** Notes each pause, and from each key to the next frame. */
const WATCH = `{
  window.pauses = [];
  window.keys = [];
  new PerformanceObserver((list) => window.pauses.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask" });
  addEventListener("keydown", (event) => {
    const at = event.timeStamp;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.keys.push(performance.now() - at);
      port2.postMessage(null);
    });
  }, true);
}`;

const heap = async (cdp: CDPSession): Promise<number> => {
  await cdp.send("HeapProfiler.collectGarbage");
  return (await cdp.send("Runtime.getHeapUsage")).usedSize / MIB;
};

/** An answer that grows by the lines of a fence. @returns makes it grow, and says how many lines came in a second */
const begin = ({ fake }: Opened) => {
  const said = "```ts\n";
  let offset = said.length;
  fake.say("item", PROMPT);
  fake.say("item", {
    ...sampleItem("grown", text(said)),
    status: "running",
    completed_at: null,
    turn_id: "asked",
  });
  return async (lines: number, perSecond: number): Promise<number> => {
    const begun = performance.now();
    const passed = () => (performance.now() - begun) / 1000;
    for (let sent = 0; sent < lines;) {
      const due = Math.min(lines, Math.ceil(passed() * perSecond) + 1);
      const part = LINE.repeat(due - sent);
      fake.say("delta", { item_id: "grown", offset, text: part });
      [sent, offset] = [due, offset + part.length];
      // oxlint-disable-next-line no-await-in-loop -- a stream
      await delay(EVERY_MS);
    }
    return Math.round(lines / passed());
  };
};

/** Types until the signal. */
const type = async (page: Page, over: AbortSignal): Promise<void> => {
  await page.getByLabel("Message", { exact: true }).focus();
  while (!over.aborted) {
    // oxlint-disable-next-line no-await-in-loop -- one key after the other
    await page.keyboard.press("a");
    // oxlint-disable-next-line no-await-in-loop -- one key after the other
    await delay(KEY_EVERY_MS);
  }
};

const read = async (page: Page, name: string): Promise<readonly number[]> =>
  (await page.evaluate(`window.${name}`)) as readonly number[];

/** Where the log is scrolled to. */
const PLACE = 'document.querySelector(".talk").scrollTop';

/** Scrolls up into the answer, lets it grow, and looks again. The text above the reader does not change. */
const moved = async ({ page }: Opened, grow: ReturnType<typeof begin>): Promise<number> => {
  await page.locator(".talk").hover();
  await page.mouse.wheel(0, -6000);
  await delay(500);
  const before = Number(await page.evaluate(PLACE));
  await grow(1000, 200);
  return Math.round(Math.abs(Number(await page.evaluate(PLACE)) - before));
};

/** @param perSecond how many lines of the fence come in a second, until there are 20,000 */
export const talk = async (perSecond: number): Promise<Talk> => {
  const browser = await launch();
  try {
    const opened = await open(browser, longWorld());
    const { page, fake } = opened;
    await page.addInitScript(WATCH);
    await opened.visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    await page.reload();
    await page.getByText(`Item ${ITEMS - 1} of the conversation.`).waitFor();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("HeapProfiler.enable");
    const grow = begin(opened);
    // Those of the page's beginning are in `views`.
    await page.evaluate("window.pauses.length = 0");
    const over = new AbortController();
    const typing = type(page, over.signal);
    const linesPerSecond = await grow(LINES, perSecond);
    over.abort();
    await typing;
    const [pauses, keys] = [await read(page, "pauses"), await read(page, "keys")];
    const above = await moved(opened, grow);
    await page.getByRole("button", { name: /^Newest/ }).click();
    const before = await heap(cdp);
    for (let at = 0; at < ITEMS; at += 1)
      fake.say("item", sampleItem(`day-${at}`, text(`Event ${at} of the day.`)));
    await page.getByText(`Event ${ITEMS - 1} of the day.`).waitFor();
    const after = await heap(cdp);
    await opened.close();
    return {
      linesPerSecond,
      pauses: {
        count: pauses.filter((ms) => ms > LONG_MS).length,
        longest: Math.round(Math.max(0, ...pauses)),
      },
      keys: {
        count: keys.length,
        p50: Math.round(quantile(keys, 0.5)),
        p99: Math.round(quantile(keys, 0.99)),
      },
      moved: above,
      heapMiB: Math.round((after - before) * 10) / 10,
    };
  } finally {
    await browser.close();
  }
};
