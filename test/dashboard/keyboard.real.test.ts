/** The list of sessions, the palette, the shortcuts, and what says that a person is waited for: by mouse and by keyboard. */
import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "./browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "./samples/sample-project.ts";
import { withTurns } from "./states/states-of-home.ts";
import { deepTest } from "../support/vitest/rings.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSIONS = `/v1/projects/${PROJECT_ID}/sessions`;

const busy = () => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const world = makeWorld(Date.now());
  withTurns(world);
  return world;
};

const title = hasChromium ? "the workbench" : "the workbench (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();
  const FIRST = "01995f2c-1e5b-7b0e-8a44-b7d15c2a90d0";

  deepTest(
    "filters sessions by who waits, who started them and by name, and keeps the filter in the address",
    async () => {
      const { page, visit } = await start(busy());
      await visit(PROJECT);
      const names = page.locator(".row .cover");
      await page.getByLabel("State").selectOption("waiting");
      await expect.poll(() => names.allInnerTexts()).toEqual(["Rename the greeting"]);
      await page.getByLabel("State").selectOption("");
      await page.getByLabel("Started by").selectOption("person");
      await expect.poll(() => names.allInnerTexts()).toEqual(["Tidy the docs"]);
      await page.getByLabel("Started by").selectOption("trigger:on-push");
      await expect.poll(() => names.count()).toBe(4);
      await page.getByRole("searchbox").fill("UPDATE");
      await expect.poll(() => names.allInnerTexts()).toEqual(["Update the dependencies"]);
      expect(new URL(page.url()).hash).toBe(`${PROJECT}?by=trigger%3Aon-push&search=UPDATE`);
      await page.reload();
      await expect.poll(() => names.allInnerTexts()).toEqual(["Update the dependencies"]);
      expect(await page.getByRole("searchbox").inputValue()).toBe("UPDATE");
      await page.getByRole("searchbox").fill("nothing like it");
      await page.getByText("No sessions match the filter.").waitFor();
      await page.getByRole("button", { name: "Show all sessions" }).click();
      await expect.poll(() => names.count()).toBe(5);
      expect(await page.getByRole("searchbox").inputValue()).toBe("");
    },
  );

  deepTest("shows the runs that wait to become sessions", async () => {
    const { page, visit } = await start(busy());
    await visit(`${PROJECT}?status=queued`);
    await page.getByText("Waits for a free session of the account.").waitFor();
    expect(await page.locator(".row").count()).toBe(1);
  });

  deepTest("moves through the rows and stops a session by keyboard alone", async () => {
    const { page, visit, fake } = await start(busy());
    await visit(PROJECT);
    await page.locator(".row").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    expect(await page.locator(":focus").innerText()).toBe("Rename the greeting");
    await page.keyboard.press(".");
    expect(await page.locator(":focus").innerText()).toBe("Stop");
    await page.keyboard.press("Escape");
    expect(await page.locator("details.menu[open]").count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => fake.writes).toEqual([`POST ${SESSIONS}/${FIRST}/stop {"save":"require"}`]);
    await page.keyboard.press("/");
    expect(await page.locator(":focus").getAttribute("data-filter")).toBe("status");
    // In a field, the keys are text.
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("gq?");
    expect(await page.getByRole("searchbox").inputValue()).toBe("gq?");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  deepTest("goes to pages by shortcuts, lists them, and lets the reader switch them off", async () => {
    const { page, visit } = await start(busy());
    await visit(PROJECT);
    await page.locator(".row").first().waitFor();
    const hash = () => new URL(page.url()).hash;
    await page.keyboard.press("c");
    await expect.poll(hash).toBe(`${PROJECT}/new`);
    await page.locator("h1").waitFor();
    await page.keyboard.type("gt");
    await expect.poll(hash).toBe(`${PROJECT}/triggers`);
    await page.keyboard.type("gp");
    // The address changes before the page does, which closes an open dialog.
    await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor();
    expect(hash()).toBe("#/projects");
    await page.keyboard.type("gh");
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    expect(hash()).toBe("#/");
    await page.keyboard.press("c");
    expect(await page.locator(":focus").getAttribute("id")).toBe("prompt");
    await page.getByRole("link", { name: "More options" }).focus();
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Next entry of a list").waitFor();
    await dialog.getByLabel("Shortcuts without Ctrl are on").uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.type("gq");
    await page.keyboard.press("Control+k");
    await dialog.waitFor();
    expect(hash()).toBe("#/");
  });

  it("finds projects, sessions, triggers and actions in the palette", async () => {
    const { page, visit } = await start(busy());
    await visit("#/");
    await page.getByRole("button", { name: /^Search/ }).click();
    const field = page.getByRole("combobox", { name: /^Search projects/ });
    const options = page.locator(".palette li");
    await field.fill("greet");
    await expect
      .poll(() => options.allInnerTexts().then((all) => all.map((one) => one.split("\n")[0])))
      .toContain("Session");
    await expect.poll(() => options.first().innerText()).toContain("greeter");
    await page.getByRole("option", { name: /Rename the greeting/ }).click();
    // The address changes before the page does, which closes an open dialog.
    await expect.poll(() => page.title()).toContain("Rename the greeting");
    expect(new URL(page.url()).hash).toBe(`${PROJECT}/sessions/${FIRST}`);
    await page.keyboard.press("Control+k");
    await field.fill("note each");
    await page.getByRole("option", { name: /Note each push/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.title()).toContain("Triggers");
    expect(new URL(page.url()).hash).toBe(`${PROJECT}/triggers`);
    await page.keyboard.press("Control+k");
    await field.fill("invite");
    await page.getByRole("option", { name: /People/ }).waitFor();
    await field.fill("shortcuts");
    await page.getByRole("option", { name: /Keyboard shortcuts/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  });

  deepTest("opens the palette in full directly after another dialog has closed", async () => {
    const { page, visit } = await start(busy());
    await visit("#/");
    await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
    // In one turn: the browser tells the close after the palette has opened.
    await page.evaluate(`
      document.querySelector("dialog").close();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
      new Promise((resolve) => setTimeout(resolve, 50));
    `);
    await page.getByRole("combobox", { name: /^Search projects/ }).fill("greet");
    await page
      .getByRole("dialog")
      .getByRole("option", { name: /greeter/ })
      .first()
      .waitFor();
  });

  deepTest("does not show sessions of an earlier text in the palette, however late they come", async () => {
    const { page, visit } = await start(busy());
    await visit("#/");
    await page.locator("h1").waitFor();
    const typed = Promise.withResolvers<void>();
    const isAsked = Promise.withResolvers<void>();
    await page.route(/\/v1\/sessions\?/, async (route) => {
      isAsked.resolve();
      await typed.promise;
      await route.continue();
    });
    await page.keyboard.press("Control+k");
    await isAsked.promise;
    await page.getByRole("combobox", { name: /^Search projects/ }).fill("shortcuts");
    const late = page.waitForResponse(/\/v1\/sessions\?/);
    typed.resolve();
    await late;
    await page.getByRole("option", { name: /Keyboard shortcuts/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  });

  deepTest("says on every page that a person is waited for, in the title and on the icon", async () => {
    const { page, visit, fake } = await start(busy());
    await visit("#/queue");
    await expect.poll(() => page.title()).toBe("(2) Queue · Platform");
    expect(await page.locator("link[rel=icon]").getAttribute("href")).toBe("icon-waiting.svg");
    await page.getByRole("link", { name: "2 need you" }).click();
    const asking = page.getByRole("region", { name: "Needs you" });
    await asking.getByText("greeter").first().waitFor();
    fake.world.sessions = fake.world.sessions.map((one, at) =>
      at === 0 ? { ...one, pending_approvals: 1 } : one,
    );
    fake.emit("session.status");
    await asking.getByText("Asks for approval: ").waitFor();
    fake.world.sessions = [];
    fake.emit("session.status");
    await expect.poll(() => page.title()).toBe("Home · Platform");
    expect(await page.locator("link[rel=icon]").getAttribute("href")).toBe("icon.svg");
  });

  deepTest("asks the browser for notifications on a click only", async () => {
    const { page, visit } = await start(busy());
    await page.addInitScript(`
      window.asked = 0;
      window.Notification = class { static permission = "default";
        static async requestPermission() { window.asked += 1; this.permission = "granted"; return "granted"; } };`);
    await visit("#/");
    await page.reload();
    await page.getByRole("button", { name: "Notify me" }).waitFor();
    expect(await page.evaluate("window.asked")).toBe(0);
    await page.getByRole("button", { name: "Notify me" }).click();
    await page.getByRole("button", { name: "Stop notifications" }).waitFor();
    expect(await page.evaluate("window.asked")).toBe(1);
  });

  deepTest("shows the operator what is wrong first, and examines the sandboxes", async () => {
    const { page, visit, fake } = await start(busy());
    await visit("#/");
    await openBarMenu(page);
    await page.getByRole("link", { name: "Operator" }).click();
    const sections = page.locator("main h2");
    await expect.poll(() => sections.first().innerText()).toBe("2 problems");
    await page.getByText("Start the service on that machine again.").waitFor();
    fake.world.operator = {
      ...fake.world.operator,
      sandboxes: { ...Object(fake.world.operator?.["sandboxes"]), doctor: fake.world.doctor },
    };
    await page.getByRole("button", { name: "Examine the sandboxes" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("A sandbox started.").waitFor();
    await page.getByRole("cell", { name: "not at all" }).waitFor();
    expect(fake.writes).toEqual(["POST /v1/operator/doctor {}"]);
  });

  deepTest("tells a reader who is not the operator how to become one", async () => {
    const { page, visit } = await start({ ...busy(), operator: null });
    await visit("#/operator");
    await page.getByText("This page is for the operator.").waitFor();
    expect(await page.locator(`[href*="${SESSION_ID}"]`).count()).toBe(0);
  });
});
