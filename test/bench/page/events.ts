/**
 * How long after its commit an event is on the page, while the agents of all sessions talk.
 *
 * `rows`: to a new session's row in the list of sessions. Its commit is between two instants: the one that its record carries, and the
 * answer to the request that made it. So there is a figure from each.
 * `items`: to a message on the session's page, from the instant at which the daemon had all of it. That is before its commit.
 */
import type { Page } from "playwright-core";
import { setTimeout as delay } from "node:timers/promises";
import { quantile } from "../figures.ts";
import { sessionAddress, type Stage } from "./stage.ts";

export interface Delays {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly seen: number;
  readonly of: number;
}

const delaysOf = (ms: readonly number[], of: number): Delays => ({
  p50: Math.round(quantile(ms, 0.5)),
  p99: Math.round(quantile(ms, 0.99)),
  max: Math.round(Math.max(...ms)),
  seen: ms.length,
  of,
});

export interface Rows {
  readonly sinceRecord: Delays;
  readonly sinceAnswer: Delays;
}

export interface Work {
  readonly seconds: number;
  /** Between two tokens of one session. */
  readonly everyMs: number;
}

/** Between two events that are measured. */
const STEP_MS = 150;
/** For the last events to arrive. */
const SETTLE_MS = 3_000;

/** Keeps the instant of the first change after which the page has each text of this form in an attribute or in its text. */
const watch = (page: Page, { within, pattern }: { readonly within: string; readonly pattern: string }) =>
  page.evaluate(`{
    window.seenAt = new Map();
    const look = (node) => {
      if (node.nodeType === Node.TEXT_NODE ? node.parentElement?.closest(${JSON.stringify(within)}) : node.matches?.(${JSON.stringify(within)}) || node.querySelector?.(${JSON.stringify(within)}) || node.closest?.(${JSON.stringify(within)})) {
        const text = node.nodeType === Node.TEXT_NODE ? node.data : node.outerHTML;
        for (const [found] of text.matchAll(/${pattern}/g)) if (!window.seenAt.has(found)) window.seenAt.set(found, Date.now());
      }
    };
    const main = document.querySelector("#main");
    new MutationObserver((changes) => {
      for (const { type, target, addedNodes } of changes) {
        if (type === "childList") addedNodes.forEach(look);
        else look(target);
      }
    }).observe(main, { childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ["href"] });
    look(main);
  }`);

const seenOn = async (page: Page): Promise<ReadonlyMap<string, number>> =>
  new Map((await page.evaluate("[...window.seenAt]")) as [string, number][]);

/** New sessions, and their rows in the list, while the others talk. */
export const rows = async (stage: Stage, { seconds, everyMs }: Work): Promise<Rows> => {
  const { life, farm, projectId, sessions, open } = stage;
  const { context, page } = await open();
  try {
    await page.goto(`${life.url}/#/projects/${projectId}`);
    await page.locator("#main .rows .row").first().waitFor();
    await watch(page, { within: ".row", pattern: String.raw`(?<=sessions\/)[0-9a-f-]{36}` });
    const work = farm.order({ kind: "talk", sessions, tokens: (seconds * 1000) / everyMs, everyMs });
    const made = new Map<string, { readonly recorded: number; readonly answered: number }>();
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { id, created_at } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
      // oxlint-disable-next-line no-restricted-properties -- the page's clock is compared with it
      made.set(String(id), { recorded: Date.parse(String(created_at)), answered: Date.now() });
      // oxlint-disable-next-line no-await-in-loop
      await delay(STEP_MS);
    }
    await work;
    await delay(SETTLE_MS);
    const seen = await seenOn(page);
    const since = (instant: "recorded" | "answered") =>
      delaysOf(
        [...made].flatMap(([id, at]) => {
          const shown = seen.get(id);
          // The row may be there before the answer.
          return shown === undefined ? [] : [Math.max(0, shown - at[instant])];
        }),
        made.size,
      );
    return { sinceRecord: since("recorded"), sinceAnswer: since("answered") };
  } finally {
    await context.close();
  }
};

/** Messages of one session on its page, while the others talk. */
export const items = async (stage: Stage, { seconds, everyMs }: Work): Promise<Delays> => {
  const { farm, sessions, open } = stage;
  const [session = "", ...beside] = sessions;
  const { context, page } = await open();
  try {
    await page.goto(sessionAddress(stage, session));
    await page.locator(".talk").waitFor();
    await watch(page, { within: ".talk", pattern: String.raw`\b\d{4,}\.\d{3}\b` });
    // The clock of the tokens is the machine's monotonic one (farm-orders.ts).
    const begun = Number(process.hrtime.bigint()) / 1e6;
    // oxlint-disable-next-line no-restricted-properties -- the page's clock is compared with it
    const offset = Date.now() - begun;
    const messages = Math.floor((seconds * 1000) / STEP_MS);
    await farm.order({
      kind: "messages",
      session,
      messages,
      everyMs: STEP_MS,
      beside,
      besideEveryMs: everyMs,
    });
    await delay(SETTLE_MS);
    const ms = [...(await seenOn(page))]
      .filter(([token]) => Number(token) > begun)
      .map(([token, at]) => at - (Number(token) + offset));
    return delaysOf(ms, messages);
  } finally {
    await context.close();
  }
};
