/** A change request's page: what it shows, and how it is merged and closed. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const PROJECT = `#/projects/${PROJECT_ID}`;

const title = hasChromium
  ? "a change request on its page"
  : "a change request on its page (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows its commits, and its diff file by file", async () => {
    const { page, visit } = await start(world());
    await visit(`${PROJECT}/change-requests`);
    await page.getByRole("link", { name: "#7 Note the first push" }).click();
    await page.getByText("Write notes/6113728.md").waitFor();
    expect(await page.locator(".file > summary").allInnerTexts()).toEqual([
      "notes/6113728.md new file +3 −0",
      "greet.sh +1 −1",
    ]);
    expect(await page.locator(".diff .removed").allInnerTexts()).toEqual([
      expect.stringContaining("-printf 'Hello"),
    ]);
  });

  it("leads to its session, and says so if the session was deleted", async () => {
    const { page, visit, fake } = await start(world());
    await visit(`${PROJECT}/change-requests/7`);
    await page.getByRole("link", { name: "Show the session" }).waitFor();
    fake.world.sessions = [];
    fake.emit("session.deleted");
    await page.getByText("The session was deleted.").waitFor();
    expect(await page.getByRole("link", { name: "Show the session" }).count()).toBe(0);
  });

  it("leads to its pull request at the code host", async () => {
    const all = world();
    const pull = { number: 12, url: "https://github.com/acme/greeter/pull/12" };
    const changes = all.changes.map((change) => ({ ...change, pull_request: pull }));
    const { page, visit } = await start({ ...all, changes });
    await visit(`${PROJECT}/change-requests/7`);
    const link = page.getByRole("link", { name: "#12" });
    await expect.poll(() => link.getAttribute("href")).toBe(pull.url);
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
  });

  it("says which files conflict", async () => {
    const all = world();
    const changes = all.changes.map((change) => ({ ...change, mergeable: false, conflicts: ["greet.sh"] }));
    const { page, visit } = await start({ ...all, changes });
    await visit(`${PROJECT}/change-requests/7`);
    await page.getByText("This change request cannot be merged.").waitFor();
    expect(await page.locator(".merge-box").innerText()).toContain("greet.sh");
    expect(await page.getByRole("button", { name: "Merge", exact: true }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Close" }).count()).toBe(1);
  });

  it("that breaks platform.toml says so, and is merged after a second question", async () => {
    const all = world();
    const warnings = [{ file: "platform.toml", line: 3, message: "`cron` is missing." }];
    const changes = all.changes.map((change) => ({ ...change, warnings }));
    const { page, fake, visit } = await start({ ...all, changes });
    await visit(`${PROJECT}/change-requests/7`);
    await page.locator(".merge-point", { hasText: "platform.toml, line 3: cron is missing." }).waitFor();
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("dialog").getByText("platform.toml, line 3").waitFor();
    expect(fake.writes).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Merge anyway" }).click();
    await page.getByText("#7 was merged into main.").waitFor();
  });

  it("in conflict is given to the agent by a button, which restarts an ended session", async () => {
    const all = world();
    const changes = all.changes.map((change) => ({ ...change, mergeable: false, conflicts: ["greet.sh"] }));
    const { page, fake, visit } = await start({ ...all, changes });
    await visit(`${PROJECT}/change-requests/7`);
    await page.getByText("Run git fetch origin, merge origin/main into your branch").waitFor();
    await page.getByRole("button", { name: "Restart and ask: to resolve the conflicts" }).click();
    await page.getByText("The agent was asked.").waitFor();
    expect(fake.writes).toEqual([
      expect.stringMatching(/^POST .*\/messages \{"id":"[0-9a-f-]{36}","text":"Run git fetch origin, merge /),
    ]);
  });

  it("shows its description as Markdown, and names its state", async () => {
    const all = world();
    const description = "Adds **one** note.\n\n- <b>first</b>\n- second";
    for (const one of all.changes) Object.assign(one, { description });
    const { page, visit } = await start(all);
    await visit(`${PROJECT}/change-requests/7`);
    await page.locator(".markdown strong", { hasText: "one" }).waitFor();
    expect(await page.locator(".markdown li").allInnerTexts()).toEqual(["<b>first</b>", "second"]);
    expect(await page.locator(".facts > div").last().innerText()).toMatch(/^State\s+Why is it open\?/);
  });

  it("says who opened it", async () => {
    const all = world();
    const { page, fake, visit } = await start(all);
    fake.world.members = [{ user: { id: "u", name: "Ada" }, role: "owner", own_role: null }];
    await visit(`${PROJECT}/change-requests/7`);
    await page.locator(".facts", { hasText: "by Ada" }).waitFor();
  });

  it("is merged after a question, and can then be neither merged nor closed", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${PROJECT}/change-requests/7`);
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByText("Merge #7 into main?").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(fake.writes).toEqual([]);
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByText("#7 was merged into main.").waitFor();
    expect(fake.writes).toEqual([`POST /v1/projects/${PROJECT_ID}/change-requests/7/merge {}`]);
    await page.locator("h1 .badge", { hasText: "merged" }).waitFor();
    expect(await page.locator(".facts").innerText()).toContain("5ca1ab1e5c");
    expect(await page.locator(".merge-box").count()).toBe(0);
  });

  it("that now conflicts says where, and shows it", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${PROJECT}/change-requests/7`);
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    fake.world.changes = fake.world.changes.map((change) => ({
      ...change,
      mergeable: false,
      conflicts: ["greet.sh"],
    }));
    fake.world.refused = { status: 409, code: "merge_conflict", error: "They conflict in greet.sh." };
    await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByText("They conflict in greet.sh.").waitFor();
    await page.getByText("This change request cannot be merged.").waitFor();
  });
});
