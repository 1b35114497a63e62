/** The documents at `/docs/guide`: each is a page that links to the others, needs no token and asks no other host. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hasChromium, launch, newPage } from "../dashboard/browser.ts";
import { files } from "../support/documents.ts";
import { TEST_MS } from "../support/patience.ts";
import { startTestService, type TestService } from "../support/service/service.ts";
import { onlyDeep } from "../support/vitest/rings.ts";

vi.setConfig({ testTimeout: TEST_MS, hookTimeout: TEST_MS });

const addresses = files("docs/**/*.md", "docs/*.md").map((file) =>
  `/${file}`
    .replace(/\.md$/, "")
    .replace(/\/README$/, "")
    .replace("/docs", "/docs/guide"),
);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const get = (target: string) => service.request("GET", target, { token: null });

describe("the guide", () => {
  it("has every document, and no link leads to a missing page", async () => {
    const pages = new Map<string, string>();
    for (const address of addresses) {
      // eslint-disable-next-line no-await-in-loop -- they are few
      const { status, text } = await get(address);
      expect([address, status]).toEqual([address, 200]);
      pages.set(address, text);
    }
    expect(pages.size).toBeGreaterThan(5);
    for (const [address, text] of pages) {
      for (const [, target = "", anchor] of text.matchAll(/href="(\/docs\/guide[^"#]*)(?:#([^"]*))?"/g)) {
        expect(pages.has(target), `${address} links to ${target}`).toBe(true);
        if (anchor !== undefined) expect(pages.get(target), target).toContain(` id="${anchor}"`);
      }
      expect(text).not.toMatch(/href="[^"]*\.md/);
    }
  });

  it("is linked from the API's page and from the dashboard", async () => {
    expect((await get("/docs")).text).toContain('href="/docs/guide"');
    expect((await get("/")).text).toContain('href="docs/guide"');
  });

  onlyDeep(() => {
    it.each([
      "/docs/guide/use/nothing",
      "/docs/guide/use/sessions.md",
      "/docs/guide/nothing",
      "/docs/guide/../package.json",
      "/docs/guide/..%2f..%2fpackage.json",
      "/docs/guide/use/%00",
    ])("answers %s with a page that explains the error", async (target) => {
      const answer = await get(target);
      expect([answer.status, answer.headers["content-type"]]).toEqual([404, "text/html; charset=utf-8"]);
      expect(answer.text).toContain("Page not found");
      expect(answer.headers["content-security-policy"]).toMatch(/^default-src 'none'; style-src 'sha256-/);
    });
  });
});

const title = hasChromium ? "in a browser" : "in a browser (/usr/bin/chromium is missing)";
onlyDeep(() => {
  describe.skipIf(!hasChromium)(title, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launch();
    });
    afterAll(() => browser.close());

    it("every page keeps to its own policy, loads nothing else, and cuts nothing off on a phone", async () => {
      const { page, complaints } = await newPage(browser, { width: 390 });
      const asked: string[] = [];
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      for (const address of addresses) {
        // eslint-disable-next-line no-await-in-loop -- one page at a time
        await page.goto(service.url + address);
        // eslint-disable-next-line no-await-in-loop
        const beyond = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
        expect([address, beyond]).toEqual([address, 0]);
      }
      expect(asked).toEqual(addresses);
      expect(complaints).toEqual([]);
    });

    it("leads the reader from one document to a section of another", async () => {
      const { page } = await newPage(browser, { dark: true });
      await page.goto(`${service.url}/docs/guide`);
      await page.getByRole("link", { name: "Webhooks" }).click();
      await page.getByRole("link", { name: "the ledger" }).click();
      expect(page.url()).toBe(`${service.url}/docs/guide/use/triggers#the-ledger`);
      await expect(page.locator("#the-ledger").textContent()).resolves.toContain("The ledger");
    });
  });
});
