import { describe, expect, it } from "vitest";
import { hasChromium, openBarMenu, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, QUEUED_ID } from "../samples/sample-project.ts";

const OTHER_ID = "01995f2c-ffff-7b0e-8a44-b7d15c2a0f66";
const world = () => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const all = makeWorld(Date.now());
  const second = { ...all.queue[0], fire_id: OTHER_ID, trigger_slug: "new-year", position: 2 };
  return { ...all, queue: [...all.queue, second] };
};

const title = hasChromium ? "the queue" : "the queue (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("shows fires in the order in which they will start, and is reachable from every page", async () => {
    const { page } = await start(world());
    await openBarMenu(page);
    await page.getByRole("link", { name: "1 queued" }).click();
    await page.getByRole("heading", { name: "Queue" }).waitFor();
    const rows = await page.locator("ol.rows > li").allInnerTexts();
    expect(
      rows.map((row) =>
        row
          .split("\n")
          .map((line) => line.trim())
          .filter(Boolean),
      ),
    ).toEqual([
      [
        "Position",
        "1",
        "on-push",
        "greeter",
        expect.stringMatching(/^queued \d+ s ago$/),
        "expires in 23 h 53 min",
        "Cancel",
      ],
      [
        "Position",
        "2",
        "new-year",
        "greeter",
        expect.stringMatching(/^queued \d+ s ago$/),
        "expires in 23 h 53 min",
        "Cancel",
      ],
    ]);
    expect(await page.locator("ol.rows").getByRole("link", { name: "on-push" }).getAttribute("href")).toBe(
      `#/projects/${PROJECT_ID}/fires/${QUEUED_ID}`,
    );
    expect(await page.locator("main").innerText()).toContain("1 of 50 sessions are in use.");
  });

  it("shows the sessions that hold the places, agents at rest first, and stops one", async () => {
    const all = world();
    const [sample] = all.sessions;
    const held = (name: string, at: number, state: string) => ({
      ...sample,
      id: `01995e90-0000-7000-8000-00000000000${at}`,
      name,
      status: "running",
      turn: { ...Object(sample?.["turn"]), state },
      created_at: `2026-11-20T06:00:0${at}.000Z`,
    });
    const sessions = [
      held("at work", 1, "running"),
      held("newer", 3, "idle"),
      held("older", 2, "idle"),
      { ...held("ended", 4, "idle"), status: "stopped" },
    ];
    const { page, fake, visit } = await start({ ...all, sessions });
    await visit("#/queue");
    const rows = page.locator("ul.rows > li");
    await page.getByRole("heading", { name: "Sessions in use" }).waitFor();
    expect(await rows.locator("a.cover").allInnerTexts()).toEqual(["older", "newer", "at work"]);
    await rows.first().locator("summary").click();
    await rows.first().getByRole("button", { name: /^Stop/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Stop/ }).click();
    await expect
      .poll(() => fake.writes)
      .toEqual([expect.stringContaining("/sessions/01995e90-0000-7000-8000-000000000002/stop")]);
  });

  it("lets the user cancel one after a question, and keeps the position on the page", async () => {
    const { page, fake, visit } = await start(world());
    await visit("#/queue");
    const cancel = page.getByRole("button", { name: "Cancel on-push at position 1" });
    await cancel.click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep waiting" }).click();
    expect(fake.writes).toEqual([]);
    await cancel.click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
    await page.getByText("The run was cancelled.").waitFor();
    await cancel.waitFor({ state: "detached" });
    expect(fake.writes).toEqual([`DELETE /v1/projects/${PROJECT_ID}/fires/${QUEUED_ID} `]);
    expect(await page.locator("ol.rows > li").count()).toBe(1);
    expect(await page.locator(":focus").getAttribute("id")).toBe("main");
  });

  it("says why one could not be cancelled", async () => {
    const { page, fake, visit } = await start(world());
    fake.world.refused = { status: 409, code: "not_queued", error: "This fire does not wait any more." };
    await visit("#/queue");
    await page.getByRole("button", { name: "Cancel on-push at position 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
    await page.getByRole("status").getByText("This fire does not wait any more.").waitFor();
  });

  // No project's events tell of the account's queue: the page looks by itself.
  it("follows started fires, and keeps the focus", async () => {
    const { page, fake, visit } = await start(world());
    await visit("#/queue");
    await page.getByRole("button", { name: "Cancel new-year at position 2" }).focus();
    fake.world.queue = [{ ...fake.world.queue[1], position: 1 }];
    fake.emit("fire.fired");
    await page.getByRole("button", { name: "Cancel on-push at position 1" }).waitFor({ state: "detached" });
    expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Cancel new-year at position 1");
    fake.world.queue = [];
    fake.emit("fire.fired");
    await page.getByText("The queue is empty.").waitFor();
  });

  it("shows the first two hundred fires, and names an unknown project by its id", async () => {
    const all = world();
    const queue = Array.from({ length: 230 }, (_, index) => ({
      ...all.queue[0],
      fire_id: `01995e90-0000-7000-8000-${String(index).padStart(12, "0")}`,
      project_id: "01995f10-0000-7c31-9f21-3d0c64b2a911",
      position: index + 1,
    }));
    const me = { ...all.me, account: { ...(all.me["account"] as object), queued_fires: queue.length } };
    const { page, visit } = await start({ ...all, queue, me });
    await visit("#/queue");
    await page.getByText("30 more wait.").waitFor();
    expect(await page.locator("ol.rows > li").count()).toBe(200);
    expect(await page.locator("ol.rows > li").first().innerText()).toContain("project …64b2a911");
  });
});
