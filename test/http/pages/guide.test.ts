/** The documents at `/docs/guide`: each is a page that links to the others, needs no token and asks no other host. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { guideAddresses } from "../../support/documents.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const get = (target: string) => service.request("GET", target, { token: null });

describe("the guide", () => {
  it("has every document, and no link leads to a missing page", async () => {
    const pages = new Map<string, string>();
    for (const address of guideAddresses()) {
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

  it("is linked from the API's page", async () => {
    expect((await get("/docs")).text).toContain('href="/docs/guide"');
  });

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
