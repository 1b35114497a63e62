import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import {
  FAILED_FIRE_ID,
  FIRED_ID,
  makeWorld,
  PROJECT_ID,
  QUEUED_ID,
  SESSION_ID,
} from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;
const FIRES = `${PROJECT}/fires`;
const API = `/v1/projects/${PROJECT_ID}/fires`;
const words = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

const REFUSED_SIGNATURE = [
  "Note each push",
  "webhook",
  "The signature does not match. Check that the sender uses the trigger's secret.",
  "event push",
  "delivery 8f0f2a10-cc79-11e3-8c11-4c9367dc0958",
  "7632 bytes",
  "from 192.0.2.7",
  "answered 401",
  "refused",
  "1 min ago",
];
const REFUSED_SLUG = [
  "on-pusch",
  "webhook",
  "platform.toml has no trigger with this slug.",
  "from 192.0.2.7",
  "answered 404",
  "refused",
  "1 min ago",
];

const title = hasChromium ? "runs and deliveries" : "runs and deliveries (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("are one list, newest first: their result, reason, time and cause", async () => {
    const { page, visit } = await start(world());
    await visit(PROJECT);
    await page.locator(".tabs").getByRole("link", { name: "Automations" }).click();
    await page.getByRole("link", { name: "Runs and deliveries" }).click();
    await page.locator(".rows").waitFor();
    const rows = await page.locator(".rows > li").allInnerTexts();
    expect(rows.map(words)).toEqual([
      [
        "Note each push",
        "by a webhook",
        "All sessions of the account were in use.",
        "queued",
        expect.stringMatching(/^\d+ s ago$/),
      ],
      REFUSED_SIGNATURE,
      REFUSED_SLUG,
      ["Note each push", "by a webhook", "started", "1 min ago", "Note the first push"],
      [
        "Note each push",
        "replay of an earlier run",
        "unknown_agent: the agent release-notes has no file at main",
        "3 attempts",
        "the earlier run",
        "failed",
        "1 h 6 min ago",
      ],
      [
        "Look back in the new year",
        "on its schedule",
        "The run was due while the service could not start it, and is now too old to catch up.",
        "skipped",
        "due 2 h 30 min ago",
      ],
      ["gone-by-now", "by hand, Mona", "started", "25 h ago", "its session"],
    ]);
    const link = (name: RegExp) => page.getByRole("link", { name }).first().getAttribute("href");
    expect(await link(/^Note each push, by a webhook, queued/)).toBe(`${FIRES}/${QUEUED_ID}`);
    expect(await link(/^Note the first push/)).toBe(`${PROJECT}/sessions/${SESSION_ID}`);
    expect(await link(/^the earlier run/)).toBe(`${FIRES}/${FIRED_ID}`);
  });

  it("is narrowed by status and by trigger, in its address, and keeps the focus", async () => {
    const { page, visit } = await start(world());
    await visit(FIRES);
    const [status, slug] = [page.getByLabel("State"), page.getByLabel("Trigger")];
    await page.locator(".rows").waitFor();
    expect(await slug.locator("option").allInnerTexts()).toEqual([
      "All",
      "Note each push",
      "Look back in the new year",
    ]);
    await status.focus();
    await status.selectOption({ label: "session started" });
    await expect.poll(() => page.locator(".row").count()).toBe(2);
    expect(await status.evaluate((select) => select.ownerDocument.activeElement === select)).toBe(true);
    await slug.selectOption("on-push");
    await expect.poll(() => page.locator(".row").count()).toBe(1);
    await page.getByRole("status").getByText("1 run", { exact: true }).waitFor();
    expect(new URL(page.url()).hash).toBe(`${FIRES}?status=fired&slug=on-push`);
    await status.selectOption("expired");
    await page.getByText("No runs match the filter.").waitFor();
    await page.getByRole("link", { name: "Show all runs and deliveries" }).click();
    await expect.poll(() => page.locator(".row").count()).toBe(7);
    expect([await status.inputValue(), await slug.inputValue()]).toEqual(["", ""]);
    await page.goBack();
    await page.getByText("No runs match the filter.").waitFor();
    expect([await status.inputValue(), await slug.inputValue()]).toEqual(["expired", "on-push"]);
    await page.goBack();
    await page.getByRole("heading", { name: "Home" }).waitFor();
  });

  it("has the refused deliveries alone by its filter, and at an older address", async () => {
    const { page, visit } = await start(world());
    await visit(`${PROJECT}/webhook-refusals`);
    await page.locator(".rows").waitFor();
    const rows = page.locator(".rows > li");
    expect((await rows.allInnerTexts()).map(words)).toEqual([REFUSED_SIGNATURE, REFUSED_SLUG]);
    expect(new URL(page.url()).hash).toBe(`${FIRES}?status=refused`);
    await page.getByLabel("Trigger").selectOption("on-push");
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByLabel("State").selectOption("");
    await expect
      .poll(async () => (await rows.allInnerTexts()).map((row) => words(row)[0]))
      .toEqual(["Note each push", "Note each push", "Note each push", "Note each push"]);
  });

  it("shows what became of a run's session, and finds failed ones by one filter", async () => {
    const all = world();
    const outcome = { state: "failed", code: "clone_failed" };
    const fires = all.fires.map((one) => (one["id"] === FIRED_ID ? { ...one, outcome } : one));
    const { page, visit } = await start({ ...all, fires });
    await visit(`${FIRES}?status=failed`);
    await page
      .getByRole("link", { name: /^Note each push, by a webhook, failed/ })
      .first()
      .waitFor();
    await expect.poll(() => page.locator(".row .badge").allInnerTexts()).toEqual(["failed", "failed"]);
    await page
      .locator(".row", { hasText: "The session failed: the repository could not be cloned." })
      .getByRole("link")
      .first()
      .click();
    await page.getByRole("heading", { name: "on-push failed" }).waitFor();
    await page.getByText("Failed with").waitFor();
  });

  it("takes its filter from the address, even for a trigger that left the manifest", async () => {
    const { page, visit } = await start(world());
    await visit(`${FIRES}?status=nonsense&slug=gone-by-now`);
    await page.locator(".row", { hasText: "gone-by-now" }).waitFor();
    expect(await page.locator(".row").count()).toBe(1);
    expect(await page.getByLabel("Trigger").inputValue()).toBe("gone-by-now");
    expect(await page.getByLabel("State").inputValue()).toBe("");
  });

  it("shows older fires on request, however many", async () => {
    const all = world();
    const fires = Array.from({ length: 260 }, (_, index) => ({
      ...all.fires[1],
      id: `01995e90-0000-7000-8000-${String(index).padStart(12, "0")}`,
      session_name: `number-${String(index)}-`,
    }));
    const { page, visit } = await start({ ...all, fires, refusals: [] });
    await visit(FIRES);
    const older = page.getByRole("button", { name: "Show older entries" });
    for (const count of [50, 100, 150, 200, 250]) {
      await expect.poll(() => page.locator(".row").count()).toBe(count);
      await older.click();
    }
    await page.getByText("number-259-").waitFor();
    expect(await older.count()).toBe(0);
  });

  it("is read again on each event of a fire", async () => {
    const { page, fake, visit } = await start(world());
    await visit(FIRES);
    await page.getByText("live", { exact: true }).waitFor();
    // A hidden page does not refresh by itself.
    await page.evaluate('Object.defineProperty(document, "visibilityState", { value: "hidden" })');
    const kinds = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"];
    for (const [index, event] of ["trigger.fired", ...kinds.map((kind) => `fire.${kind}`)].entries()) {
      fake.world.fires = [
        { ...fake.world.fires[0], session_id: SESSION_ID, session_name: `event-${String(index)}-` },
      ];
      fake.emit(event);
      await page.getByText(`event-${String(index)}-`).waitFor();
    }
  });

  describe("a fire", () => {
    it("shows its facts, the prompt, and its request", async () => {
      const { page, visit } = await start(world());
      await visit(FIRES);
      await page.getByRole("link", { name: /^Note each push, by a webhook, started/ }).click();
      await page.getByRole("heading", { name: "Request" }).waitFor();
      const facts = await page
        .getByRole("region", { name: "Details" })
        .locator(".facts > div")
        .allInnerTexts();
      expect(facts.map((fact) => words(fact))).toEqual([
        ["Trigger", "on-push · its runs"],
        ["Started", "by a webhook"],
        ["Received", expect.stringMatching(/^\d+ \w+ \d+, [\d:]+$/)],
        ["Session", "Note the first push"],
        ["Attempts", "1"],
        ["Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"],
      ]);
      expect(await page.getByLabel("Prompt", { exact: true }).innerText()).toContain("Pushed by: Codertocat");
      const request = await page.getByRole("region", { name: "Request" }).innerText();
      expect(request).toContain("GitHub-Hookshot/044aadd");
      expect(request).toContain('"head_commit": {\n    "id": "6113728",');
      expect(request).toContain('"commits": []\n}');
      expect(await page.title()).toMatch(/^(?:\(1\) )?Run of on-push · started · Platform$/);
    });

    it("shows when a schedule was due, and no request for a schedule", async () => {
      const { page, visit } = await start(world());
      await visit(FIRES);
      await page.getByRole("link", { name: /^Look back in the new year/ }).click();
      await page.getByText("No prompt is stored for this run.").waitFor();
      const text = await page.locator("main").innerText();
      expect(text).toMatch(/Due\s+\d+ \w+ \d+/);
      expect(text).toContain("missed");
      expect(text).not.toContain("Request");
      expect(await page.getByRole("button", { name: "Replay" }).isEnabled()).toBe(true);
    });

    it.each([
      ['{"id": 12345678901234567890, "id": 1}', "utf8", '{\n  "id": 12345678901234567890,\n  "id": 1\n}'],
      [
        '\ufeff[{},{"a":[]}, "{\\"b\\":[1,2]}"]',
        "utf8",
        '[\n  {},\n  {\n    "a": []\n  },\n  "{\\"b\\":[1,2]}"\n]',
      ],
      ["a=1&b=2", "utf8", "a=1&b=2"],
      ["[".repeat(90) + "]".repeat(90), "utf8", "[".repeat(90) + "]".repeat(90)],
      ["/9j/4AAQ", "base64", "/9j/4AAQ"],
    ])("shows a body as it was sent, and JSON on separate lines: %s", async (body, encoding, shown) => {
      const all = world();
      const headers = { content_type: null, user_agent: null, forwarded_for: null };
      const fires = [{ ...all.fires[1], request: { headers, body, encoding } }];
      const { page, visit } = await start({ ...all, fires });
      await visit(`${FIRES}/${FIRED_ID}`);
      expect(await page.getByLabel("Body").innerText()).toBe(shown);
      expect(await page.getByText("The body is not text.").count()).toBe(encoding === "base64" ? 1 : 0);
    });

    it("cuts a body that a browser could not show, and reports an empty one", async () => {
      const all = world();
      const bodyOf = (body: string) => [
        { ...all.fires[1], request: { headers: {}, body, encoding: "utf8" } },
      ];
      const { page, fake, visit } = await start({ ...all, fires: bodyOf(`"${"x".repeat(300_000)}"`) });
      await visit(`${FIRES}/${FIRED_ID}`);
      await page.getByText("37858 more characters are not shown.").waitFor();
      expect(await page.getByLabel("Body").innerText()).toHaveLength(256 * 1024);
      expect(await page.getByRole("button", { name: "Preview" }).count()).toBe(0);
      fake.world.fires = bodyOf("");
      fake.emit("fire.fired");
      await page.getByText("The body is empty.").waitFor();
    });

    it("says that a replay waits, or why it is impossible", async () => {
      const { page, fake, visit } = await start({
        ...world(),
        replay: { status: "queued", reason: "account_session_cap" },
      });
      await visit(`${FIRES}/${FIRED_ID}`);
      const replay = async () => {
        await page.locator("main").getByRole("button", { name: "Replay" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
      };
      await replay();
      await page.getByText("The replay waits for a free session.").waitFor();
      fake.world.refused = { status: 409, code: "request_not_stored", error: "Its request is gone." };
      await replay();
      await page.getByRole("status").getByText("Its request is gone.").waitFor();
    });

    it("cannot be replayed if the webhook's request is not stored, and says so", async () => {
      const { page, visit } = await start(world());
      await visit(`${FIRES}/${FAILED_FIRE_ID}`);
      const replay = page.getByRole("button", { name: "Replay" });
      expect(await replay.isDisabled()).toBe(true);
      const reason = page.locator(`#${String(await replay.getAttribute("aria-describedby"))}`);
      expect(await reason.innerText()).toBe("This run cannot be replayed because its request is not stored.");
      expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
      expect(await page.getByRole("button", { name: "Preview" }).count()).toBe(0);
      await page.getByText("The request is not stored.").waitFor();
    });

    it("that waits is cancelled after a question", async () => {
      const { page, fake, visit } = await start(world());
      await visit(`${FIRES}/${QUEUED_ID}`);
      await page.getByText("Waits for a free session.").waitFor();
      await page.locator("main").getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
      await page.locator("h2 .badge", { hasText: "cancelled" }).waitFor();
      expect(fake.writes).toEqual([`DELETE ${API}/${QUEUED_ID} `]);
      expect(await page.locator("main").getByRole("button", { name: "Cancel" }).count()).toBe(0);
      // The button is gone, and the reader is still on the page.
      expect(await page.locator(":focus").getAttribute("id")).toBe("main");
    });
  });
});
