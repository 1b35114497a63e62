/** The page at `/docs` in a real browser: it is complete, and the browser contacts no other host. In the deep tests the guide's pages, too. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { examples } from "../../../src/assembly/api.ts";
import { hasChromium, launch, newPage } from "../../dashboard/browser.ts";
import { guideAddresses } from "../../support/documents.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { TEST_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

// Real programs on a busy machine: a limit that ends a hung test.
vi.setConfig({ testTimeout: TEST_MS, hookTimeout: TEST_MS });

const title = hasChromium
  ? "the documentation page"
  : "the documentation page (/usr/bin/chromium is missing)";

describe.skipIf(!hasChromium)(title, () => {
  let service: TestService;
  let browser: Browser;
  beforeAll(async () => {
    service = await startTestService();
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    await service.close();
  });

  it("shows every operation, loads nothing from other hosts, and keeps to its own policy", async () => {
    const { page, complaints } = await newPage(browser);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    const answer = await page.goto(`${service.url}/docs`, { waitUntil: "networkidle" });
    const policy = answer?.headers()["content-security-policy"] ?? "";
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^ ']+'; /);
    expect(policy).not.toContain("unsafe");
    for (const [id, { summary }] of Object.entries(examples().operations)) {
      await expect(page.locator(`section[id="${id}"]`).textContent()).resolves.toContain(summary);
    }
    // The style is in force: the policy's hash is the style's.
    const width = await page.evaluate<string>("getComputedStyle(document.body).maxWidth");
    expect(width).toBe("960px");
    await page.getByRole("link", { name: "sessions.create" }).click();
    expect(page.url()).toMatch(/#sessions\.create$/);
    expect(new Set(asked.map((url) => new URL(url).origin))).toEqual(new Set([service.url]));
    expect(complaints).toEqual([]);
  });

  deepTest("cuts nothing off on a phone", async () => {
    const { page } = await newPage(browser);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${service.url}/docs`);
    const beyond = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    expect(beyond).toBe(0);
  });

  deepTest("every document's page loads nothing else, and cuts nothing off on a phone", async () => {
    const { page, complaints } = await newPage(browser, { width: 390 });
    const addresses = guideAddresses();
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

  deepTest("a document leads the reader to a section of another", async () => {
    const { page } = await newPage(browser, { dark: true });
    await page.goto(`${service.url}/docs/guide`);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "the ledger" }).click();
    expect(page.url()).toBe(`${service.url}/docs/guide/use/triggers#the-ledger`);
    await expect(page.locator("#the-ledger").textContent()).resolves.toContain("The ledger");
  });
});
