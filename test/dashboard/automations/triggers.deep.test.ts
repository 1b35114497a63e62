import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, QUEUED_ID } from "../samples/sample-project.ts";

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
      " s ago",
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

  it("show the next five instants of a schedule, in its time zone and in the reader's", async () => {
    const { page, visit, fake } = await start(world());
    const cron = (fake.world.listing["triggers"] as Record<string, unknown>[])[1];
    fake.world.listing = {
      ...fake.world.listing,
      triggers: [
        {
          ...cron,
          cron: "0 0 9 21-25 11 *",
          next_fire_at: "2126-11-21T08:00:00.000Z",
          upcoming: [21, 22, 23, 24, 25].map((day) => `2126-11-${String(day)}T08:00:00.000Z`),
        },
      ],
    };
    await visit(TRIGGERS);
    const rows = page.locator(".instants tbody tr");
    await rows.first().waitFor();
    const cells = (await rows.allInnerTexts()).map((row) => row.split("\t").slice(0, 2));
    expect(await page.locator(".instants th").allInnerTexts()).toEqual([
      "Europe/Berlin",
      "UTC (you)",
      "From now",
    ]);
    expect(cells).toEqual(
      [21, 22, 23, 24, 25].map((day) => [
        expect.stringMatching(new RegExp(`${String(day)} Nov 2126, 0?9:00:00$`)),
        expect.stringMatching(new RegExp(`${String(day)} Nov 2126, 0?8:00:00$`)),
      ]),
    );
  });

  it.each([
    [{ enabled: false }, false, "paused"],
    [{ enabled: true }, true, "all triggers are paused"],
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
    expect(await card.getByRole("link", { name: / ago$/ }).getAttribute("href")).toBe(
      `${PROJECT}/fires/${QUEUED_ID}`,
    );
    expect(await card.locator(".badge").innerText()).toBe("queued");
    const idle = page.locator(".card", { hasText: "Look back in the new year" });
    await idle.getByText("never", { exact: true }).waitFor();
    await page.getByRole("link", { name: "All runs of Look back in the new year" }).click();
    await page.locator(".row", { hasText: "Look back in the new year" }).waitFor();
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
    await page.getByRole("dialog").getByText("All 50 sessions of the account are in use.").waitFor();
    expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/triggers/on-push/fire {}`]);
  });

  it("say how a sender is set up, with a secret that the browser makes and shows once", async () => {
    const { page, fake, visit } = await start(world());
    await visit(TRIGGERS);
    const card = page.locator(".card", { hasText: "on-push" });
    await card.locator("summary", { hasText: "Set up a sender" }).click();
    await card.getByText("only reachable from this machine").waitFor();
    await card.locator("summary", { hasText: "GitLab" }).click();
    await card.getByText("A webhook of GitLab does not work with this address").waitFor();
    await card.getByRole("button", { name: "Create a new value: GITHUB_WEBHOOK_SECRET" }).click();
    const value = await page.getByRole("dialog").locator("code").innerText();
    expect(value).toMatch(/^[0-9a-f]{64}$/);
    await page.getByRole("button", { name: "Done" }).click();
    // The browser reports the end of a dialog a moment later, and then the page takes the secret out.
    await expect.poll(() => page.content()).not.toContain(value);
    fake.world.secrets = ["GITHUB_WEBHOOK_SECRET"];
    await page.reload();
    await card.locator("summary", { hasText: "Set up a sender" }).click();
    await card.getByRole("button", { name: "Create a new value:" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create a new value" }).click();
    await page.getByRole("dialog").getByText("It is not shown again.").waitFor();
    expect(fake.writes).toEqual([
      `PUT /v1/projects/${PROJECT_ID}/secrets/GITHUB_WEBHOOK_SECRET {"value":"${value}","service":true}`,
      expect.stringMatching(/ \{"value":"[0-9a-f]{64}","service":true,"previous_valid_ms":86400000\}$/),
    ]);
  });

  it("are previewed with a past delivery, or with a pasted one where it is not stored", async () => {
    const all = world();
    const one = all.fires.find(({ kind }) => kind === "webhook");
    const stored = {
      ...one,
      trigger_slug: "on-push",
      delivery_id: "<img src=x>",
      request: { headers: { user_agent: "Hook/1" }, body: '{"ref":"refs/heads/<b>"}', encoding: "utf8" },
    };
    const lost = {
      ...stored,
      id: "0199aaaa-0000-7000-8000-00000000beef",
      delivery_id: "lost",
      request: null,
    };
    const { page, fake, visit } = await start({ ...all, fires: [stored, lost] });
    await visit(TRIGGERS);
    await page.getByRole("button", { name: "Preview: Note each push" }).click();
    const choice = page.getByLabel("Past delivery");
    await choice.waitFor();
    const [, first = "", second = ""] = await choice.locator("option").allInnerTexts();
    expect([first, second]).toEqual([
      expect.stringContaining("<img src=x>"),
      expect.stringContaining("lost"),
    ]);
    await choice.selectOption({ label: first });
    await page.getByText("The body and three headers are stored").waitFor();
    expect(await page.getByLabel("Body (JSON)").inputValue()).toBe('{\n  "ref": "refs/heads/<b>"\n}');
    await choice.selectOption({ label: second });
    await page.getByText("This request is not stored.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Preview" }).click();
    await page.getByRole("dialog").getByText("No session was started.").waitFor();
    expect(fake.writes.at(-1)).toContain('"body":{"ref":"refs/heads/<b>"},"headers":{"user-agent":"Hook/1"}');
  });

  it("of an archived project have no next run and no button to run them, and no form adds another", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.projects = [{ ...fake.world.projects[0], status: "archived" }];
    await visit(TRIGGERS);
    await page.getByText("This project is archived: it starts no sessions").waitFor();
    await page.getByText("none: the project is archived").first().waitFor();
    expect(await page.locator(".instants").count()).toBe(0);
    for (const name of [/^Run now/, /^Pause all/, /^Resume all/])
      expect(await page.getByRole("button", { name }).count()).toBe(0);
    expect(await page.getByLabel(/^Actions for/).count()).toBe(0);
    for (const form of ["/new", "/triggers/new"]) {
      await visit(PROJECT + form);
      await page.getByRole("heading", { name: form === "/new" ? "New session" : "New trigger" }).waitFor();
      expect(await page.locator("form").count()).toBe(0);
      await page.getByRole("link", { name: "Reactivate it in the settings" }).waitFor();
    }
  });

  it("are paused, resumed and deleted one by one, merged at once", async () => {
    const { page, fake, visit } = await start(world());
    await visit(TRIGGERS);
    const choose = async (what: string, name: string) => {
      await page.getByLabel(`Actions for ${name}`).click();
      await page.getByRole("button", { name: `${what}: ${name}` }).click();
    };
    await choose("Pause", "Note each push");
    await page.getByText('"Note each push" is paused.').waitFor();
    const [first, ...others] = fake.world.listing["triggers"] as Record<string, unknown>[];
    fake.world.listing = { ...fake.world.listing, triggers: [{ ...first, enabled: false }, ...others] };
    await page.reload();
    await choose("Resume", "Note each push");
    await page.getByText('"Note each push" is on.').waitFor();
    fake.world.proposal = { number: 8, status: "open" };
    await choose("Delete", "nightly");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText('Change request #8 is open. Once it is merged, "nightly" is deleted.').waitFor();
    expect(await page.getByRole("link", { name: "Open #8" }).getAttribute("href")).toBe(
      `${PROJECT}/change-requests/8`,
    );
    const path = `POST /v1/projects/${PROJECT_ID}/triggers`;
    expect(fake.writes).toEqual([
      `${path}/on-push/proposals {"action":"pause","merge":true}`,
      `${path}/on-push/proposals {"action":"resume","merge":true}`,
      `${path}/nightly/proposals {"action":"delete","merge":true}`,
    ]);
  });

  it("begin with a template or with nothing, and keep what is typed across a reload", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.draft = { ...fake.world.draft, lines: '[[triggers]]\nslug = "<script>"\n' };
    await visit(TRIGGERS);
    await page.getByRole("link", { name: "Add a trigger" }).click();
    await page.getByRole("link", { name: "Weekly report" }).click();
    await page.getByText('slug = "<script>"').waitFor();
    expect(await page.getByLabel("Slug").inputValue()).toBe("weekly-report");
    expect(await page.getByLabel("At", { exact: true }).inputValue()).toBe("09:00");
    await page.getByLabel("Slug").fill("friday");
    await page.getByLabel("Friday").check();
    await page.reload();
    await expect.poll(() => page.getByLabel("Slug").inputValue()).toBe("friday");
    await page.getByRole("link", { name: "Begin with something else" }).click();
    await page.getByRole("link", { name: "On a webhook" }).click();
    await page.getByLabel("Events").waitFor();
    expect(await page.getByLabel("Slug").inputValue()).toBe("");
    await visit(`${TRIGGERS}/new?from=weekly-report`);
    await page.getByRole("button", { name: "Save and merge" }).click();
    await page.getByText('"Weekly report" is on.').waitFor();
    await page.getByRole("heading", { name: "Note each push" }).waitFor();
    const wish = JSON.parse(
      (fake.writes.findLast((write) => write.includes("/proposals")) ?? "").replace(/^[^{]*/, ""),
    );
    expect(wish).toMatchObject({ type: "cron", slug: "friday", cron: "0 0 9 * * 1,5", merge: true });
    await visit(`${TRIGGERS}/new?from=weekly-report`);
    await page.getByLabel("Slug").waitFor();
    expect(await page.getByLabel("Slug").inputValue()).toBe("weekly-report");
  });

  it("are added by a form that reads the schedule while it is typed, as a change request if that is wished", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${TRIGGERS}/new?from=cron`);
    await page.getByText("They appear here when the schedule can be read.").waitFor();
    fake.world.draft = {
      ...fake.world.draft,
      issues: [
        { path: "cron", message: "<b>five</b> fields" },
        { path: "prompt", message: "prompt is required." },
      ],
    };
    await page.getByLabel("Repeat").selectOption("As a cron line");
    expect(await page.getByLabel("Schedule").inputValue()).toBe("0 0 9 * * *");
    await page.getByLabel("Schedule").fill("0 0 2 * *");
    await page.getByText("<b>five</b> fields").waitFor();
    expect(await page.getByText("prompt is required.").count()).toBe(0);
    fake.world.draft = { ...fake.world.draft, upcoming: ["2126-11-21T08:00:00.000Z"], issues: [] };
    fake.world.proposal = { number: 7, status: "open" };
    await page.getByLabel("Slug").fill("nightly");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByLabel("Prompt").fill("Update.\nTest.");
    await page.locator(".instants", { hasText: "Europe/Berlin" }).waitFor();
    await page.getByRole("button", { name: "Open a change request" }).click();
    await page.getByRole("heading", { name: "Note the first push" }).waitFor();
    expect(fake.writes.filter((write) => write.includes("/proposals"))).toEqual([
      `POST /v1/projects/${PROJECT_ID}/triggers/proposals ${JSON.stringify({
        type: "cron",
        slug: "nightly",
        prompt: "Update.\nTest.",
        cron: "0 0 2 * *",
        timezone: "Europe/Berlin",
      })}`,
    ]);
  });

  it("of a webhook are added with a secret that is made in the form, and the sender's steps", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.draft = { ...fake.world.draft, webhook_url: "https://agents.example.org/v1/webhooks/x" };
    await visit(`${TRIGGERS}/new?from=triage-issue`);
    await page.getByRole("button", { name: "Create a new value: WEBHOOK_SECRET_TRIAGE_ISSUE" }).click();
    await page.getByRole("dialog").getByText("It is not shown again.").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    expect(fake.writes.filter((write) => write.startsWith("PUT"))).toEqual([
      expect.stringMatching(/WEBHOOK_SECRET_TRIAGE_ISSUE \{"value":"[0-9a-f]{64}","service":true\}$/),
    ]);
    await page.locator("summary", { hasText: "Set up a sender" }).click();
    await page.locator("summary", { hasText: "GitHub" }).click();
    await page.getByText("https://agents.example.org/v1/webhooks/x").first().waitFor();
    fake.world.refused = { status: 409, code: "manifest_not_extended", error: "line 3 <i>" };
    await page.getByRole("button", { name: "Save and merge" }).click();
    await page.getByRole("alert").getByText("line 3 <i>").waitFor();
    expect(await page.getByLabel("Slug").inputValue()).toBe("triage-issue");
  });

  it("are edited with what they say, under their slug", async () => {
    const { page, fake, visit } = await start(world());
    await visit(TRIGGERS);
    await page.getByRole("link", { name: "Edit: Note each push" }).click();
    await page.getByRole("heading", { name: "Edit Note each push" }).waitFor();
    expect(await page.getByLabel("Slug").count()).toBe(0);
    await page.getByLabel("Branches").fill("main");
    await page.getByLabel("Conditions").fill("body.forced = false");
    await page.getByRole("button", { name: "Save and merge" }).click();
    await page.getByText('"Note each push" is changed.').waitFor();
    const write = fake.writes.findLast((one) => one.includes("/proposals")) ?? "";
    expect(JSON.parse(write.slice(write.indexOf("{")))).toMatchObject({
      type: "webhook",
      slug: "on-push",
      name: "Note each push",
      agent: "release-notes",
      secret_env: "GITHUB_WEBHOOK_SECRET",
      branches: ["main"],
      if: { "body.forced": false },
      replaces: "on-push",
      merge: true,
    });
  });
});
