/**
 * Actions of a person in a project and in the account: one of each page, and in the deep tests each by mouse, and once more by
 * keyboard alone.
 */
import { describe, expect, it } from "vitest";
import { ACTIONS } from "./actions.ts";
import { CONNECTOR_ACTIONS } from "./actions-of-connectors.ts";
import { ENVIRONMENT_ACTIONS } from "./actions-of-environment.ts";
import { PEOPLE_ACTIONS } from "./actions-of-people.ts";
import { RECEIVER_ACTIONS } from "./actions-of-receivers.ts";
import { SECRET_ACTIONS } from "./actions-of-secrets.ts";
import { TALK_ACTIONS } from "./actions-of-talk.ts";
import { hasChromium, useBrowser } from "./browser.ts";
import { HANDS } from "./by-hand.ts";
import { makeWorld } from "./sample-project.ts";
import { firstOfEachPage } from "./state-of-a-page.ts";
import { sampled } from "../support/vitest/rings.ts";

const title = hasChromium ? "a person" : "a person (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();
  const cases = [
    ...ACTIONS,
    ...CONNECTOR_ACTIONS,
    ...ENVIRONMENT_ACTIONS,
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
      if (gone !== undefined) await page.getByText(gone).waitFor({ state: "detached" });
      if (leads !== undefined) await expect.poll(() => new URL(page.url()).hash).toBe(leads);
    },
  );
});
