import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const world = () => makeWorld(Date.now());
const at = (second: number) => `2026-11-20T06:52:${String(second).padStart(2, "0")}.000Z`;
const SESSIONS = `#/projects/${PROJECT_ID}/sessions`;

const title = hasChromium ? "a port" : "a port (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("of a running session is opened in a new tab, which has no access to the page", async () => {
    let referrer: string | undefined = "none yet";
    const app = createServer((request, response) => {
      if (request.url === "/") referrer = request.headers.referer;
      response.writeHead(200, { "content-type": "text/html" }).end("<h1>The app</h1>");
    });
    await new Promise<void>((resolve) => {
      app.listen(0, "127.0.0.1", resolve);
    });
    const { page, fake, visit } = await start(world());
    fake.world.link = `http://p5173-${SESSION_ID}.localhost:${String((app.address() as AddressInfo).port)}/`;
    await visit(`${SESSIONS}/${SESSION_ID}?tab=preview`);
    await page.getByRole("button", { name: "Open a port" }).click();
    await page.getByRole("textbox", { name: "Port" }).fill("5173");
    await page.keyboard.press("Enter");
    await page.getByText("The link to port 5173 is ready.").waitFor();
    expect(fake.writes).toEqual([
      `POST /v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}/preview {"port":5173}`,
    ]);
    const opening = page.context().waitForEvent("page");
    await page.getByRole("link", { name: /^Open the/ }).click();
    const opened = await opening;
    await opened.getByRole("heading", { name: "The app" }).waitFor();
    expect(await opened.evaluate("[opener, document.referrer]")).toEqual([null, ""]);
    expect(referrer).toBeUndefined();
    expect(page.url()).toBe(`${fake.url}/${SESSIONS}/${SESSION_ID}?tab=preview`);
    app.closeAllConnections();
    app.close();
  });

  it("on which a program listens has a button, while the session runs", async () => {
    const all = world();
    all.ports = [5173, 8080];
    all.link = `http://p5173-${SESSION_ID}.localhost:1/`;
    const { page, fake, visit } = await start(all);
    await visit(`${SESSIONS}/${SESSION_ID}`);
    await page.getByRole("tab", { name: "Preview 2" }).click();
    await page.getByRole("button", { name: "Open port 8080" }).waitFor();
    await page.getByRole("button", { name: "Open port 5173" }).click();
    await page.getByText("The link to port 5173 is ready.").waitFor();
    expect(fake.writes.at(-1)).toContain('/preview {"port":5173}');
    const shown = all.sessions.find(({ id }) => id === SESSION_ID);
    fake.world.sessions = [{ ...shown, status: "stopped" }];
    fake.emit("session.status");
    await page.getByRole("button", { name: "Open port 8080" }).waitFor({ state: "detached" });
  });

  it("is not part of the boot, whose steps are shown from the daemon's log", async () => {
    const all = world();
    all.sandbox = { ...all.sandbox, id: "0199bbbb-0000-7000-8000-000000000001", created_at: at(1) };
    all.sandbox = { ...all.sandbox, boot_started_at: at(2), active_at: at(20) };
    all.logs = [
      ["listening", 4],
      ["credential", 5],
      ["cloned", 8],
      ["<b>", 9],
    ].map(([step, second]) => ({
      sandbox_id: "0199bbbb-0000-7000-8000-000000000001",
      at: at(Number(second)),
      source: "daemon",
      line: `boot step=${String(step)} at_ms=1`,
    }));
    const { page, visit } = await start(all);
    await visit(`${SESSIONS}/${SESSION_ID}?tab=details`);
    await page.locator(".waterfall tr", { hasText: "Repository cloned" }).waitFor();
    const rows = (await page.locator(".waterfall tr").allInnerTexts()).map((row) => row.trim());
    expect(rows.map((row) => row.replaceAll(/\s*\t\s*/g, " "))).toEqual([
      "Waited until the machine had room 1.0 s",
      "Sandbox created 2.0 s",
      "Got access to the repository 1.0 s",
      "Repository cloned 3.0 s",
    ]);
  });

  it("is not part of a boot that its deadline ended, which shows the step that was not ready", async () => {
    const all = world();
    const id = "0199bbbb-0000-7000-8000-000000000002";
    const times = { created_at: at(1), boot_started_at: at(1), active_at: null };
    all.sandbox = { ...all.sandbox, ...times, id, ended_at: "2026-11-20T06:54:01.000Z", status: "failed" };
    all.logs = [
      ["listening", 4],
      ["runtime_started", 5],
      ["credential", 6],
      ["cloned", 9],
    ].map(([step, second]) => ({
      sandbox_id: id,
      at: at(Number(second)),
      source: "daemon",
      line: `boot step=${String(step)} at_ms=1`,
    }));
    const { page, visit } = await start(all);
    await visit(`${SESSIONS}/${SESSION_ID}?tab=details`);
    await page.locator(".waterfall tr", { hasText: "Agent runtime" }).waitFor();
    const rows = (await page.locator(".waterfall tr").allInnerTexts()).map((row) => row.trim());
    expect(rows.map((row) => row.replaceAll(/\s*\t\s*/g, " "))).toEqual([
      "Waited until the machine had room 0 ms",
      "Sandbox created 3.0 s",
      "Got access to the repository 2.0 s",
      "Agent runtime, not ready after 1 min 56 s",
      "Repository cloned 3.0 s",
    ]);
    expect(await page.locator(".waterfall .bar.open").count()).toBe(1);
    await page.getByRole("heading", { name: "Boot 2 min 0 s" }).waitFor();
  });

  it("must be a number, and a refusal leaves what was typed, with the service's words", async () => {
    const { page, fake, visit } = await start(world());
    await visit(`${SESSIONS}/${SESSION_ID}?tab=preview`);
    const dialog = page.getByRole("dialog");
    const field = dialog.getByRole("textbox", { name: "Port" });
    const enter = async (port: string) => {
      await field.fill(port);
      await page.keyboard.press("Enter");
    };
    await page.getByRole("button", { name: "Open a port" }).click();
    await enter("80a");
    await dialog.getByText("Enter a port from 1 to 65535.").waitFor();
    expect(await field.inputValue()).toBe("80a");
    expect(fake.writes).toEqual([]);
    fake.world.refused = {
      status: 403,
      code: "port_blocked",
      error: "Port 8000 is reserved for the platform.",
    };
    await enter("8000");
    await dialog.getByText("Port 8000 is reserved for the platform.").waitFor();
    expect(await field.inputValue()).toBe("8000");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open a port" }).click();
    expect([await field.inputValue(), await dialog.getByRole("alert").count()]).toEqual(["", 0]);
  });

  it("is offered only by a running session", async () => {
    const all = world();
    const { page, visit } = await start(all);
    for (const { id, status } of all.sessions) {
      /* eslint-disable no-await-in-loop -- one page after the other */
      await visit(`${SESSIONS}/${String(id)}?tab=preview`);
      await page
        .getByText(
          status === "running" ? "No program in the sandbox" : "A session has previews while it runs.",
        )
        .waitFor();
      expect(await page.getByRole("button", { name: "Open a port" }).count()).toBe(
        status === "running" ? 1 : 0,
      );
      /* eslint-enable no-await-in-loop */
    }
  });
});
