/** Accessibility: axe-core finds nothing wrong on any page or state, light and dark. */
import axe from "axe-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { makeWorld } from "./sample-project.ts";
import { STATES } from "./states.ts";

/** Each violation with the first elements that have it. */
const RUN = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ html, failureSummary }) =>
    html.slice(0, 160) + " " + failureSummary.slice(0, 300))]))`;

const title = hasChromium ? "accessibility" : "accessibility (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  const cases = STATES.flatMap((state) => [false, true].map((dark) => Object.assign({ dark }, state)));
  it.each(cases)(
    "has no violation on $name, dark: $dark",
    async ({ dark, hash, shows, change, act, signedIn }) => {
      // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
      const world = makeWorld(Date.now());
      change?.(world);
      // The policy of the page forbids the checker's script.
      const { page, visit } = await start(world, { dark, csp: false, signedIn: signedIn ?? true });
      await visit(hash);
      await page.locator(shows).first().waitFor();
      await act?.(page);
      await page.evaluate(axe.source);
      expect(await page.evaluate(RUN)).toEqual([]);
    },
  );
});
