/** What the page says after an action: that it is done, or why it failed and what to do. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { NEW_TOKEN } from "../fakes/fake-settings.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { chosen } from "../states/state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());

const title = hasChromium ? "an action" : "an action (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("that is refused says why, until the reader dismisses it or goes on", async () => {
    const { page, visit, fake } = await start(world());
    await visit(`${PROJECT}/settings`);
    fake.world.refused = { status: 409, code: "busy", error: "Another person moves `main`. Try again." };
    const notice = page.locator(".notices");
    await page.getByRole("button", { name: "Pause all triggers" }).click();
    await notice.getByRole("alert").getByText("Another person moves main. Try again.").waitFor();
    await notice.getByRole("button", { name: "Dismiss" }).click();
    await expect.poll(() => notice.innerText()).toBe("");
    await page.getByRole("button", { name: "Pause all triggers" }).click();
    await notice.getByRole("alert").waitFor();
    fake.world.refused = null;
    await page.getByRole("button", { name: "Pause all triggers" }).click();
    await notice.getByText("All triggers of the project are paused.").waitFor();
    expect(await notice.getByRole("alert").count()).toBe(0);
  });

  it.each([
    ["a session", 1200, `/sessions/${SESSION_ID}`],
    ["a session on a phone", 390, `/sessions/${SESSION_ID}`],
    ["the settings", 1200, "/settings"],
    ["the settings on a phone", 390, "/settings"],
  ])(
    "floats over %s: nothing moves, and nothing that the reader needs is behind it",
    async (_page, width, rest) => {
      const { page, fake, visit } = await start(world(), { width });
      await visit(PROJECT + rest);
      fake.world.refused = { status: 409, code: "busy", error: "Another person moves `main`." };
      const isSession = rest !== "/settings";
      const button = page.getByRole("button", { name: "Pause all triggers" });
      if (isSession) await page.locator(".items > .item").first().waitFor();
      else await button.scrollIntoViewIfNeeded();
      const places = (): Promise<unknown> =>
        page.evaluate(`[...document.querySelectorAll("main :is(h1, h2, button, a, input, textarea)")]
        .filter((one) => one.checkVisibility())
        .map((one) => [one.textContent, Math.round(one.getBoundingClientRect().top)])`);
      if (isSession) {
        await chosen("Stop session")(page);
        await page.getByRole("dialog").waitFor();
      }
      const before = await places();
      if (isSession) await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
      else await button.click();
      await page.locator(".notices p").waitFor();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await places()).toEqual(before);
      const { top, bottom } = await page.locator(".notices p").evaluate((one) => one.getBoundingClientRect());
      if (width > 640) {
        // Only the header is behind it.
        expect(top).toBeGreaterThanOrEqual(0);
        expect(bottom).toBeLessThan(56);
        return;
      }
      // On a phone it is under the thumb, above what the reader writes.
      const end = await page.evaluate<number>(
        `document.querySelector(".session-page .composer")?.getBoundingClientRect().top ?? innerHeight`,
      );
      expect(bottom).toBeLessThan(end);
      expect(end - bottom).toBeLessThan(56);
    },
  );

  it("copies a token also where the browser has no clipboard, as over plain http", async () => {
    const { page, visit } = await start(world());
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await visit("#/account");
    await page.reload();
    await page.getByLabel("Name", { exact: true }).fill("laptop");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText(NEW_TOKEN).waitFor();
    await dialog.getByRole("button", { name: "Copy" }).click();
    await page.getByText("Copied.").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByLabel("Name", { exact: true }).focus();
    await page.keyboard.press("Control+v");
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe(NEW_TOKEN);
  });

  it("leads from a session to its open change request", async () => {
    const found = world();
    const { page, visit } = await start({
      ...found,
      changes: found.changes.map((one) => Object.assign({}, one, { session_id: SESSION_ID })),
    });
    await visit(`${PROJECT}/sessions/${SESSION_ID}`);
    await page.getByRole("link", { name: "Change request #7" }).click();
    await page.getByRole("heading", { name: "Note the first push" }).waitFor();
  });

  it("keeps what is typed across a reload, until the session has started", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${PROJECT}/new`);
    const prompt = page.getByLabel("What should the agent do?");
    await prompt.fill("Fix the tests.\nAll of them.");
    const model = page.getByRole("combobox", { name: "Model", exact: true });
    await model.click();
    await page.getByRole("option", { name: "Another model" }).click();
    await page.getByLabel("Model, by name").fill("acme/large");
    await page.reload();
    await expect.poll(() => prompt.inputValue()).toBe("Fix the tests.\nAll of them.");
    expect(await model.getAttribute("title")).toBe("acme/large");
    await page.getByRole("button", { name: "Start session" }).click();
    await expect.poll(() => page.url()).toContain("/sessions/");
    expect(fake.writes.find((write) => write.includes("/sessions "))).toContain("Fix the tests.");
    await visit(`${PROJECT}/new`);
    await prompt.waitFor();
    expect(await prompt.inputValue()).toBe("");
  });

  it("keeps no text that the service refused because of a secret", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${PROJECT}/new`);
    const prompt = page.getByLabel("What should the agent do?");
    await prompt.fill("Use hunter22 as the password.");
    fake.world.refused = { status: 400, code: "secret_in_message", error: "It has a secret." };
    await page.getByRole("button", { name: "Start session" }).click();
    await page.getByRole("alert").getByText("It has a secret.").waitFor();
    expect(await prompt.inputValue()).toBe("Use hunter22 as the password.");
    await prompt.press("End");
    await page.keyboard.type("!");
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("hunter22");
  });
});
