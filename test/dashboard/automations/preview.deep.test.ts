import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { FIRED_ID, makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const TRIGGERS = `#/projects/${PROJECT_ID}/triggers`;
const written = (slug: string, request: unknown) =>
  `POST /v1/projects/${PROJECT_ID}/triggers/${slug}/preview ${JSON.stringify(request)}`;

const title = hasChromium ? "a preview" : "a preview (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();
  /** Opens the dialog of a trigger. */
  const preview = async (name: string) => {
    const opened = await start(world());
    await opened.visit(TRIGGERS);
    await opened.page.getByRole("button", { name: `Preview: ${name}` }).click();
    const dialog = opened.page.getByRole("dialog");
    return { ...opened, dialog, render: dialog.getByRole("button", { name: "Preview" }) };
  };

  it("shows the prompt and the variables of a webhook with this body and these headers, and starts nothing", async () => {
    const { dialog, render, fake } = await preview("Note each push");
    await dialog.getByLabel("Body (JSON)").fill('{"pusher": {"name": "Mona"}}');
    await dialog.getByText("Headers").click();
    await dialog.getByLabel("User-Agent").fill("GitHub-Hookshot/044aadd");
    await render.click();
    await dialog.getByRole("status").getByText("51 characters. No session was started.").waitFor();
    expect(await dialog.locator("pre").first().innerText()).toBe(
      "Write a note about the push below.\n\nPushed by: Mona",
    );
    await dialog.getByText("Variables").click();
    expect(await dialog.locator("details pre").innerText()).toContain('"pusher": {\n      "name": "Mona"');
    expect(fake.writes).toEqual([
      written("on-push", {
        kind: "webhook",
        body: { pusher: { name: "Mona" } },
        headers: { "user-agent": "GitHub-Hookshot/044aadd" },
      }),
    ]);
  });

  it("explains a body that is not JSON, and sends no request", async () => {
    const { dialog, render, fake } = await preview("Note each push");
    await dialog.getByLabel("Body (JSON)").fill('{"pusher": Mona}');
    await render.click();
    await dialog.getByRole("alert").getByText("The body is not valid JSON:").waitFor();
    expect(fake.writes).toEqual([]);
    await dialog.getByLabel("Body (JSON)").fill("[]");
    await render.click();
    await dialog.getByText("No session was started.").waitFor();
    expect(await dialog.getByText("The body is not valid JSON:").count()).toBe(0);
  });

  it("shows the answer to the newest press, whichever arrives last", async () => {
    const { dialog, render, page, fake } = await preview("Note each push");
    const held = Promise.withResolvers<() => Promise<void>>();
    // The first answer stays away until the second is shown.
    await page.route(
      "**/preview",
      async (route) => {
        const response = await route.fetch();
        held.resolve(() => route.fulfill({ response }));
      },
      { times: 1 },
    );
    fake.world.preview = { prompt: "the older", variables: {} };
    await render.click();
    const release = await held.promise;
    fake.world.preview = { prompt: "the newer", variables: {} };
    await render.click();
    await dialog.getByText("the newer").waitFor();
    const late = page.waitForResponse("**/preview");
    await release();
    await (await late).finished();
    await page.evaluate("new Promise((done) => setTimeout(done))");
    expect(await dialog.locator("pre").first().innerText()).toBe("the newer");
  });

  it("says why it was refused, and clears the previous prompt", async () => {
    const { dialog, render, fake, page } = await preview("Note each push");
    await render.click();
    await dialog.locator("pre").first().waitFor();
    fake.world.refused = {
      status: 500,
      code: "prompt_too_large",
      error: "The rendered prompt is larger than 98304 bytes.",
    };
    await render.click();
    await dialog.getByRole("alert").getByText("larger than 98304 bytes").waitFor();
    expect(await dialog.locator("pre").count()).toBe(0);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Preview: Note each push");
  });

  it("shows a fire by hand, by keyboard alone", async () => {
    const { dialog, fake, page } = await preview("Note each push");
    await dialog.getByLabel("webhook").focus();
    await page.keyboard.press("ArrowRight");
    expect(await dialog.getByLabel("Body (JSON)").isVisible()).toBe(false);
    await page.keyboard.press("Tab");
    await page.keyboard.type("look at the docs");
    await page.keyboard.press("Tab");
    await page.keyboard.type("desk");
    await page.keyboard.press("Enter");
    await dialog.getByText("No session was started.").waitFor();
    expect(fake.writes).toEqual([
      written("on-push", { kind: "manual", text: "look at the docs", source: "desk" }),
    ]);
  });

  it("shows a schedule at its next due instant, or now", async () => {
    const { dialog, render, fake } = await preview("Look back in the new year");
    expect(await dialog.getByRole("radio").count()).toBe(2);
    expect(await dialog.getByLabel("Due").locator("option").count()).toBe(6);
    await render.click();
    await dialog.getByText("No session was started.").waitFor();
    await dialog.getByLabel("Due").selectOption("now");
    await render.click();
    await expect.poll(() => fake.writes).toHaveLength(2);
    const triggers = fake.world.listing["triggers"] as { upcoming: string[] }[];
    expect(fake.writes).toEqual([
      written("new-year", { kind: "cron", at: triggers[1]?.upcoming[0] }),
      written("new-year", { kind: "cron" }),
    ]);
  });

  it.each([
    [
      '{"a": 1}',
      "application/json",
      { kind: "webhook", body: { a: 1 }, headers: { "content-type": "application/json" } },
    ],
    [
      "a=1",
      "text/plain",
      { kind: "webhook", body: { raw: "a=1" }, headers: { "content-type": "text/plain" } },
    ],
    ["", null, { kind: "webhook", body: {} }],
  ])("begins with a stored request as the receiver reads it: %o", async (body, contentType, request) => {
    const { page, visit, fake } = await start(world());
    fake.world.fires = fake.world.fires.map((fire) => ({
      ...fire,
      request: {
        headers: { content_type: contentType, user_agent: null, forwarded_for: null },
        body,
        encoding: "utf8",
      },
    }));
    await visit(`#/projects/${PROJECT_ID}/fires/${FIRED_ID}`);
    await page.locator("main").getByRole("button", { name: "Preview" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("No session was started.").waitFor();
    expect(fake.writes).toEqual([written("on-push", request)]);
  });
});
