/** A remade page in the frame. */
import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import { makeWorld } from "../samples/sample-project.ts";
import { refusing } from "../states/state-of-a-page.ts";

// eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
const world = () => makeWorld(Date.now());

const title = hasChromium ? "a remade page" : "a remade page (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("says that it has a fault, and the way to other pages stays", async () => {
    const { fake, page, visit, complaints } = await start(world());
    fake.world.audit = [{ ...fake.world.audit[0], changes: null }];
    await visit("#/audit");
    await page.getByRole("alert").getByText("This page has a fault.").waitFor();
    expect(complaints.length).toBeGreaterThan(0);
    complaints.length = 0;
    await openBarMenu(page);
    await page.getByRole("link", { name: "Operator" }).click();
    await page.getByRole("heading", { name: "Database" }).waitFor();
  });

  it("says why it cannot be read again, keeps what it shows, and comes back", async () => {
    const { fake, page, visit } = await start(world());
    await visit("#/audit");
    await page.locator(".row").first().waitFor();
    fake.world.broken = { status: 503, error: "The database cannot be reached." };
    await page.getByRole("alert").getByText("The database cannot be reached.").waitFor();
    expect(await page.locator(".row").count()).toBeGreaterThan(0);
    fake.world.broken = null;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
  });

  it("marks what the service refuses about a field, until the reader corrects it", async () => {
    const { fake, page, visit } = await start(world());
    await visit("#/people");
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("Eve");
    refusing("The request is not valid.", [["name", "must be shorter"]])(fake.world);
    await page.keyboard.press("Enter");
    await page.getByText("must be shorter").waitFor();
    await page.getByText("Correct what is marked.").waitFor();
    expect(await name.getAttribute("aria-invalid")).toBe("true");
    expect(await name.inputValue()).toBe("Eve");
    await name.fill("Ev");
    await page.getByText("must be shorter").waitFor({ state: "detached" });
    expect(await page.getByText("Correct what is marked.").count()).toBe(0);
    expect(await name.getAttribute("aria-invalid")).toBeNull();
  });
});
