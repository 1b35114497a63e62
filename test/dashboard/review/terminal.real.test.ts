/** A terminal on the session's page: Chromium, the service, a sandbox. */
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, LIGHT_AGENT, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { followLink, hasChromium, launch, newPage } from "../browser.ts";
import { deepTest } from "../../support/vitest/rings.ts";

describe.skipIf(!sandboxesStartHere || !hasChromium)(
  "a terminal on the page (needs sandboxes and Chromium)",
  { timeout: TEST_MS },
  () => {
    let installation: Installation;
    let life: Life;
    let session: LiveSession;
    let browser: Browser;
    let page: Page;
    /** Errors of scripts, and what the page's policy refused. */
    let complaints: string[];
    const scripts: string[] = [];
    const database = useRunDatabase();
    beforeAll(async () => {
      installation = await Installation.open();
      life = await installation.start({ ...database(), ...LIGHT_AGENT });
      session = await LiveSession.start(life, installation);
      browser = await launch();
      ({ page, complaints } = await newPage(browser));
      page.on("request", (request) => {
        if (request.resourceType() === "script") scripts.push(request.url());
      });
      const { url } = await life.call("POST", "/dashboard/links");
      await followLink(page, String(url));
      await page.getByRole("heading", { name: "Home" }).waitFor();
      await page.goto(`${life.url}/#${session.path.replace("/v1", "")}`);
    }, TEST_MS);
    afterAll(async () => {
      await browser?.close();
      await session?.stop();
      await life?.end("SIGTERM");
      await installation?.close();
    }, TEST_MS);

    const panel = () => page.locator(".terminal-panel");
    const status = () => panel().getByRole("status").innerText();
    const rows = async () => (await page.locator(".xterm-rows").innerText()).replaceAll("\u00a0", " ");
    const shows = (text: string | RegExp) => expect.poll(rows, POLL).toMatch(text);
    const type = async (text: string) => {
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    const sizeOf = async (mark: string) => {
      await type(`echo ${mark}''=$(stty size)`);
      await shows(new RegExp(`${mark}=\\d+ \\d+`));
      return (
        new RegExp(`${mark}=(\\d+) (\\d+)`)
          .exec(await rows())
          ?.slice(1)
          .map(Number) ?? []
      );
    };
    const open = () => page.getByRole("button", { name: "Open a terminal" });
    const opened = async () => {
      await open().click();
      await page.locator(".xterm-rows").waitFor();
      await shows(/\$|#/);
    };
    const closed = async () => {
      await page.getByRole("button", { name: "Close the terminal" }).click();
      await panel().waitFor({ state: "detached" });
    };

    beforeEach(() => {
      complaints.length = 0;
    });

    it("is loaded when the reader opens it, and runs what she types", async () => {
      await page.getByRole("tab", { name: "Terminal" }).click();
      await open().waitFor();
      const before = scripts.length;
      expect(await page.evaluate("document.adoptedStyleSheets.length")).toBe(0);
      await opened();
      expect(scripts.length).toBeGreaterThan(before);
      await type("echo $((6*7))");
      await shows(/^42 *$/m);
      expect(complaints).toEqual([]);
    });

    deepTest("is the same one after a look at another tab, and at the session's state", async () => {
      await page.getByRole("tab", { name: "Log" }).click();
      await page.locator(".logs").waitFor();
      await page.getByRole("tab", { name: "Terminal" }).click();
      await shows(/^42 *$/m);
      await page.getByRole("link", { name: "Why this state?" }).click();
      await page.locator(".machine").first().waitFor();
      await page.goBack();
      await shows(/^42 *$/m);
      await page.locator(".terminal-panel textarea").focus();
      await type("echo still''here");
      await shows("stillhere");
    });

    it("shows colours, and the page's policy refuses nothing", async () => {
      // A colour of its own is a style of its own, which the library writes as an attribute.
      await type(String.raw`printf '\033[38;2;12;100;60mgre''en\033[0m\n'`);
      const green = page.locator(".xterm-rows span", { hasText: /^green$/ });
      await green.waitFor();
      const colour = () =>
        page.evaluate(
          `getComputedStyle([...document.querySelectorAll(".xterm-rows span")].find((one) => one.textContent === "green")).color`,
        );
      expect(await colour()).toBe("rgb(12, 100, 60)");
      await page.emulateMedia({ colorScheme: "dark" });
      const background = `getComputedStyle(document.querySelector(".terminal-panel")).backgroundColor`;
      expect(await page.evaluate(background)).toBe("rgb(29, 31, 32)");
      // Too dark for that background, so the library chooses a lighter one.
      await expect.poll(colour, POLL).not.toBe("rgb(12, 100, 60)");
      await page.emulateMedia({ colorScheme: "light" });
      expect(complaints).toEqual([]);
    });

    deepTest("tells the sandbox its size, also when it changes", async () => {
      const [rowsBefore = 0, colsBefore = 0] = await sizeOf("wide");
      expect(colsBefore).toBeGreaterThan(40);
      await page.getByRole("separator").focus();
      await page.keyboard.press("End");
      await page.locator(".terminal-panel textarea").focus();
      const [, colsDrawn = 0] = await sizeOf("drawn");
      expect(colsDrawn).toBeGreaterThan(colsBefore);
      await page.setViewportSize({ width: 390, height: 600 });
      const [rowsAfter = 0, colsAfter = 0] = await sizeOf("narrow");
      expect(colsAfter).toBeLessThan(colsDrawn / 2);
      expect(rowsAfter).not.toBe(0);
      expect(rowsBefore).not.toBe(0);
      const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect(await page.evaluate(overflow)).toBe(0);
      await page.setViewportSize({ width: 1200, height: 800 });
    });

    deepTest("pastes text as it is", async () => {
      await page.evaluate(`{
        const clipboardData = new DataTransfer();
        clipboardData.setData("text/plain", "printf '<%s>' 'pas''ted é'");
        const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
        document.querySelector(".terminal-panel textarea").dispatchEvent(event);
      }`);
      await page.keyboard.press("Enter");
      await shows("<pasted é>");
    });

    deepTest("keeps the title, the clipboard and the address from the sandbox", async () => {
      const title = await page.title();
      await type(
        String.raw`printf '\033]0;hacked\007\033]52;c;aGFja2Vk\007\033]8;;javascript:alert(1)\007li''nk\033]8;;\007\n'`,
      );
      await shows("link");
      const others: Page[] = [];
      page.context().on("page", (one) => others.push(one));
      page.on("dialog", (dialog) => complaints.push(dialog.message()));
      await page.locator(".xterm-rows").getByText("link", { exact: true }).click({ force: true });
      expect(await page.title()).toBe(title);
      expect([others, complaints]).toEqual([[], []]);
    });

    deepTest("comes back after the service was killed, with what was written meanwhile, once", async () => {
      await page.locator(".terminal-panel textarea").focus();
      await type("clear; stty -echo; PS1=; kept=yes");
      await type("for n in $(seq 1 15); do echo line-$n; sleep 1; done; echo $kept-sir");
      await shows("line-2");
      await life.end("SIGKILL");
      await expect.poll(status, POLL).toBe("The connection is lost. Trying again…");
      life = await installation.start({
        ...database(),
        ...LIGHT_AGENT,
        PLATFORM_PORT: new URL(life.url).port,
      });
      session = session.at(life);
      await expect.poll(status, POLL).toBe("");
      await shows("yes-sir");
      const numbers = [...(await rows()).matchAll(/line-(\d+)/g)].map(([, number]) => Number(number));
      // The panel shows the last of them.
      const [first = 0] = numbers;
      expect(numbers).toEqual(Array.from({ length: 16 - first }, (_, index) => first + index));
      expect(numbers.length).toBeGreaterThan(5);
      await type("stty echo; PS1='$ '");
    });

    deepTest("gets ten megabytes whole", async () => {
      await type("clear; seq 1 1300000; echo do''ne");
      await shows("done");
      expect(await rows()).toMatch(/1299999\s+1300000\s+done/);
      expect(complaints.filter((text) => !text.startsWith("WebSocket connection"))).toEqual([]);
    });

    deepTest("takes Tab and Escape, and lets the keyboard out by F6", async () => {
      const focused = "document.activeElement.getAttribute('aria-label')";
      await type("clear; cat -v");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Enter");
      await shows("^[");
      expect(await page.evaluate(focused)).toBe("Terminal input");
      await page.keyboard.press("Control+c");
      await page.keyboard.press("F6");
      expect(await page.evaluate(focused)).toBe("Close the terminal");
    });

    deepTest("is accessible, light and dark, also to a screen reader", async () => {
      await page.getByRole("button", { name: "Screen reader" }).click();
      await page.locator(".xterm-accessibility").waitFor();
      // The policy forbids scripts of others, but not what the browser's own tools run.
      await page.evaluate(axe.source);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const found = await page.evaluate(
          `axe.run(".terminal-panel").then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]))`,
        );
        expect(found).toEqual([]);
      }
      await page.emulateMedia({ colorScheme: "light" });
      await page.getByRole("button", { name: "Screen reader" }).click();
    });

    deepTest("says the shell's code, and starts another one", async () => {
      await closed();
      await opened();
      await type("exit 4");
      await expect.poll(status, POLL).toBe("The shell ended with code 4.");
      await page.getByRole("button", { name: "New shell" }).click();
      await shows(/\$|#/);
      await type("echo ne''w");
      await shows("new");
      await closed();
      const focused = "document.activeElement.textContent";
      expect(await page.evaluate(focused)).toBe("Open a terminal");
    });

    deepTest("says that there are too many", async () => {
      const ids = Array.from({ length: 8 }, () => crypto.randomUUID());
      const { url, headers } = session.address("terminal");
      url.protocol = "ws:";
      const { WebSocket } = await import("ws");
      const others = ids.map((id) => new WebSocket(`${url.href}?id=${id}&rows=24&cols=80`, { headers }));
      await Promise.all(others.map((one) => new Promise((resolve) => void one.once("message", resolve))));
      await open().click();
      await expect
        .poll(status, POLL)
        .toBe("At most 8 terminals and 64 other commands of people run in a session. Close one first.");
      for (const one of others) one.close(1000);
      await closed();
    });

    deepTest("ends with the session, and says so", async () => {
      await opened();
      await session.call("POST", "stop");
      // The stop ends the shell, then the connection.
      await expect
        .poll(status, POLL)
        .toMatch(/^The shell ended with code 143\.$|^The session is \w+\. It must be running\.$/);
      await open().waitFor({ state: "detached" });
    });
  },
);
