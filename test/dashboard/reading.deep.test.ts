/** When the page reads its data again, and what it shows meanwhile. */
import { describe, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { makeWorld, PROJECT_ID } from "./samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;

const title = hasChromium ? "the page" : "the page (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows a change while other events do not stop", async () => {
    const { page, fake, visit } = await start(world());
    await visit(PROJECT);
    await page.getByText("live", { exact: true }).waitFor();
    fake.world.sessions = [];
    const events = setInterval(() => fake.emit("session.turn"), 20);
    try {
      await page.getByText("No sessions yet.").waitFor();
    } finally {
      clearInterval(events);
    }
  });

  it("shows a page at once that was shown before, then what has changed", async () => {
    const { page, fake, visit } = await start(world());
    await visit(PROJECT);
    await page.getByText("Tidy the docs").waitFor();
    await page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
    await page.getByRole("link", { name: "Runs and deliveries" }).click();
    await page
      .getByRole("link", { name: /^Note each push/ })
      .first()
      .waitFor();
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    await page.route("**/v1/projects/**", async (route) => {
      await answered;
      await route.continue();
    });
    fake.world.sessions = [];
    await page.locator(".tabs").getByRole("link", { name: "Sessions" }).click();
    await page.getByText("Tidy the docs").waitFor();
    answer();
    await page.getByText("No sessions yet.").waitFor();
  });
});
