/** The browser's notification that the agent of an own session has finished. */
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const clock = () => Date.now();

/** A browser that allows notifications and keeps their words. */
const RECORD = `
  window.told = [];
  localStorage.setItem("notifications", "on");
  window.Notification = class extends EventTarget {
    static permission = "granted";
    constructor(words) { super(); window.told.push(words); }
    close() {}
  };`;

const title = hasChromium ? "a notification" : "a notification (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("tells who asks the reader for a review, again when she is asked again, while the page is hidden", async () => {
    const world = makeWorld(clock());
    const asked = (at: number) => ({
      ...world.changes[0],
      review_asked: { by: { id: "u-karl", name: "Karl" }, at: new Date(at).toISOString() },
    });
    const { page, visit, fake } = await start({ ...world, sessions: [] });
    const told = () => page.evaluate("window.told");
    await page.addInitScript(RECORD);
    await page.addInitScript(
      `Object.defineProperty(document, "visibilityState", { get: () => window.hides ? "hidden" : "visible" })`,
    );
    await visit("#/");
    await page.reload();
    await page.getByLabel("What should the agent do?").waitFor();
    await page.evaluate("window.hides = true");
    fake.world.changes = [asked(clock())];
    await expect.poll(told, { timeout: 40_000 }).toEqual(["Karl asks for your review"]);
    fake.world.changes = [asked(clock() + 1000)];
    await expect.poll(told, { timeout: 40_000 }).toHaveLength(2);
  });

  it("tells once that the agent finished in a session of the reader, and not on the page that shows it", async () => {
    const world = makeWorld(clock());
    const user = world.me["user"] as { readonly id: string };
    const turn = { state: "idle", since: new Date(clock()).toISOString(), waiting_for: null };
    const shown = { status: "running", turn, pending_approvals: 0, parent_session_id: null };
    const ended = (id: unknown, state: "completed" | "failed", by: string) => ({
      ...world.sessions.find((one) => one["id"] === id),
      ...shown,
      created_by: by,
      trigger_slug: null,
      last_turn: { state, error: null, at: new Date(clock()).toISOString() },
    });
    const others = String(world.sessions[1]?.["id"]);
    // Nothing waits in the conversation.
    const conversation = { ...world.conversation, items: [], turn };
    const quiet = { ...world, conversation, sessions: [ended(others, "completed", "another")] };
    const { page, visit, fake } = await start(quiet);
    const told = () => page.evaluate("window.told");
    await page.addInitScript(RECORD);
    await visit("#/");
    await page.reload();
    const foreign = quiet.sessions[0] ?? {};
    fake.world.sessions = [ended(SESSION_ID, "completed", user.id), foreign];
    await expect.poll(told).toEqual(["The agent has finished"]);
    await visit(`#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`);
    fake.world.sessions = [ended(SESSION_ID, "failed", user.id), foreign];
    const seen = () => page.evaluate("localStorage.getItem('told-turns')");
    const { at } = Object(fake.world.sessions[0]?.["last_turn"]) as { readonly at: string };
    // The page has seen that turn, and shows no notification.
    await expect.poll(seen).toContain(at);
    expect(await told()).toEqual(["The agent has finished"]);
    await visit("#/");
    fake.world.sessions = [ended(SESSION_ID, "failed", user.id), foreign];
    await expect.poll(told).toEqual(["The agent has finished", "The agent failed"]);
  });
});
