/**
 * The page that says why something is in its state. The pictures are for people to look at, in
 * node_modules/.cache/screenshots.
 */
import * as fs from "node:fs";
import * as path from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { placed, waysOf } from "../../../dashboard/state/places.ts";
import { DEFINITIONS } from "../../../src/machines/definition.ts";
import { hasChromium, useBrowser } from "../browser.ts";
import { MACHINES } from "../samples/sample-machines.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

const PICTURES = path.resolve(import.meta.dirname, "../../../node_modules/.cache/screenshots");
const STATE = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}/state`;

describe.each(MACHINES.map((machine) => [String(machine["name"]), machine] as const))(
  "the picture of the machine %s",
  (name, machine) => {
    const drawn = placed(machine as never);

    it("has each state, and each event between two states", () => {
      const definition = DEFINITIONS.find((one) => one.name === name);
      expect(drawn.states.map((state) => state.name)).toEqual(definition?.states.map((state) => state.name));
      const shown = drawn.ways.flatMap(({ from, to, lines }) =>
        lines.flat().map((event) => `${from} ${event} ${to}`),
      );
      expect(new Set(shown)).toEqual(
        new Set(definition?.arrows.map(({ from, event, to }) => `${from} ${event} ${to}`)),
      );
    });

    it("has no name above another one, and fits a narrow screen", () => {
      const spans = [
        ...drawn.states.map(({ top, bottom }) => [top, bottom] as const),
        ...drawn.ways.map(({ top, y }) => [top, y] as const),
      ].toSorted(([a], [b]) => a - b);
      for (const [index, [top]] of spans.entries())
        if (index > 0) expect(top).toBeGreaterThanOrEqual(spans[index - 1]?.[1] ?? 0);
      const lanes = new Set(waysOf(machine as never).map(({ to }) => drawn.laneOf(to)));
      expect(lanes.size).toBe(new Set(drawn.ways.map(({ to }) => to)).size);
      expect(drawn.width).toBeLessThanOrEqual(350);
    });
  },
);

const LOOKS = [
  { name: "wide-light", window: { width: 1440 } },
  { name: "wide-dark", window: { width: 1440, dark: true } },
  { name: "narrow-light", window: { width: 390, touch: true } },
  { name: "narrow-dark", window: { width: 390, touch: true, dark: true } },
];

/** The part of the page about a machine. */
const machine = (page: Page, name: string) =>
  page.locator("section.machine", { has: page.getByRole("heading", { level: 2, name }) });

/** Shows the names of states and events. */
const openNames = async (page: Page) => {
  for (const names of await page.getByText("The state machine, and its names").all()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await names.click();
  }
};

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());

const title = hasChromium ? "the page of a state" : "the page of a state (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it.each(LOOKS)(
    "lights the present state and marks the transitions that were taken: $name",
    async ({ name, window }) => {
      const { page, visit } = await start(world(), window);
      await visit(STATE);
      const session = machine(page, "Session");
      await session.getByText("The sandbox reported that it is ready.").first().waitFor();
      // The names that programs use are for readers who ask.
      expect(await session.innerText()).not.toMatch(/idle\.elapsed|tearDownSandbox|provisionSandbox/);
      await openNames(page);
      await session.locator(".lit", { hasText: "running" }).waitFor();
      expect(await session.locator(".way.last text").allTextContents()).toEqual(["sandbox.live"]);
      expect((await session.locator(".done").allTextContents()).toSorted()).toEqual([
        "branch.created",
        "restart.requested",
        "sandbox.failed",
        "sandbox.live",
      ]);
      await session.getByText("The sandbox reported that it is ready.").first().waitFor();
      await session.getByText("It failed 2 times, and is tried again.").waitFor();
      await session.getByRole("row", { name: /boot_timeout: The sandbox did not answer/ }).waitFor();
      const isWide = await page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
      expect(isWide).toBe(false);
      fs.mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: path.join(PICTURES, `state-${name}.png`), fullPage: true });
    },
  );

  it("is reached from the session, and follows its events", async () => {
    const { page, visit, fake } = await start(world());
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    await page.getByRole("link", { name: "Why this state?" }).click();
    await page.locator(".machine").first().waitFor();
    await openNames(page);
    const lit = machine(page, "Session").locator(".lit");
    await lit.getByText("running").waitFor();
    fake.world.machines["session"] = { ...fake.world.machines["session"], state: "stopped" };
    fake.emit("session.status");
    await lit.getByText("stopped").waitFor();
  });

  it("shows the account, a trigger and a change request", async () => {
    const { page, visit } = await start(world());
    await visit("#/account/state");
    await page.getByText("3 of 3 slots in use. 2 fires in the queue.").waitFor();
    await visit(`#/projects/${PROJECT_ID}/triggers/on-push/state`);
    await page.locator(".machine .badge", { hasText: "armed" }).first().waitFor();
    await openNames(page);
    await page.locator(".lit", { hasText: "armed" }).waitFor();
    await visit(`#/projects/${PROJECT_ID}/change-requests/7/state`);
    await page.locator(".machine .badge", { hasText: "merging" }).first().waitFor();
  });
});
