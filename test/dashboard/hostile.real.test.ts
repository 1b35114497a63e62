import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "./browser.ts";
import { RECEIVER_ID } from "./fakes/fake-receivers.ts";
import type { World } from "./fakes/fake-service.ts";
import { conversationOf, sampleItem, text } from "./samples/sample-conversation.ts";
import { BUILD_ID, FAILED_BUILD_ID } from "./samples/sample-environment.ts";
import { FIRED_ID, makeWorld, PROJECT_ID, QUEUED_ID, SESSION_ID } from "./samples/sample-project.ts";
import { deepTest, onlyDeep, sampled } from "../support/vitest/rings.ts";

const CANARY = `"'><img src=x onerror="pwned=1"><script>pwned=1</script><a href="javascript:pwned=1">x</a>`;

/** Keys that stand for choices of the page; every other string comes from its author. */
const KEPT = new Set([
  "id",
  "project_id",
  "session_id",
  "fire_id",
  "replay_of",
  "sandbox_id",
  // The fake finds builds by these.
  "current",
  "image_of",
  "status",
  "type",
  "kind",
  "machine",
  "encoding",
  "scheduled_for",
  "upcoming",
  "at",
  "role",
  "state",
  "since",
]);

/** Puts the canary into every string a stranger may have written. */
const poison = (value: unknown, canary: string, key = ""): unknown => {
  if (typeof value === "string") {
    return KEPT.has(key) || key.endsWith("_at") ? value : value + canary;
  }
  if (Array.isArray(value)) return value.map((one: unknown) => poison(one, canary, key));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poison(one, canary, name)]));
};

/** A world that strangers wrote. */
const poisoned = (canary: string) =>
  // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
  poison(makeWorld(Date.now()), canary) as World;

const PAGES = [
  ["#/", ".sessions"],
  ["#/projects", ".cards"],
  [`#/projects/${PROJECT_ID}`, ".rows"],
  [`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}?tab=details`, ".timeline"],
  [`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`, ".items > .item"],
  [`#/projects/${PROJECT_ID}/triggers`, ".card"],
  [`#/projects/${PROJECT_ID}/fires`, ".rows"],
  [`#/projects/${PROJECT_ID}/fires?status=refused`, ".rows"],
  [`#/projects/${PROJECT_ID}/usage`, ".rows"],
  [`#/projects/${PROJECT_ID}/fires/${FIRED_ID}`, ".request"],
  [`#/projects/${PROJECT_ID}/fires/${QUEUED_ID}`, ".request"],
  ["#/automations", ".rows"],
  ["#/activity", ".rows"],
  ["#/account", ".rows"],
  ["#/people", ".rows"],
  ["#/audit", ".rows"],
  [`#/projects/${PROJECT_ID}/secrets`, "form"],
  [`#/projects/${PROJECT_ID}/environment`, ".rows"],
  [`#/projects/${PROJECT_ID}/environment/builds/${BUILD_ID}`, ".pieces > span"],
  [`#/projects/${PROJECT_ID}/environment/builds/${FAILED_BUILD_ID}`, ".pieces > span"],
  [`#/projects/${PROJECT_ID}/settings`, "form"],
  [`#/projects/${PROJECT_ID}/connectors`, ".rows"],
  [`#/projects/${PROJECT_ID}/connectors/linear`, ".rows"],
  [`#/projects/${PROJECT_ID}/notifications`, ".rows"],
  [`#/projects/${PROJECT_ID}/notifications/${RECEIVER_ID}`, ".rows"],
  [`#/projects/${PROJECT_ID}/setup`, ".steps"],
  [`#/projects/${PROJECT_ID}/new`, "form"],
  [`#/projects/${PROJECT_ID}/triggers/new?from=webhook`, "form"],
  ["#/queue", ".rows"],
  ["#/operator", ".table-frame"],
  ["#/account/state", ".machine"],
  [`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}/state`, ".history"],
  [`#/projects/${PROJECT_ID}/triggers/on-push/state`, ".machine"],
  [`#/projects/${PROJECT_ID}/change-requests`, ".rows"],
  [`#/projects/${PROJECT_ID}/change-requests/7`, ".diff"],
] as const;

