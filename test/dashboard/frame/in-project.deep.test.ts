/** Pages about what does not exist: they keep the project's head, and lead to the list. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const NONE = "0199ffff-0000-7000-8000-000000000000";

const title = hasChromium ? "a page of nothing" : "a page of nothing (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it.each([
    [`sessions/${NONE}`, "Show the sessions", PROJECT],
    [`fires/${NONE}`, "Show the runs", `${PROJECT}/fires`],
    ["change-requests/999", "Show the change requests", `${PROJECT}/change-requests`],
    [`environment/builds/${NONE}`, "Show the environment", `${PROJECT}/environment`],
  ])("in a project keeps its tabs, and leads to the list: %s", async (rest, label, target) => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit, complaints } = await start(makeWorld(Date.now()));
    await visit(`${PROJECT}/${rest}`);
    await page.getByText("Not found.").waitFor();
    await page.getByRole("navigation", { name: "Project" }).getByText("Automations").waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    expect(await page.title()).toMatch(/^(?:\(1\) )?Not found\. · Platform$/);
    await page.getByRole("link", { name: label }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(target);
    await page.locator("main h1").waitFor();
    expect(complaints).toEqual([]);
  });

  it("of an unknown project says so, and tries again on request", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    const { page, visit } = await start(makeWorld(Date.now()));
    await visit(`#/projects/${NONE}`);
    await page.getByText("Not found.").waitFor();
    await page.getByRole("button", { name: "Try again" }).waitFor();
  });
});
