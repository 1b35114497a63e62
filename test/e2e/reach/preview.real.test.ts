/**
 * A port of a real sandbox in a real browser, and the usual WebSocket library through both ways to it: the relay with a
 * token, the preview with its cookie. The development server is Vite, which the session's repository brings along.
 */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import path from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { followLink, hasChromium, launch, newPage } from "../../dashboard/browser.ts";
import { commitToSample, LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, LIGHT_AGENT, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";

const VITE_PORT = 5173;
const ECHO_PORT = 5174;
const MIB = 1024 * 1024;

/** What Vite needs to serve a page without styles: 25 MB, most of it rolldown's native part. */
const PACKAGES = [
  "vite",
  "rolldown",
  "@rolldown/pluginutils",
  "@rolldown/binding-linux-x64-gnu",
  "@oxc-project/types",
  "postcss",
  "nanoid",
  "picocolors",
  "source-map-js",
  "picomatch",
  "tinyglobby",
  "fdir",
  "ws",
];

let installation: Installation;
let database: ReturnType<typeof useRunDatabase>;
let life: Life;
let session: LiveSession;

/** Leaves a program running behind the agent's shell. */
const serve = (command: string): Promise<void> => session.run(`(setsid ${command} > server.log 2>&1 &)`);

const startEverything = async (): Promise<void> => {
  installation = await Installation.open();
  const modules = path.join(import.meta.dirname, "../../../node_modules");
  const packages = PACKAGES.map((name) => [`site/node_modules/${name}`, path.join(modules, name)]);
  commitToSample(installation, {
    site: path.join(import.meta.dirname, "../site"),
    "site/websocket-server.mjs": path.join(import.meta.dirname, "../../sandbox/websocket-server.mjs"),
    ...Object.fromEntries(packages),
  });
  life = await installation.start({ ...database(), ...LIGHT_AGENT });
  session = await LiveSession.start(life, installation);
  await serve(`node site/websocket-server.mjs ${ECHO_PORT}`);
  await session.listening(ECHO_PORT);
};

const link = async (port: number): Promise<URL> =>
  new URL(String((await session.call("POST", "preview", { port }))["url"]));

/** Where a client goes, and what it brings. */
interface Address {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/** Opens a link as a browser would, without one. @returns what each further request brings. */
const entered = async (port: number): Promise<Address> => {
  const { host, pathname, search } = await link(port);
  const asked = request(`${life.url}${pathname}${search}`, { headers: { host }, agent: false });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.resume();
  const cookie = answer.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
  return { url: new URL(life.url), headers: { host, cookie } };
};

/** Both ways to the echoing server. */
const WAYS = [
  ["the relay, with a token", async (): Promise<Address> => session.address(`ports/${ECHO_PORT}/`)],
  ["a preview, with its cookie", (): Promise<Address> => entered(ECHO_PORT)],
] as const;

const connected = async ({ url, headers }: Address): Promise<WebSocket> => {
  const socket = new WebSocket(url.href.replace(/^http/, "ws"), {
    headers,
    perMessageDeflate: { threshold: 0 },
  });
  await once(socket, "open");
  return socket;
};

/** Says something and waits for what comes of it. */
const echoed = async (socket: WebSocket, message: string | Buffer): Promise<Buffer> => {
  const answer = once(socket, "message") as Promise<[Buffer, boolean]>;
  socket.send(message);
  const [data, isBinary] = await answer;
  expect(isBinary).toBe(typeof message !== "string");
  return data;
};

const inChromium = hasChromium ? "in Chromium" : "in Chromium (/usr/bin/chromium is missing)";

describe.runIf(sandboxesStartHere)("a port of a running session", () => {
  database = useRunDatabase();
  beforeAll(startEverything, TEST_MS);
  afterAll(async () => {
    try {
      await session?.stop();
    } finally {
      await life?.end("SIGTERM");
      await installation?.close();
    }
  }, TEST_MS);

  it.each(WAYS)(
    "carries a WebSocket's text, bytes and messages of 1 MiB, compressed as the two ends agree, through %s",
    async (_, way) => {
      const socket = await connected(await way());
      expect(socket.extensions).toContain("permessage-deflate");
      expect(String(await echoed(socket, "grüße, 世界"))).toBe("grüße, 世界");
      const bytes = Buffer.from(Array.from({ length: 256 }, (__, index) => index));
      expect((await echoed(socket, bytes)).equals(bytes)).toBe(true);
      const large = Buffer.alloc(MIB, bytes);
      const back = await echoed(socket, large);
      expect(back.equals(large)).toBe(true);
      expect(String(await echoed(socket, "x".repeat(MIB)))).toBe("x".repeat(MIB));
      socket.terminate();
    },
  );

  describe.runIf(hasChromium)(inChromium, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launch();
      await serve(`sh -c "cd site && node node_modules/vite/bin/vite.js --port ${VITE_PORT} --strictPort"`);
      await session.listening(VITE_PORT);
    }, TEST_MS);
    afterAll(() => browser.close());

    it(
      "shows Vite's page from the dashboard, and a source change without a reload",
      async () => {
        const { context, page: dashboard } = await newPage(browser);
        const signIn = await life.call("POST", "/dashboard/links", {});
        await followLink(dashboard, String(signIn["url"]));
        await dashboard.goto(`${life.url}/#${session.path.replace("/v1", "")}?tab=preview`);
        await dashboard.getByRole("button", { name: /^Open (?:a|another) port$/ }).click();
        await dashboard.getByRole("textbox", { name: "Port" }).fill(String(VITE_PORT));
        await dashboard.keyboard.press("Enter");
        const opening = context.waitForEvent("page");
        await dashboard.getByRole("link", { name: "Open the port" }).click();
        const page = await opening;
        const complaints: string[] = [];
        page.on("pageerror", ({ message }) => complaints.push(message));
        const { origin, hostname } = await link(VITE_PORT);
        await page.waitForURL(`${origin}/`);
        await page.getByText("Hello", { exact: true }).waitFor();
        const cookies = await context.cookies(origin);
        expect(cookies).toMatchObject([
          { domain: hostname, path: "/", httpOnly: true, sameSite: "Lax", secure: false },
        ]);
        expect(await page.evaluate("document.cookie")).toBe("");
        await page.getByLabel("Note").fill("typed before the change");
        await page.evaluate("window.kept = 'since the page was loaded'");
        await session.run(`echo 'export const greeting = "Good day";' > site/greeting.js`);
        await page.getByText("Good day", { exact: true }).waitFor();
        expect(await page.getByLabel("Note").inputValue()).toBe("typed before the change");
        expect(await page.evaluate("window.kept")).toBe("since the page was loaded");
        expect(complaints).toEqual([]);
        await context.close();
      },
      TEST_MS,
    );
  });
});
