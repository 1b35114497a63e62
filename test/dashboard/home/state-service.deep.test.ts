/** "Why this state?" over the real service, with a session in a real sandbox: the page shows what the API says. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { documentsRunHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { followLink, hasChromium, launch, newPage } from "../browser.ts";

interface Arrow {
  readonly from: string;
  readonly event: string;
  readonly to: string;
}

interface Machine {
  readonly machine: string;
  readonly state: string;
  readonly why: readonly string[];
  readonly next: readonly { readonly event: string; readonly to: string | null; readonly text: string }[];
  readonly transitions: readonly {
    readonly event: string;
    readonly from: string | null;
    readonly to: string;
    readonly commands: readonly string[];
  }[];
}

const PARTS = [
  ["Session", ""],
  ["Sandbox", "/sandbox"],
  ["Conversation", "/conversation"],
] as const;

/** What one section of the page shows. */
const shown = async (page: Page, label: string) => {
  const section = page.locator("section.machine", {
    has: page.getByRole("heading", { name: label, level: 2 }),
  });
  const row = async (at: number) =>
    (await section.locator(`table.history tbody tr td:nth-child(${at})`).allInnerTexts()).map((text) =>
      text.replaceAll(/\s+/g, " ").trim(),
    );
  return {
    lit: await section.locator(".state.lit text").allTextContents(),
    badge: (await section.locator("h2 .badge").innerText()).trim(),
    why: await section.locator("ul.why > li").allInnerTexts(),
    next: await section.locator(".machine-words section:first-child ul.next > li code").allInnerTexts(),
    events: await section.locator("table.history tbody tr code").allInnerTexts(),
    states: await row(3),
    commands: await row(5),
    taken: new Set(
      (await section.locator(".statechart tspan.done").allTextContents()).map((text) =>
        text.replace(/ ×.*/, ""),
      ),
    ),
  };
};

/** Shows the names of states and events. */
const openNames = async (page: Page) => {
  for (const names of await page.getByText("The state machine, and its names").all()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await names.click();
  }
};

const asShown = ({ state, why, next, transitions }: Machine, arrows: readonly Arrow[]) => ({
  lit: [state],
  badge: state.replaceAll("_", " "),
  why,
  next: next.map(({ event }) => event),
  events: transitions.map(({ event }) => event),
  states: transitions.map(({ from, to }) =>
    (from === null || from === to ? to : `${from} → ${to}`).replaceAll("_", " "),
  ),
  commands: transitions.map(({ commands }) => commands.join(", ")),
  taken: new Set(
    transitions.flatMap(({ from, event, to }) =>
      arrows.some((arrow) => arrow.from === from && arrow.event === event && arrow.to === to) ? [event] : [],
    ),
  ),
});

const runs = hasChromium && documentsRunHere;
const title = runs ? "the state of a session" : "the state of a session (needs Chromium and sandboxes)";
describe.skipIf(!runs)(title, () => {
  let installation: Installation;
  let life: Life;
  let browser: Browser;
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
    browser = await launch();
  }, TEST_MS);
  afterAll(async () => {
    await browser?.close();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  /** The page and the API agree, as soon as the page has read the last change. */
  const agrees = async (page: Page, path: string) => {
    const { machines } = await life.call("GET", "/v1/machines");
    const definitions = machines as readonly { readonly name: string; readonly arrows: readonly Arrow[] }[];
    for (const [label, part] of PARTS)
      // oxlint-disable-next-line no-await-in-loop -- one page
      await vi.waitFor(async () => {
        const machine = (await life.call("GET", `${path}${part}/machine?limit=25`)) as unknown as Machine;
        const arrows = definitions.find(({ name }) => name === machine.machine)?.arrows ?? [];
        expect(await shown(page, label)).toEqual(asShown(machine, arrows));
      }, WAIT_MS);
  };

  it(
    "is lit as the API says, lists what happened, says what would move it, and follows the session to its end",
    async () => {
      const projectId = await life.project(installation.sample);
      const sessions = `/v1/projects/${projectId}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: "Look around." });
      const path = `${sessions}/${String(id)}`;
      const running: Json = await life.session(projectId, String(id), ["running", "failed"]);
      expect(running["status"]).toBe("running");
      const { page, complaints } = await newPage(browser);
      await followLink(page, String((await life.call("POST", "/dashboard/links"))["url"]));
      await page.getByRole("heading", { name: "Home" }).waitFor();
      await page.goto(`${life.url}/#/projects/${projectId}/sessions/${String(id)}`);
      await page.getByRole("link", { name: "Why this state?" }).click();
      await page.locator(".machine").first().waitFor();
      await openNames(page);
      await page.locator(".state.lit", { hasText: "running" }).first().waitFor();
      await agrees(page, path);
      const session = await shown(page, "Session");
      expect(session.events).toEqual(["sandbox.live", "branch.created", "created"]);
      expect(session.next).toEqual(expect.arrayContaining(["stop.requested", "idle.elapsed"]));
      await life.call("POST", `${path}/stop`);
      await page.locator(".state.lit", { hasText: "stopped" }).first().waitFor();
      await life.session(projectId, String(id), ["stopped"]);
      await agrees(page, path);
      const ended = await shown(page, "Session");
      expect(ended.states[0]).toBe("running → stopped");
      expect(ended.next).toEqual(["restart.requested", "delete.requested"]);
      expect((await shown(page, "Sandbox")).lit).toEqual(["stopped"]);
      expect(complaints).toEqual([]);
    },
    TEST_MS,
  );
});
