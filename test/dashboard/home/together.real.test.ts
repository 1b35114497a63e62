/** Two people on one session, and a service that restarts under an open page. */
import type { Browser, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, newPage, useBrowser } from "../browser.ts";
import { OTTOS_CODE, type World } from "../fakes/fake-service.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());

const write = async (page: Page, words: string): Promise<void> => {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(words);
  await page.getByRole("button", { name: "Queue", exact: true }).click();
};
const queueOf = (page: Page) => page.locator(".queued .item");
const asked = (page: Page) => page.locator("[data-item=asked]");

const rename = (shown: World, name: string) => {
  shown.projects = shown.projects.map((one) => ({ ...one, name }));
};

/** As the browser tells a page that its tab is hidden or shown. */
const show = (page: Page, state: "hidden" | "visible") =>
  page.evaluate(`
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => ${JSON.stringify(state)} });
    document.dispatchEvent(new Event("visibilitychange"));`);

/** The same session in a window of another person. */
const opened = async (browser: Browser | null, url: string) => {
  if (browser === null) throw new Error("the page has no browser");
  const second = await newPage(browser);
  await second.page.goto(`${url}/dashboard/open?code=${OTTOS_CODE}`);
  await second.page.goto(`${url}/${SESSION}`);
  await second.page.getByRole("log").locator(".item").first().waitFor();
  return second;
};

const title = hasChromium ? "a session" : "a session (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows two people each other's messages and answers, with their names", async () => {
    const request = {
      kind: "permission",
      title: "Fetch a page",
      patterns: ["https://example.com/*"],
      questions: [],
    };
    const permission = sampleItem("asked", {
      kind: "request",
      status: "pending",
      completed_at: null,
      request,
    });
    const {
      page: mona,
      fake,
      visit,
    } = await start({
      ...world(),
      conversation: conversationOf([sampleItem("said", text("I fetch it.")), permission], {
        turn: { state: "requires_action", since: null, waiting_for: "asked" },
      }),
    });
    await visit(SESSION);
    const { context, page: otto, complaints } = await opened(mona.context().browser(), fake.url);
    await expect.poll(() => fake.conversations.readers()).toBe(2);
    await write(mona, "Name the tag v1.2.0.");
    await queueOf(otto).filter({ hasText: "Name the tag v1.2.0." }).getByText("Mona").waitFor();
    await write(otto, "And sign it.");
    const signing = queueOf(mona).filter({ hasText: "And sign it." });
    await signing.getByText("Otto").waitFor();
    // Either may take a message back that the agent does not have.
    await signing.getByRole("button", { name: "Cancel" }).click();
    await queueOf(otto).filter({ hasText: "And sign it." }).waitFor({ state: "detached" });
    // Otto answers what the agent asked both.
    await asked(mona).getByRole("button", { name: "Allow once" }).waitFor();
    await asked(otto).getByRole("button", { name: "Allow once" }).click();
    await asked(mona).getByText("allowed once by Otto").waitFor();
    expect(await asked(mona).getByRole("button", { name: "Allow once" }).count()).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
  });

  onlyDeep(() => {
    it.each([
      ["the session", SESSION, ".items > .item"],
      ["a list", PROJECT, ".row"],
      ["the first page", "#/", ".session"],
    ])("says that the service is away, and recovers without a reload: %s", async (_name, hash, shows) => {
      const { page, fake, visit, complaints } = await start(world());
      await visit(hash);
      await page.locator(shows).first().waitFor();
      await page.evaluate("window.loadedOnce = true");
      if (hash !== "#/") await page.getByText("live", { exact: true }).waitFor();
      await fake.down();
      await page.getByRole("alert").getByText("The service does not respond.").waitFor();
      await page.getByRole("alert").getByText("The page tries again by itself.").waitFor();
      // The page keeps its content.
      await page.locator(shows).first().waitFor();
      fake.world.projects = fake.world.projects.map((one) => ({ ...one, name: "renamed meanwhile" }));
      await fake.up();
      await page.getByRole("alert").waitFor({ state: "detached" });
      await page.locator("main :not(option)", { hasText: "renamed meanwhile" }).last().waitFor();
      if (hash !== "#/") await page.getByText("live", { exact: true }).waitFor();
      expect(await page.evaluate("window.loadedOnce")).toBe(true);
      // The browser itself reports each connection that failed.
      complaints.length = 0;
    });
  });

  deepTest("needs one connection to the service while it is shown, and none while it is hidden", async () => {
    const { page, fake, visit } = await start(world());
    await visit(SESSION);
    await page.getByText("live", { exact: true }).waitFor();
    const streams = () => [fake.conversations.readers(), fake.eventReaders(), fake.logReaders()];
    expect(streams()).toEqual([1, 0, 0]);
    // One stream says both: what the agent says, and that the project has changed.
    rename(fake.world, "renamed once");
    fake.emit("session.status");
    await page.getByText("renamed once").first().waitFor();
    await show(page, "hidden");
    await expect.poll(streams, { timeout: WAIT_MS }).toEqual([0, 0, 0]);
    fake.say("item", sampleItem("meanwhile", text("Said meanwhile.")));
    rename(fake.world, "renamed twice");
    await show(page, "visible");
    await page.getByText("Said meanwhile.").waitFor();
    await page.getByText("renamed twice").first().waitFor();
    expect(streams()).toEqual([1, 0, 0]);
    await visit(PROJECT);
    await expect.poll(streams).toEqual([0, 1, 0]);
  });

  deepTest("asks for a reload if the service was upgraded and a page's module is gone", async () => {
    const { page, visit, complaints } = await start(world());
    await visit("#/");
    await page.locator(".session").first().waitFor();
    // What a newer service serves: scripts with other names, without the former ones.
    await page.route(/\/people-\w+\.js$/, (route) => route.fulfill({ status: 404 }));
    await page.route(/\/$/, (route) =>
      route.fulfill({ contentType: "text/html", body: "<script src=app-NEWER.js>" }),
    );
    await page.evaluate('location.hash = "#/people"');
    await page.getByRole("alert").getByText("The service was upgraded since this page was opened.").waitFor();
    expect(await page.getByText("The page tries again by itself.").count()).toBe(0);
    await page.unrouteAll();
    await page.reload();
    await page.getByRole("heading", { name: "People" }).waitFor();
    // The browser itself reports the missing module.
    complaints.length = 0;
  });

  deepTest("keeps a message that is typed and sent while the service is away", async () => {
    const { page, fake, visit, complaints } = await start(world());
    await visit(SESSION);
    await page.getByRole("textbox", { name: "Message", exact: true }).waitFor();
    await expect.poll(() => fake.conversations.readers()).toBe(1);
    await fake.down();
    await page.getByRole("alert").first().waitFor();
    await write(page, "Written meanwhile.");
    await fake.up();
    await expect.poll(() => fake.writes.filter((one) => one.includes("Written meanwhile.")).length).toBe(1);
    complaints.length = 0;
  });
});
