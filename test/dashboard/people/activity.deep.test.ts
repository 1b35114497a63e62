import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { RealService } from "../real-service.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());

const title = hasChromium ? "the activity" : "the activity (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("is marked where it is new, until the reader looks again later", async () => {
    const { page, visit, fake } = await start(world());
    const newest = fake.world.activity[0]?.["at"];
    await visit("#/activity");
    const fresh = page.locator(".row", { has: page.getByText("new", { exact: true }) });
    await page.getByText("3 new since you last looked.").waitFor();
    expect(await fresh.count()).toBe(3);
    expect(fake.world.activitySeen).toBe(newest);
    // An entry that comes while she looks is new, too.
    fake.world.activity = [
      // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
      { ...fake.world.activity[1], id: "9001", at: new Date(Date.now()).toISOString() },
      ...fake.world.activity,
    ];
    fake.emit("change_request.remarked");
    await page.getByText("4 new since you last looked.").waitFor();
    await page.getByRole("link", { name: /The agent asks a question/ }).click();
    await page.waitForURL(new RegExp(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`));
    await page.goBack();
    await page.getByText("4 new since you last looked.").waitFor();
    await page.reload();
    await page.getByText("Nothing new since you last looked.").waitFor();
    expect(await fresh.count()).toBe(0);
  });

  it("is narrowed to what is the reader's own, in the address", async () => {
    const { page, visit } = await start(world());
    await visit("#/activity");
    const others = page.locator(".row", { hasText: "Deliveries are refused" });
    await others.waitFor();
    await page.getByLabel("Show").selectOption("Only mine");
    await others.waitFor({ state: "detached" });
    expect(page.url()).toMatch(/#\/activity\?only=mine$/);
    await page.reload();
    await page.getByRole("link", { name: /The agent asks a question/ }).waitFor();
    expect(await others.count()).toBe(0);
    await page.getByLabel("Show").selectOption("Everything");
    await others.waitFor();
  });

  it("is reached from the header and by the search, and leads to what it is about", async () => {
    const { page, visit } = await start(world());
    await visit("#/");
    await page.locator(".top").getByRole("link", { name: "Activity" }).click();
    await page.getByRole("heading", { name: "Today" }).waitFor();
    expect(await page.locator(".row", { hasText: "The agent finished, 2 times" }).count()).toBe(1);
    await page.getByRole("link", { name: /Deliveries are refused/ }).click();
    await page.waitForURL(/fires\?status=refused/);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("what happened");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Activity", level: 1 }).waitFor();
  });
});

describe.skipIf(!hasChromium)(title.replace("the activity", "the triggers of all projects"), () => {
  const start = useBrowser();

  it("are reached from the header, say when they run and how they ran, and lead to their project", async () => {
    const { page, visit, fake } = await start(world());
    await visit("#/");
    await page.locator(".top").getByRole("link", { name: "Automations" }).click();
    const cron = page.locator(".row", { hasText: "Look back in the new year" });
    await cron.waitFor();
    expect(await cron.innerText()).toContain("0 0 9 2 1 *");
    expect(await cron.innerText()).toContain("next");
    expect(await page.getByText("1 mistake").count()).toBe(1);
    fake.world.listing = { ...fake.world.listing, triggers_paused: true };
    fake.emit("trigger.fired");
    await cron.getByText("all paused").waitFor();
    await cron.getByRole("link", { name: /^Look back/ }).click();
    await page.waitForURL(new RegExp(`#/projects/${PROJECT_ID}/triggers`));
  });
});

describe.skipIf(!hasChromium)(`${title}, over the service`, () => {
  let real: RealService;
  beforeAll(async () => {
    real = await RealService.start();
  });
  afterAll(() => real.stop());

  it("tells a person once of a run that happened while she was away, and the run is on both pages", async () => {
    const { baseUrl, client, project } = real;
    const { page } = await real.asOwner();
    await page.goto(`${baseUrl}/#/activity`);
    await page.getByText("Nothing happened yet.").waitFor();
    const fire = () => client.send("POST", `/v1/projects/${project}/triggers/on-push/fire`, {});
    await fire();
    const run = page.locator(".row", { hasText: "The trigger on-push started a session" });
    await run.waitFor();
    // She looked, and goes.
    await page.goto(`${baseUrl}/#/automations`);
    await page.locator(".row", { hasText: "Note each push" }).getByText("last", { exact: true }).waitFor();
    await fire();
    await page.goto(`${baseUrl}/#/activity`);
    await page.reload();
    await page.getByText(/^[1-9]\d* new since you last looked\.$/).waitFor();
    await page.reload();
    await page.getByText("Nothing new since you last looked.").waitFor();
    await run.first().waitFor();
  });
});
