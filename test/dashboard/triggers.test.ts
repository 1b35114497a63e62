import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { makeWorld, PROJECT_ID, QUEUED_ID } from "./sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;
const TRIGGERS = `${PROJECT}/triggers`;

const title = hasChromium ? "a project's triggers" : "a project's triggers (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("are shown with their requirements, their last fires, and their invalid entries", async () => {
    const { page, visit } = await start(world());
    await visit(TRIGGERS);
    await page.getByRole("heading", { name: "platform.toml has 1 error" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const part of [
      "a cron expression has six fields",
      "line 31",
      "1 min ago",
      "Europe/Berlin",
      "no value",
      `/v1/webhooks/projects/${PROJECT_ID}/on-push`,
    ]) {
      expect(text).toContain(part);
    }
    for (const callout of ["All triggers", "syntax error", "scheduler is behind"]) {
      expect(text).not.toContain(callout);
    }
  });

  it("are shown with a warning about a secret that is not masked in logs", async () => {
    const { page, visit, fake } = await start(world());
    fake.world.secrets = ["GITHUB_WEBHOOK_SECRET"];
    await visit(TRIGGERS);
    await page.getByText("GITHUB_WEBHOOK_SECRET").first().waitFor();
    expect(await page.locator("main").innerText()).not.toContain("not masked");
    fake.world.shortSecrets = ["GITHUB_WEBHOOK_SECRET"];
    await page.reload();
    await page.getByText("not masked in logs").first().waitFor();
    expect(await page.locator("main").innerText()).toContain(
      "The value is shorter than 6 bytes. Set a longer one.",
    );
  });

  it("show the next five instants of a schedule, in the reader's time zone", async () => {
    const { page, visit, fake } = await start(world());
    const cron = (fake.world.listing["triggers"] as Record<string, unknown>[])[1];
    fake.world.listing = {
      ...fake.world.listing,
      triggers: [
        {
          ...cron,
          next_fire_at: "2126-11-21T08:00:00.000Z",
          upcoming: [21, 22, 23, 24, 25].map((day) => `2126-11-${String(day)}T08:00:00.000Z`),
        },
      ],
    };
    await visit(TRIGGERS);
    await page.getByText("Times are in your time zone, UTC.").waitFor();
    const shown = await page.locator("ol.plain li").allInnerTexts();
    expect(shown.map((line) => line.replace(/ in \d+ days$/, ""))).toEqual(
      [21, 22, 23, 24, 25].map((day) => `${String(day)} Nov 2126, 08:00:00`),
    );
  });

  it.each([
    [{ enabled: false }, false, "disabled"],
    [{ enabled: true }, true, "paused"],
    [{ enabled: true }, false, "never"],
  ])("say why a schedule has no next instant: %o, paused %s", async (state, isPaused, word) => {
    const { page, visit, fake } = await start(world());
    const cron = (fake.world.listing["triggers"] as Record<string, unknown>[])[1];
    fake.world.projects = [{ ...fake.world.projects[0], triggers_paused: isPaused }];
    fake.world.listing = {
      ...fake.world.listing,
      triggers_paused: isPaused,
      triggers: [
        { ...cron, ...state, last_fired_at: "2026-01-01T00:00:00.000Z", next_fire_at: null, upcoming: [] },
      ],
    };
    await visit(TRIGGERS);
    const next = page.locator(".facts > div", { has: page.getByText("Next run", { exact: true }) });
    expect(await next.locator("dd").innerText()).toBe(word);
  });

  it("say when they are paused, when the manifest does not parse, and when the scheduler is late", async () => {
    const { page, visit, fake } = await start(world());
    fake.world.listing = {
      ...fake.world.listing,
      errors: [
        { slug: null, index: null, path: null, message: "expected a key", line: 4 },
        { slug: null, index: 2, path: "slug", message: "a slug has no capital letters", line: null },
      ],
      manifest: { commit: "6113728f27ae82c7", synced_at: null, stale: true },
      warnings: [
        {
          code: "secret_missing",
          message: "The secret NEEDED has no value. Run `platform secrets set NEEDED`.",
        },
      ],
      triggers_paused: true,
      scheduler: { ticked_at: null, late: true },
    };
    await visit(TRIGGERS);
    await page.getByRole("heading", { name: "platform.toml has 2 errors" }).waitFor();
    expect(await page.locator(".callout li").allInnerTexts()).toEqual([
      "platform.toml line 4: expected a key",
      "entry 3 slug: a slug has no capital letters",
    ]);
    await page.getByText("The triggers of its last valid version stay active.").waitFor();
    await page.getByText("All triggers of this project are paused.").waitFor();
    await page.getByText("The scheduler is behind").waitFor();
    const missing = page.locator(".callout", { hasText: "The secret NEEDED has no value." });
    expect(await missing.locator("code").innerText()).toBe("platform secrets set NEEDED");
    expect(await missing.innerText()).not.toContain("`");
    expect(await missing.locator(".tag").innerText()).toBe("secret missing");
  });

  it("lead to their fires, and to the newest one", async () => {
    const { page, visit } = await start(world());
    await visit(TRIGGERS);
    const card = page.locator(".card", { hasText: "Note each push" });
    expect(await card.getByRole("link", { name: / s ago$/ }).getAttribute("href")).toBe(
      `${PROJECT}/fires/${QUEUED_ID}`,
    );
    expect(await card.locator(".badge").innerText()).toBe("queued");
    await page.getByRole("link", { name: "All runs of Look back in the new year" }).click();
    await page.locator(".row", { hasText: "new-year" }).waitFor();
    expect(await page.locator(".row").count()).toBe(1);
  });

  it("are fired by keyboard, with a message and a source, and lead to the session", async () => {
    const { page, fake, visit } = await start(world());
    await visit(TRIGGERS);
    await page.getByRole("button", { name: "Run now: Note each push" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Message").fill("by hand");
    await page.keyboard.press("Tab");
    await page.keyboard.type("the release desk");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText('"Note each push" started a session.').waitFor();
    expect(fake.writes).toEqual([
      `POST /v1/projects/${PROJECT_ID}/triggers/on-push/fire {"text":"by hand","source":"the release desk"}`,
    ]);
    const link = page.getByRole("link", { name: /^Open the/ });
    expect(await link.getAttribute("href")).toContain("/sessions/0199aaaa-");
  });

  it("are also fired without a message, and say at the cap why they were not", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.refused = {
      status: 429,
      code: "session_cap_reached",
      error: "All 50 sessions of the account are in use.",
    };
    await visit(TRIGGERS);
    await page.getByRole("button", { name: "Run now: Note each push" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
    await page.getByRole("status").getByText("All 50 sessions of the account are in use.").waitFor();
    expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/triggers/on-push/fire {}`]);
  });
});
