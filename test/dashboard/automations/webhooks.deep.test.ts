import { describe, expect, it, vi } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { FIRED_ID, makeWorld, PROJECT_ID } from "../samples/sample-project.ts";
import { TEST_MS } from "../../support/patience.ts";

// Real programs on a busy machine: a limit that ends a hung test.
vi.setConfig({ testTimeout: TEST_MS, hookTimeout: TEST_MS });

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;
const TRIGGERS = `${PROJECT}/triggers`;
const SECRET = "GITHUB_WEBHOOK_SECRET";
const PUT = `PUT /v1/projects/${PROJECT_ID}/secrets/${SECRET}`;

const title = hasChromium ? "webhooks on the page" : "webhooks on the page (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("of a paused project are reported as refused, beside its triggers and its refusals", async () => {
    const { page, visit, fake } = await start(world());
    fake.world.projects = [{ ...fake.world.projects[0], triggers_paused: true }];
    fake.world.listing = { ...fake.world.listing, triggers_paused: true };
    fake.world.refusals = [];
    await visit(TRIGGERS);
    await page.getByText("Webhook deliveries get a 404 response.").waitFor();
    await page.getByRole("link", { name: "Show refused deliveries" }).click();
    await page.getByText("No refused deliveries.").waitFor();
    await page.getByText("All triggers of this project are paused.").waitFor();
  });

  it("show their trigger's filter", async () => {
    const { page, visit, fake } = await start(world());
    const [webhook] = fake.world.listing["triggers"] as Record<string, unknown>[];
    const filter = {
      events: ["push", "pull_request.opened"],
      branches: ["main"],
      if: { "body.forced": false },
      deletions: false,
      own_pushes: true,
      own_requests: false,
      own_comments: false,
    };
    fake.world.listing = { ...fake.world.listing, triggers: [{ ...webhook, filter }] };
    await visit(TRIGGERS);
    const only = page.locator(".facts > div", { has: page.getByText("Filter", { exact: true }) });
    await only.waitFor();
    expect(await only.locator("li").allInnerTexts()).toEqual([
      "event push, pull_request.opened",
      "branch main",
      "body.forced = false",
      "also pushes to sessions' branches, and their checks",
    ]);
  });

  it("that a filter rejected, or that verified with a previous value, say so in the ledger", async () => {
    const { page, visit, fake } = await start(world());
    const fired = fake.world.fires.find(({ id }) => id === FIRED_ID);
    const now = { status: "skipped", reason: "filtered", session_id: null, verified_with: "previous" };
    fake.world.fires = [{ ...fired, ...now }];
    await visit(`${PROJECT}/fires/${FIRED_ID}`);
    await page.getByText("The delivery does not match the trigger's filter.").waitFor();
    await page.getByText("the previous value of the secret").waitFor();
  });

  it("are previewed as forms and as events, with their expected result", async () => {
    const { page, visit, fake } = await start(world());
    fake.world.preview = { ...fake.world.preview, outcome: "filtered" };
    await visit(TRIGGERS);
    await page.getByRole("button", { name: "Preview: Note each push" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Headers").click();
    await dialog.getByLabel("X-GitHub-Event").fill("create");
    await dialog.getByLabel("Content-Type").fill("application/x-www-form-urlencoded");
    await dialog.getByLabel("Body (JSON)").fill("payload=%7B%7D");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("The delivery does not match the trigger's filter.").waitFor();
    const headers = { "x-github-event": "create", "content-type": "application/x-www-form-urlencoded" };
    expect(fake.writes).toEqual([
      `POST /v1/projects/${PROJECT_ID}/triggers/on-push/preview ${JSON.stringify({ kind: "webhook", body: "payload=%7B%7D", headers })}`,
    ]);
  });

  it("get another secret, while the previous one stays valid for some hours", async () => {
    const { page, visit, fake } = await start(world());
    fake.world.secrets = [SECRET];
    fake.world.previousValidUntil = "2126-11-21T08:00:00.000Z";
    await visit(TRIGGERS);
    await page.getByRole("button", { name: `Replace the secret ${SECRET}` }).click();
    const dialog = page.getByRole("dialog");
    const masked = () =>
      dialog
        .getByLabel("New value")
        .evaluate((area) =>
          area.ownerDocument.defaultView?.getComputedStyle(area).getPropertyValue("-webkit-text-security"),
        );
    expect(await masked()).toBe("disc");
    await dialog.getByLabel("Show").check();
    expect(await masked()).toBe("none");
    await dialog.getByLabel("New value").fill(" kept as typed ");
    await dialog.getByLabel("Hours").fill("24");
    await dialog.getByRole("button", { name: "Replace" }).click();
    await page.getByText("The previous value stays valid until 21 Nov 2126, 08:00:00.").waitFor();
    expect(fake.writes).toEqual([
      `${PUT} {"value":" kept as typed ","previous_valid_ms":86400000,"service":true,"try":true}`,
    ]);
  });

  it("get their first secret without a question about the previous one", async () => {
    const { page, visit, fake } = await start(world());
    await visit(TRIGGERS);
    await page.getByRole("button", { name: `Set the secret ${SECRET}` }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Hours").count()).toBe(0);
    await dialog.getByLabel("New value").fill("first");
    await page.keyboard.press("Control+Enter");
    await page.getByText(`${SECRET} is set.`).waitFor();
    expect(fake.writes).toEqual([`${PUT} {"value":"first","previous_valid_ms":0,"service":true,"try":true}`]);
  });
});