/** Pages that draw texts in ways of their own: Markdown, a diff, a log, a request, a form with values. The others draw rows and cards as these do. */
const OF_OWN_WAYS = PAGES.filter(([hash]) =>
  [
    "#/",
    `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}?tab=details`,
    `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`,
    `#/projects/${PROJECT_ID}/triggers`,
    `#/projects/${PROJECT_ID}/fires/${FIRED_ID}`,
    "#/audit",
    `#/projects/${PROJECT_ID}/environment/builds/${FAILED_BUILD_ID}`,
    `#/projects/${PROJECT_ID}/settings`,
    `#/projects/${PROJECT_ID}/connectors/linear`,
    `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}/state`,
    `#/projects/${PROJECT_ID}/change-requests/7`,
  ].includes(hash),
);

const title = hasChromium ? "hostile data" : "hostile data (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  // Without a CSP, so that the page alone has to hold.
  it.each(sampled(PAGES, OF_OWN_WAYS))("is text and nothing else on %s [T08]", async (hash, selector) => {
    const { page, visit, complaints } = await start(poisoned(CANARY), { csp: false });
    await visit(hash);
    await page.locator(selector).first().waitFor();
    expect(await page.locator("main").innerText()).toContain("onerror=");
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect(await page.locator("body :is(img, script, iframe, [onerror], [href^='javascript'])").count()).toBe(
      0,
    );
    expect(complaints).toEqual([]);
  });

  // Characters hidden in another user's text must not reverse it, colour it, or end it.
  onlyDeep(() => {
    it.each(PAGES)("shows control characters instead of obeying them on %s [P09]", async (hash, selector) => {
      const canary = " \u001b[31mred\u0000nul\u009bcsi\u202egnirts\u2066in\u2069\u200f\rover\ud800";
      const { page, visit, complaints } = await start(poisoned(canary));
      await visit(hash);
      await page.locator(selector).first().waitFor();
      const shown = await page.locator("main").innerText();
      expect(shown).toContain("␛[31mred␀nul[U+009B]csi[U+202E]gnirts[U+2066]in[U+2069][U+200F]␍over");
      const told = await page.evaluate<string>(`[document.title, document.body.innerText,
      ...[...document.querySelectorAll("[title], [aria-label]")].map((one) => one.title + one.ariaLabel)].join(" ")`);
      expect(told).not.toMatch(/[^\P{Cc}\t\n]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
      expect(complaints).toEqual([]);
    });
  });

  deepTest("stays text in the question before an action and in its outcome [T08]", async () => {
    const { page, visit } = await start(poisoned(CANARY), { csp: false });
    await visit(`#/projects/${PROJECT_ID}/triggers`);
    await page.getByRole("button", { name: /^Run/ }).first().click();
    await page.getByRole("dialog").getByText("onerror=").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Run now" }).click();
    await page.getByText("started a session.").waitFor();
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect(await page.locator("body img").count()).toBe(0);
  });

  deepTest(
    "stays text in a preview: its question, its prompt, its variables and its refusal [T08]",
    async () => {
      const { page, fake, visit } = await start(poisoned(CANARY), { csp: false });
      await visit(`#/projects/${PROJECT_ID}/fires/${FIRED_ID}`);
      await page.locator("main").getByRole("button", { name: "Preview" }).click();
      const dialog = page.getByRole("dialog");
      expect(await dialog.getByLabel("Body (JSON)").inputValue()).toContain("onerror=");
      await dialog.getByRole("button", { name: "Preview" }).click();
      await dialog.locator("pre").first().getByText("onerror=").waitFor();
      await dialog.getByText("Variables").click();
      await dialog.locator("details pre").getByText("onerror=").waitFor();
      fake.world.refused = { status: 400, code: "bad_request", error: `No. ${CANARY}` };
      await dialog.getByRole("button", { name: "Preview" }).click();
      await dialog.getByRole("alert").getByText("onerror=").waitFor();
      expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
      expect(await page.locator("body img").count()).toBe(0);
    },
  );

  deepTest("stays text in the steps of a connection [T08]", async () => {
    const world = poisoned(CANARY);
    const repository = { kind: "github", owner: CANARY, name: CANARY };
    world.projects = world.projects.map((one) => Object.assign({}, one, { repository }));
    const { page, visit } = await start(world, { csp: false });
    await visit(`#/projects/${PROJECT_ID}/settings`);
    await page.locator(".check-step").first().getByText("onerror=").first().waitFor();
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect(await page.locator("body img").count()).toBe(0);
  });

  deepTest("stays text in the palette and in the menu of a session [T08]", async () => {
    const { page, visit } = await start(poisoned(CANARY), { csp: false });
    await visit(`#/projects/${PROJECT_ID}`);
    await page.locator("main .menu > summary").first().click();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("option", { name: "onerror=" }).first().waitFor();
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect(await page.locator("body img").count()).toBe(0);
  });

  deepTest("filters by a hostile trigger as by any other [T08]", async () => {
    const { page, visit } = await start(poisoned(CANARY), { csp: false });
    await visit(`#/projects/${PROJECT_ID}/fires`);
    await page.getByLabel("Trigger").selectOption(`new-year${CANARY}`);
    await page.locator(".row", { hasText: "on-push" }).first().waitFor({ state: "detached" });
    expect(await page.locator(".row").count()).toBe(1);
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
  });

  deepTest("shows hostile Markdown whole, and loads and runs nothing for it [T08] [P09]", async () => {
    const staircase = Array.from({ length: 1000 }, (_, at) => `${" ".repeat(at % 60)}- x`).join("\n");
    const said = [
      ">".repeat(20_000),
      "**a".repeat(20_000),
      `${"*a ".repeat(10_000)}${"a* ".repeat(10_000)}`,
      `${"> ".repeat(30)}${"- ".repeat(1000)}`,
      staircase,
      `\`\`\`html\n${CANARY}\n`.repeat(2),
      "<b>word</b> ".repeat(87_000),
      `a${"\u0301".repeat(200_000)}`,
      "[a](javascript:pwned=1) ![b](data:text/html,x) <javascript:pwned=1> [c](https://x.y) ![d](https://x.y/d.png)",
      "[reversed \u202e text](https://x.y/\u202e) &#x202e; `\u2066`\n\n```\u202e\n\u202e\n```",
      "# <img src=x onerror=pwned=1>\n\n|<script>pwned=1</script>|\n|-|\n|<iframe src=x>|",
    ];
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    const world = makeWorld(Date.now());
    const items = said.map((one, n) => sampleItem(`m${n}`, { place: n + 1, ...text(one) }));
    const { page, fake, visit, complaints } = await start({
      ...world,
      conversation: conversationOf([...items, sampleItem("end", { place: 99, ...text("the **end**") })]),
    });
    const hosts = new Set<string>();
    page.on("request", (request) => hosts.add(new URL(request.url()).origin));
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    await page.locator("[data-item=end] .markdown strong").waitFor();
    const shown = await page.getByRole("log").locator(".item").allTextContents();
    expect(shown.length).toBe(said.length + 1);
    for (const tag of ["<b>word</b>", "<iframe src=x>", "<script>pwned=1</script>", "<img src=x onerror"]) {
      expect(shown.join("\n")).toContain(tag);
    }
    expect(shown.join("\n")).not.toMatch(/[\u202e\u2066]|\u0301{17}/);
    expect(await page.locator(".talk :is(img, script, iframe, b, style)").count()).toBe(0);
    const links = await page
      .locator(".talk a")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    expect(links).toEqual(["https://x.y/", "https://x.y/d.png", "https://x.y/%E2%80%AE"]);
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
    expect([[...hosts], complaints]).toEqual([[fake.url], []]);
  });

  it("does not turn a hostile address into a request or a link [T08]", async () => {
    // eslint-disable-next-line no-restricted-properties -- the browser's clock is the real one
    const { page, visit } = await start(makeWorld(Date.now()), { csp: false });
    await visit(`#/projects/..%2f..%2fdashboard/sessions/<img src=x onerror=pwned=1>`);
    await page.getByText("Page not found.").waitFor();
    expect(await page.evaluate(() => "pwned" in globalThis)).toBe(false);
  });
});
