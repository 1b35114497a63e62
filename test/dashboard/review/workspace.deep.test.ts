import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { sampleItem } from "../samples/sample-conversation.ts";
import { sampleWorkspace } from "../samples/sample-workspace.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => ({ ...makeWorld(Date.now()), workspace: sampleWorkspace });
const IDLE = { state: "idle", since: null, waiting_for: null };
const ENDED = { state: "completed", error: null, at: "2026-11-20T06:53:00.000Z" };
const ADDRESS = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;

const title = hasChromium ? "the workspace of a session" : "the workspace (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows what is not committed, not pushed and pushed, and the branch once the session has stopped", async () => {
    const { page, fake, visit } = await start(world());
    await visit(ADDRESS);
    await page.getByText("Not pushed yet: 1 commit and uncommitted changes in 1 file.").waitFor();
    const heads = await page.locator("#work .file > summary").allInnerTexts();
    expect(heads.map((head) => /not \w+/.exec(head)?.[0])).toEqual([
      "not pushed",
      undefined,
      "not committed",
    ]);
    const shown = fake.world.sessions.find(({ id }) => id === SESSION_ID);
    fake.world.sessions = [{ ...shown, status: "stopped" }];
    fake.emit("session.status");
    await page.getByText("The agent has not pushed a commit yet.").waitFor();
    await page.getByRole("tab", { name: "Files" }).click();
    await page.getByText("The files of the workspace are shown while the session runs.").waitFor();
  });

  it("is read again when the agent has finished a tool, and not otherwise", async () => {
    const { page, fake, visit } = await start(world());
    let asked = 0;
    page.on("request", (request) => (asked += Number(request.url().endsWith("/workspace/changes"))));
    await visit(ADDRESS);
    await page.getByText("Not pushed yet").waitFor();
    expect(asked).toBe(1);
    fake.world.workspace = {
      ...sampleWorkspace,
      changes: { ...sampleWorkspace.changes, uncommitted_total: 7 },
    };
    // News of the project alone are no reason.
    fake.emit("session.turn");
    fake.say(
      "item",
      sampleItem("i-tool-of-the-workspace", { kind: "tool", status: "completed", place: 99, seq: 99 }),
    );
    await page.getByText("uncommitted changes in 7 files").waitFor();
    expect(asked).toBe(2);
  });

  it("is read again after a push from its terminal, which offers a change request, and when a reader comes back to it", async () => {
    const { page, fake, visit } = await start(world());
    const [first, ...others] = fake.world.sessions;
    await visit(ADDRESS);
    await page.getByText("Not pushed yet").waitFor();
    const { changes } = sampleWorkspace;
    const pushed = { ...changes, uncommitted_total: 0, unpushed_total: 0, unpushed_commits: 0 };
    fake.world.workspace = { ...sampleWorkspace, changes: pushed };
    const row = { files: 1, additions: 1, deletions: 0, head_commit: "f".repeat(40) };
    fake.world.sessions = [{ ...first, turn: IDLE, last_turn: ENDED, changes: row }, ...others];
    fake.say("state", { state: IDLE });
    fake.emit("session.updated");
    await page.getByRole("button", { name: "Open a change request" }).waitFor();
    await page.getByText("All of it is pushed.").waitFor();
    fake.world.workspace = { ...sampleWorkspace, changes: { ...pushed, unpushed_commits: 1 } };
    await page.getByRole("tab", { name: "Files" }).click();
    await page.getByRole("tab", { name: "Changes" }).click();
    await page.getByText("Not pushed yet: 1 commit.").waitFor();
  });

  it("opens its files directory by directory, with the keyboard, and shows a text with line numbers", async () => {
    const { page, visit } = await start(world());
    await visit(ADDRESS);
    await page.getByRole("tab", { name: "Changes" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.locator("[data-directory=bin] > summary").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "greet.sh", exact: true }).focus();
    await page.keyboard.press("Enter");
    const lines = page.locator("#part-files pre > span");
    await lines.first().waitFor();
    expect(await lines.count()).toBe(4);
    expect(await lines.nth(1).getAttribute("data-after")).toBe("2");
    expect(await page.getByText("latest (link)").count()).toBe(1);
    // The file opens below the tree: the reader is led to it.
    const heading = page.locator("#part-files h2:focus");
    expect(await heading.innerText()).toBe("bin/greet.sh");
    const box = await heading.boundingBox();
    expect(box === null ? -1 : box.y).toBeGreaterThanOrEqual(0);
    expect(box === null ? Infinity : box.y + box.height).toBeLessThanOrEqual(800);
  });
});
