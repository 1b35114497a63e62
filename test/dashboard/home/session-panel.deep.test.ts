/** The panel beside a session's conversation, and what stands there while the sandbox starts. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;

const tab = (page: Page, name: string) => page.getByRole("tab", { name });
const tabOf = (page: Page) => new URL(page.url()).hash.split("?")[1] ?? "";
const widthOf = async (page: Page) => (await page.locator("#session-panel").boundingBox())?.width ?? 0;

const title = hasChromium ? "a session's panel" : "a session's panel (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows the tab of the address, also after a reload, and the keyboard walks through the tabs", async () => {
    const { page, visit } = await start(world());
    await visit(SESSION);
    await tab(page, "Changes").focus();
    await page.keyboard.press("ArrowLeft");
    await page.locator(".timeline").waitFor();
    expect(tabOf(page)).toBe("tab=details");
    expect(await page.locator(":focus").innerText()).toBe("Details");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => tabOf(page)).toBe("tab=files");
    await page.keyboard.press("End");
    // Only the chosen one is on the way of the Tab key.
    expect(await page.locator("[role=tab][tabindex='0']").innerText()).toBe("Details");
    await page.reload();
    await page.locator(".timeline").waitFor();
    expect(await tab(page, "Details").getAttribute("aria-selected")).toBe("true");
    expect(await page.getByRole("tabpanel").count()).toBe(1);
  });

  it("becomes wider by keys and by the mouse, and the browser remembers how wide it is", async () => {
    const { page, visit } = await start(world());
    await visit(SESSION);
    const line = page.getByRole("separator", { name: "Width of the panel" });
    await line.focus();
    const first = await widthOf(page);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => widthOf(page)).toBeGreaterThan(first);
    const { x, y } = (await line.boundingBox()) ?? { x: 0, y: 0 };
    await page.mouse.move(x, y + 200);
    await page.mouse.down();
    await page.mouse.move(x + 250, y + 200, { steps: 4 });
    await page.mouse.up();
    const drawn = await widthOf(page);
    expect(drawn).toBeLessThan(first - 100);
    await page.mouse.move(x - 300, y + 200);
    expect(await widthOf(page)).toBe(drawn);
    await page.reload();
    await line.waitFor();
    expect(await widthOf(page)).toBe(drawn);
    await line.focus();
    await page.keyboard.press("Home");
    expect(await line.getAttribute("aria-valuenow")).toBe(await line.getAttribute("aria-valuemin"));
    // The conversation keeps its room.
    await page.keyboard.press("End");
    expect((await page.locator(".talk-column").boundingBox())?.width).toBeGreaterThanOrEqual(320);
  });

  it("stays closed until the reader opens it, or follows a link to a tab", async () => {
    const { page, visit } = await start(world());
    await visit(`${SESSION}?tab=log`);
    await page.locator(".logs").waitFor();
    await page.getByRole("button", { name: "Hide panel" }).click();
    await page.locator("#session-panel").waitFor({ state: "hidden" });
    expect(tabOf(page)).toBe("");
    await page.reload();
    await page.locator(".items > .item").first().waitFor();
    expect(await page.locator("#session-panel").isVisible()).toBe(false);
    await visit(`${SESSION}?tab=details`);
    await page.locator(".timeline").waitFor();
    await page.getByRole("button", { name: "Hide panel" }).click();
    await page.getByRole("button", { name: "Show panel" }).click();
    await tab(page, "Changes").waitFor();
    expect(await page.locator(":focus").innerText()).toBe("Hide panel");
  });

  it("is one view of several on a phone, and the conversation keeps what is typed", async () => {
    const { page, visit } = await start(world(), { width: 390, touch: true });
    await visit(SESSION);
    await page.getByLabel("Message", { exact: true }).fill("Not sent yet");
    await page.getByRole("button", { name: "Changes" }).click();
    await page.locator("#work").waitFor();
    expect(await page.locator(".conversation").isVisible()).toBe(false);
    await page.locator(".panel-choice summary").click();
    await page.locator(".panel-choice").getByRole("button", { name: "Log" }).click();
    await page.locator(".logs").waitFor();
    expect(await page.locator(".panel-choice summary").innerText()).toContain("Log");
    await page.getByRole("button", { name: "Conversation" }).click();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).toBe("Not sent yet");
    expect(tabOf(page)).toBe("");
  });

  it("keeps what the reader opened while another tab is shown", async () => {
    const { page, visit } = await start(world());
    await visit(`${SESSION}?tab=details`);
    const place = await page.locator(".timeline").elementHandle();
    await tab(page, "Log").click();
    await page.locator(".logs").waitFor();
    await tab(page, "Details").click();
    expect(await page.locator(".timeline").evaluate((now, before) => now === before, place)).toBe(true);
  });

  it("leaves the steps of a boot and its clock to the conversation", async () => {
    const all = world();
    const [first = {}, ...others] = all.sessions;
    all.sessions = [{ ...first, status: "provisioning", running_at: null }, ...others];
    const created = String(first["created_at"]);
    // eslint-disable-next-line no-restricted-properties -- the browser uses the real clock
    const begun = new Date(Date.now() - 5000).toISOString();
    all.sandbox = { ...all.sandbox, created_at: created, boot_started_at: begun, active_at: null };
    const { page, fake, visit } = await start(all);
    await visit(SESSION);
    const wait = page.getByRole("log").locator(".boot-wait");
    await wait.getByText("Creating the sandbox…").waitFor();
    // Of this step, and not of the session.
    await wait.getByText(/^\d+ s$/).waitFor();
    await wait.getByText("Waited until the machine had room").waitFor();
    fake.world.sessions = [first, ...others];
    fake.emit("session.status");
    await wait.waitFor({ state: "detached" });
  });
});
