/** The panel of saved work: of sessions that run and that have ended, with earlier saves, and what a restart brings back. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import type { World } from "../fakes/fake-service.ts";
import { makeWorld, PROJECT_ID, SESSION_ID, STOPPED_ID } from "../samples/sample-project.ts";
import { EARLIER_ID, samplePartial, sampleSaved } from "../samples/sample-saves.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import { chosen } from "../states/state-of-a-page.ts";
import { withRole } from "../states/states-of-people.ts";
import { stopping } from "../states/states-of-saves.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const NOW = Date.now();
const SESSIONS = `#/projects/${PROJECT_ID}/sessions`;

const worldWith = (id: string, rest: Readonly<Record<string, unknown>>): World => {
  const all = makeWorld(NOW);
  return {
    ...all,
    work: sampleWork(NOW),
    sessions: all.sessions.map((one) => (one["id"] === id ? Object.assign({}, one, rest) : one)),
  };
};

const title = hasChromium ? "saved work" : "saved work (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("of a session that runs is what the last save has, and follows the next one", async () => {
    const { page, fake, visit } = await start(worldWith(SESSION_ID, { saved: null }));
    await visit(`${SESSIONS}/${SESSION_ID}?tab=details`);
    await page.getByText("Nothing is saved yet. The first save is at the end of the agent's turn.").waitFor();
    const saved = sampleSaved(NOW, { at: new Date(NOW).toISOString() });
    for (const one of fake.world.sessions) Object.assign(one, { saved });
    fake.emit("session.status");
    await page.getByText("The last save is complete: 3 changed files and commits of 1 branch").waitFor();
    await page.getByText("Later changes are only in the sandbox until the next save.").waitFor();
    // Its files are read once the reader asks for them.
    expect(await page.locator("#saved-files").count()).toBe(0);
    await page.getByRole("button", { name: "Show the saved files" }).click();
    await page.getByRole("heading", { name: "The newest save: changes in 2 files" }).waitFor();
  });

  it("says what is missing, above the conversation and with each reason", async () => {
    const { page, visit } = await start(worldWith(SESSION_ID, { saved: samplePartial(NOW) }));
    await visit(`${SESSIONS}/${SESSION_ID}?tab=details`);
    await page.getByText("40 paths are not saved. Their newest version is only in the sandbox.").waitFor();
    const panel = await page.locator("#saved").innerText();
    expect(panel).toContain("notes/today.md: changes while it is read");
    expect(panel).toContain("assets/film-00001.mp4 and 37 more: no time for it yet");
    expect(panel).toContain(`git fetch origin refs/wip/${SESSION_ID}`);
    await page.getByText("No save takes these: 4,012 paths").click();
    await page.getByText("node_modules/ and 4,011 more: ignored by git").waitFor();
  });

  it("of a session that has ended shows its files, and comes back with a restart unless the reader does not want it", async () => {
    const all = worldWith(STOPPED_ID, {});
    const { page, fake, visit } = await start(all);
    await visit(`${SESSIONS}/${STOPPED_ID}?tab=details`);
    const box = page.getByLabel("Bring back unpushed work with a restart");
    await box.waitFor();
    expect(await box.isChecked()).toBe(true);
    await page.getByRole("heading", { name: "The newest save: changes in 2 files" }).waitFor();
    const asked = () =>
      fake.writes.filter((write) => write.includes("/restart ")).map((write) => write.split(" ").at(-1));
    await chosen("Restart")(page);
    await expect.poll(asked).toEqual(['{"restore_saved":true}']);
    fake.world.sessions = all.sessions;
    fake.emit("session.status");
    await box.uncheck();
    // Another drawing of the page leaves the choice.
    fake.emit("session.status");
    await chosen("Restart")(page);
    await expect.poll(asked).toEqual(['{"restore_saved":true}', '{"restore_saved":false}']);
  });

  it("of an earlier sandbox can be shown and deleted", async () => {
    const { page, fake, visit } = await start(worldWith(STOPPED_ID, { saved: samplePartial(NOW) }));
    const read: string[] = [];
    page.on("request", (request) => {
      const { pathname, search } = new URL(request.url());
      if (pathname.endsWith("/changes")) read.push(search);
    });
    await visit(`${SESSIONS}/${STOPPED_ID}?tab=details`);
    const saves = page.locator("#saved .row");
    await saves.first().getByRole("button", { name: "Show" }).click();
    await page.getByRole("heading", { name: /^The save of .* changes in 2 files$/ }).waitFor();
    expect(read).toEqual(expect.arrayContaining(["?of=saved", `?of=saved&save=${EARLIER_ID}`]));
    await saves.first().getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("The save was deleted.").waitFor();
    expect(fake.writes).toEqual([
      `DELETE /v1/projects/${PROJECT_ID}/sessions/${STOPPED_ID}/saves/${EARLIER_ID} `,
    ]);
    await expect.poll(() => saves.count()).toBe(1);
  });

  it("cannot be deleted by a viewer", async () => {
    const all = worldWith(STOPPED_ID, { saved: samplePartial(NOW) });
    withRole("viewer")(all);
    const { page, visit } = await start(all);
    await visit(`${SESSIONS}/${STOPPED_ID}?tab=details`);
    await page.locator("#saved .row").first().getByRole("button", { name: "Show" }).waitFor();
    expect(await page.locator("#saved").getByRole("button", { name: "Delete" }).count()).toBe(0);
  });

  it("is followed while a stop saves it, also after the reader has closed the dialog", async () => {
    const { page, visit, fake } = await start(worldWith(SESSION_ID, { saved: samplePartial(NOW) }));
    const saving = Promise.withResolvers<void>();
    await page.route("**/stop", async (route) => {
      await saving.promise;
      await route.continue();
    });
    await visit(`${SESSIONS}/${SESSION_ID}?tab=details`);
    await stopping(page);
    await page.getByText("Saving unpushed work. 40 paths are left.").waitFor();
    await page.getByRole("button", { name: "Continue in the background" }).click();
    for (const one of fake.world.sessions) Object.assign(one, { saved: sampleSaved(NOW) });
    saving.resolve();
    await page.getByText("The session was stopped. All unpushed work is saved.").waitFor();
  });
});
