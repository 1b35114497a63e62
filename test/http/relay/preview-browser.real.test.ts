/** Two previews in one real browser: what a page of the one can have the browser do at the other. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPreviewWorld, type PreviewWorld } from "../../support/service/sessions/preview-setup.ts";
import { hasChromium, launchWith, newPage } from "../../dashboard/browser.ts";

const title = hasChromium
  ? "another preview's page"
  : "another preview's page (/usr/bin/chromium is missing)";
/** Where previews are, and what tells the browser so. Below one domain they are one site, whose cookies they all bring. */
const DOMAINS = [
  ["localhost", {}, () => []],
  [
    "a domain of the operator's",
    { PLATFORM_PREVIEW_URL: "http://*.preview.test" },
    (port: number) => [
      `--host-resolver-rules=MAP *.preview.test 127.0.0.1:${port}`,
      // As if there were TLS: a browser says where a request comes from to such origins alone.
      "--unsafely-treat-insecure-origin-as-secure=*.preview.test",
    ],
  ],
] as const;

/** Requests that a page can cause at an address without a click. Each is a promise of its end. */
const ATTACKS: Readonly<Record<string, (url: string) => string>> = {
  fetch: (url) => `fetch("${url}", { credentials: "include", mode: "no-cors" })`,
  post: (url) => `fetch("${url}", { credentials: "include", mode: "no-cors", method: "POST" })`,
  script: (url) =>
    `new Promise((done) => document.head.append(Object.assign(document.createElement("script"), { src: "${url}", onerror: done, onload: done })))`,
  frame: (url) =>
    `new Promise((done) => document.body.append(Object.assign(document.createElement("iframe"), { src: "${url}", onload: done })))`,
  socket: (url) => `new Promise((done) => { new WebSocket("${url.replace("http", "ws")}").onclose = done; })`,
};

describe.skipIf(!hasChromium).each(DOMAINS)(`${title} below %s`, (_name, settings, switches) => {
  let world: PreviewWorld;
  let browser: Browser;
  let page: Page;
  /** Serves the other preview: an agent's page, so anything. */
  const other = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>The other</h1>");
  });
  const victim = () => `http://${world.host}`;

  beforeAll(async () => {
    world = await startPreviewWorld(settings);
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    browser = await launchWith(switches(world.service.port));
  });
  afterAll(async () => {
    await browser.close();
    await world.close();
    other.closeAllConnections();
    other.close();
  });
  beforeEach(async () => {
    ({ page } = await newPage(browser));
    const { port } = other.address() as AddressInfo;
    // The reader has opened both.
    await page.goto(`${victim()}${await world.link()}`);
    await page.getByText("app /").waitFor();
    const host = world.host.replace(`p${world.port}-`, `p${port}-`);
    await page.goto(`http://${host}${await world.link({ port })}`);
    await page.getByRole("heading", { name: "The other" }).waitFor();
    world.heard.length = 0;
  });

  it("fetches, posts, loads, shows and connects there, and the app gets no request", async () => {
    for (const [name, attack] of Object.entries(ATTACKS)) {
      // eslint-disable-next-line no-await-in-loop -- each is tried alone
      await page.evaluate(`${attack(`${victim()}/${name}`)}.then(() => undefined)`);
      expect(world.heard, name).toEqual([]);
    }
    await page.context().close();
  });

  it("may lead there, as every link may", async () => {
    await page.evaluate(`location.assign("${victim()}/led")`);
    await page.getByText("app /led").waitFor();
    expect(world.heard[0]).toMatchObject({ method: "GET", url: "/led" });
    await page.context().close();
  });

  it("cannot read the preview's cookie, nor replace it", async () => {
    const domain = new URL(victim()).hostname.replace(/^[^.]*[.]/, "");
    const planted = `platform_preview=${"x".repeat(43)}`;
    for (const attributes of ["path=/", "path=/below", `domain=${domain}`, `domain=${domain}; path=/below`]) {
      // eslint-disable-next-line no-await-in-loop -- one cookie after the other
      await page.evaluate(`document.cookie = "${planted}; ${attributes}"`);
    }
    const ours = (await page.context().cookies()).filter(({ httpOnly }) => httpOnly);
    expect(ours).toHaveLength(2);
    const readable = String(await page.evaluate("document.cookie"));
    for (const { value } of ours) expect(readable).not.toContain(value);
    const { origin } = new URL(page.url());
    await page.goto(`${origin}/below/x`);
    await page.getByRole("heading", { name: "The other" }).waitFor();
    await page.goto(`${victim()}/below/y`);
    await page.getByText("app /below/y").waitFor();
    expect(world.heard[0]?.headers.cookie).toBeUndefined();
    await page.context().close();
  });
});
