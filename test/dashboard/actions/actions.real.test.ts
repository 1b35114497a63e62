/**
 * Actions of a person in a project and in the account: one of each page, and in the deep tests each by mouse, and once more by
 * keyboard alone.
 */
import { describe, expect, it } from "vitest";
import { ACTIONS } from "./actions.ts";
import { CONNECTOR_ACTIONS } from "./actions-of-connectors.ts";
import { ENVIRONMENT_ACTIONS } from "./actions-of-environment.ts";
import { HOME_ACTIONS } from "./actions-of-home.ts";
import { PEOPLE_ACTIONS } from "./actions-of-people.ts";
import { RECEIVER_ACTIONS } from "./actions-of-receivers.ts";
import { SECRET_ACTIONS } from "./actions-of-secrets.ts";
import { TALK_ACTIONS } from "./actions-of-talk.ts";
import { hasChromium, useBrowser } from "../browser.ts";
import { HANDS } from "../by-hand.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { samplePartial } from "../samples/sample-saves.ts";
import { firstOfEachPage } from "../states/state-of-a-page.ts";
import { refusingStops, stopping } from "../states/states-of-saves.ts";
import { sampled } from "../../support/vitest/rings.ts";

const title = hasChromium ? "a person" : "a person (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();
  const cases = [
    ...ACTIONS,
    ...CONNECTOR_ACTIONS,
    ...ENVIRONMENT_ACTIONS,
    ...HOME_ACTIONS,
    ...PEOPLE_ACTIONS,
    ...RECEIVER_ACTIONS,
    ...SECRET_ACTIONS,
    ...TALK_ACTIONS,
  ].flatMap((action) => HANDS.map((way) => Object.assign({}, way, action)));

  it.each(sampled(cases, firstOfEachPage(cases)))(
    "$name by $by",
    async ({ hand, hash, shows, change, does, writes, tells, gone, leads }) => {
      // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
      const world = makeWorld(Date.now());
      change?.(world);
      const { page, visit, fake } = await start(world);
      await visit(hash);
      await page.locator(shows).first().waitFor();
      await does(hand(page), page);
      if (writes !== undefined) await expect.poll(() => fake.writes).toContain(writes);
      if (tells !== undefined) await page.getByText(tells).first().waitFor();
      if (gone !== undefined) await page.getByText(gone).first().waitFor({ state: "detached" });
      if (leads !== undefined) await expect.poll(() => new URL(page.url()).hash).toBe(leads);
    },
  );

  it("decides about work that cannot be saved before a session stops, and is told what became of it", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const world = makeWorld(Date.now());
    refusingStops(world);
    const { page, visit, fake } = await start(world);
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    const stops = () => fake.writes.map((write) => write.slice(write.indexOf("/stop ") + 6));
    const dialog = page.getByRole("dialog");
    const press = (name: string) => dialog.getByRole("button", { name, exact: true }).click();
    await stopping(page);
    await dialog.getByRole("heading", { name: "The session still runs: not all work is saved" }).waitFor();
    expect(await dialog.getByRole("listitem").allInnerTexts()).toEqual(
      expect.arrayContaining(["assets/film-00001.mp4 and 37 more: no time for it yet"]),
    );
    await press("Let it run");
    await page.getByText("The session runs on.").waitFor();
    await stopping(page);
    await press("Wait and try again");
    await expect.poll(stops).toEqual(Array.from({ length: 3 }, () => '{"save":"require"}'));
    await dialog
      .getByText("The work could not be saved within 60 s. The agent's turn was interrupted.")
      .waitFor();
    fake.world.refused = null;
    for (const one of fake.world.sessions) Object.assign(one, { saved: samplePartial(0) });
    await press("Stop without them");
    await page.getByText("The session was stopped. 40 paths could not be saved.").waitFor();
    expect(stops().at(-1)).toBe('{"save":"try"}');
    await page.getByText("40 paths are not saved. Their newest version is lost.").waitFor();
  });
});
