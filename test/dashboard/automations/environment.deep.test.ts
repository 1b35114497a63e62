/** A project's environment, its builds and their logs, on their pages and on those of sessions. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, useBrowser } from "../browser.ts";
import { changeBuild } from "../fakes/fake-environment.ts";
import type { World } from "../fakes/fake-service.ts";
import {
  BUILD_ID,
  DEVCONTAINER,
  FAILED_BUILD_ID,
  READY_BUILD_ID,
  STEP_FAILED,
} from "../samples/sample-environment.ts";
import { FAILED_ID, makeWorld, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import {
  failedForIt,
  isReady,
  withBuild,
  withEnvironment,
  withSandbox,
} from "../states/states-of-environment.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const ENVIRONMENT = `${PROJECT}/environment`;
const BUILD = `${ENVIRONMENT}/builds/${BUILD_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

const worldWith = (change: (world: World) => void = () => undefined): World => {
  // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
  const world = makeWorld(Date.now());
  change(world);
  return world;
};

const many = (count: number, text = "a line") =>
  Array.from({ length: count }, (_, at) => `${text} ${String(at)}\n`).join("");

const logOf = (page: Page) => page.getByRole("region", { name: "Log of the build" });
/** How far the end of the log is below what is in view, in pixels. */
const BELOW = `(() => {
  const log = document.querySelector(".build-log");
  return Math.round(log.scrollHeight - log.scrollTop - log.clientHeight);
})()`;
/** The browser scrolls smoothly. */
const SCROLLED = `new Promise((done) => {
  document.querySelector(".build-log").addEventListener("scrollend", done, { once: true });
}).then(() => true)`;
const ELEMENTS = `document.querySelector(".build-log").querySelectorAll("*").length`;

const title = hasChromium ? "an environment" : "an environment (/usr/bin/chromium is missing)";
describe.skipIf(!hasChromium)(title, () => {
  const start = useBrowser();

  it("follows the step of a build, and its end", async () => {
    const { page, visit, fake } = await start(worldWith());
    await visit(ENVIRONMENT);
    const state = page.locator(".build-state [role=status]");
    await state.getByText("step 2, line 3").waitFor();
    await page.getByText("Until it is ready, sessions start on the last image.").waitFor();
    // A step is no event.
    changeBuild(fake.world, BUILD_ID, { step: { step: 3, line: 5, instruction: "RUN make" } });
    await state.getByText("step 3, line 5: RUN make").waitFor();
    isReady(fake.world);
    await page.getByRole("button", { name: "Build again" }).waitFor();
    fake.emit("environment.build");
    await page.locator("dd", { hasText: "build 5c2a0b01" }).waitFor();
    expect((await state.innerText()).trim()).toBe("ready");
  });

  it("shows the base images, and that one has changed since the build", async () => {
    const all = worldWith();
    // The last image was built from the same files.
    const [newest, ...others] = all.builds;
    for (const one of others) Object.assign(one, { key: newest?.["key"] });
    const { page, visit, fake } = await start(all);
    await visit(ENVIRONMENT);
    const base = page.locator("li", { hasText: "images.example.com/team/debian:13" });
    await base.filter({ hasText: "sha256:bbbbbbbbbbbb, looked up" }).waitFor();
    expect(await base.innerText()).toContain("changed since the build");
    await page.locator("dd", { hasText: "stale: a base image has changed since" }).waitFor();
    const bases = [
      {
        reference: "images.example.com/other:1",
        digest: null,
        built_digest: null,
        looked_up_at: null,
        problem: "away",
      },
    ];
    fake.world.environment = { ...fake.world.environment, bases };
    await page.reload();
    await page.getByText("looked up never. The last look failed: away").waitFor();
  });

  it("shows the setup command, or how to add one", async () => {
    const { page, visit, fake } = await start(worldWith());
    await visit(ENVIRONMENT);
    await page.getByLabel("Setup command").getByText("npm ci").waitFor();
    fake.world.environment = { ...fake.world.environment, setup: null };
    await page.reload();
    await page.getByLabel("Copy the setup command").waitFor();
    expect(await page.getByLabel("the setup command", { exact: true }).innerText()).toBe(
      '[environment]\nsetup = "npm ci"',
    );
  });

  it("says of a failed build what failed, on which line, and what to do", async () => {
    const failed = withBuild({ status: "failed", failure: STEP_FAILED });
    const { page, visit } = await start(worldWith(failed));
    await visit(ENVIRONMENT);
    const callout = page.locator(".callout");
    await callout.getByText("The build failed: step 2 on line 3 failed with exit code 100.").waitFor();
    const told = await callout.innerText();
    expect(told).toContain("Line 3: RUN apt-get update");
    expect(told).toContain("E: Unable to locate package pyhton3");
    expect(told).toContain("Change the Dockerfile");
    await page.getByText("Sessions start on the last image.").waitFor();
  });

  it.each([
    ["base_unavailable", "ask your operator to allow the hosts of its registry in PLATFORM_EGRESS_ALLOW"],
    ["egress_denied", "ask your operator to add this host to PLATFORM_EGRESS_ALLOW"],
    ["timeout", "Make the build smaller"],
    ["interrupted", "This may be temporary. Build again."],
  ])("advises after %s", async (code, advice) => {
    const failure = { code, message: "The build failed." };
    const { page, visit } = await start(worldWith(withBuild({ status: "failed", failure })));
    await visit(BUILD);
    await page.locator(".callout").getByText(advice).waitFor();
  });

  it("shows 50 builds, and older ones when asked", async () => {
    const { page, visit } = await start(
      worldWith((world) => {
        const [, ready] = world.builds;
        const older = Array.from({ length: 57 }, (_, at) => ({
          ...ready,
          id: `01995f20-b000-7b0e-8a44-${String(at).padStart(12, "0")}`,
        }));
        world.builds = [...world.builds, ...older];
      }),
    );
    await visit(ENVIRONMENT);
    await page.locator(".row").first().waitFor();
    expect(await page.locator(".row").count()).toBe(50);
    await page.getByRole("button", { name: "Show older builds" }).click();
    await expect.poll(() => page.locator(".row").count()).toBe(60);
    expect(await page.getByRole("button", { name: "Show older builds" }).count()).toBe(0);
    await page.getByRole("link", { name: /^Build 5c2a0b03, failed/ }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe(`${ENVIRONMENT}/builds/${FAILED_BUILD_ID}`);
  });

  it("of the machine's own files comes with two lines for a Dockerfile", async () => {
    const { page, visit } = await start(worldWith(withEnvironment({ kind: "machine" })));
    await visit(ENVIRONMENT);
    const lines = page.getByLabel("the Dockerfile", { exact: true });
    await lines.waitFor();
    expect((await lines.innerText()).trim().split("\n").length).toBe(2);
    await page.getByText("A build reaches only the hosts that your operator allows").waitFor();
    expect(await page.getByRole("button", { name: /^Build/ }).count()).toBe(0);
  });

  it("of a node that builds nothing says so once, and offers nothing that has no effect", async () => {
    const none = { kind: "dockerfile", builder: null, dockerfile: worldWith().environment["dockerfile"] };
    const { page, visit, fake } = await start(worldWith(withEnvironment(none)));
    await visit(ENVIRONMENT);
    await page.getByText("The machine's own files. Agents find the programs").waitFor();
    await page
      .getByText("is not built, because this node builds no images (PLATFORM_BUILDER=none)")
      .waitFor();
    expect(await page.getByRole("button", { name: /^Build/ }).count()).toBe(0);
    fake.world.environment = { ...fake.world.environment, kind: "machine", dockerfile: null };
    await page.reload();
    await page.getByText("A Dockerfile has no effect.").waitFor();
    expect(await page.getByLabel("the Dockerfile", { exact: true }).count()).toBe(0);
  });

  it("of a machine with a devcontainer.json comes with the lines that use it", async () => {
    const devcontainer = { ...DEVCONTAINER, used: false, variables: {}, commands: [], ignored: [] };
    const { page, visit } = await start(worldWith(withEnvironment({ kind: "machine", devcontainer })));
    await visit(ENVIRONMENT);
    const lines = page.getByLabel("the lines for platform.toml", { exact: true });
    await lines.waitFor();
    expect((await lines.innerText()).trim().split("\n")).toEqual([
      "[environment]",
      `devcontainer = "${DEVCONTAINER.path}"`,
    ]);
  });

  it("of a devcontainer.json names the file, its variables and the ignored fields", async () => {
    const devcontainer = { kind: "devcontainer", devcontainer: DEVCONTAINER };
    const { page, visit } = await start(
      worldWith((world) => {
        world.environment = { ...world.environment, ...devcontainer };
      }),
    );
    await visit(ENVIRONMENT);
    await page.getByText("NODE_ENV=development").waitFor();
    await page.getByText("remoteUser postAttachCommand containerEnv.GITHUB_TOKEN").waitFor();
    await page.getByText(`From ${DEVCONTAINER.path}.`).waitFor();
  });

  it("shows why a build was refused", async () => {
    const { page, visit, fake } = await start(worldWith(isReady));
    await visit(ENVIRONMENT);
    fake.world.refused = { status: 409, code: "no_dockerfile", error: "The project has no Dockerfile." };
    await page.getByRole("button", { name: "Build again" }).click();
    await page.locator(".notices").getByRole("alert").getByText("The project has no Dockerfile.").waitFor();
    expect(new URL(page.url()).hash).toBe(ENVIRONMENT);
  });

  it("names the build on whose image a session runs", async () => {
    const { page, visit, fake } = await start(
      worldWith(withSandbox({ build_id: READY_BUILD_ID, stale: false }, true)),
    );
    await visit(`${SESSION}?tab=details`);
    const row = page.locator("dl.facts > div", { hasText: "Environment" });
    await row.getByText("build 5c2a0b02").waitFor();
    expect(await row.locator("dd").innerText()).toBe("build 5c2a0b02");
    withSandbox({ build_id: READY_BUILD_ID, stale: true }, true)(fake.world);
    fake.emit("sandbox.environment");
    await row.getByText("stale: the newer image was not ready when the sandbox started").waitFor();
  });

  it("leads from a session that waits for the first build to the log", async () => {
    const { page, visit, fake } = await start(
      worldWith(withSandbox({ build_id: BUILD_ID, stale: false }, false)),
    );
    await visit(`${SESSION}?tab=details`);
    await page.getByText("The sandbox waits for the first build").waitFor();
    await page.getByText("waits for build 5c2a0b01").waitFor();
    // The build is over, and the sandbox waits for its place.
    isReady(fake.world);
    fake.emit("environment.build");
    await page.getByText("The sandbox waits for the first build").waitFor({ state: "detached" });
    changeBuild(fake.world, BUILD_ID, { status: "building" });
    fake.emit("environment.build");
    await page.getByRole("link", { name: "Show its log" }).click();
    await logOf(page).getByText("Get:1 http://packages.example").waitFor();
  });

  it("leads from a session that it failed to its page", async () => {
    const { page, visit } = await start(worldWith(failedForIt));
    await visit(`${PROJECT}/sessions/${FAILED_ID}`);
    await page.locator(".callout").getByText("E: Unable to locate package pyhton3").waitFor();
    await page.getByRole("link", { name: "Show the environment" }).click();
    await page.getByRole("heading", { name: "Sandboxes run on" }).waitFor();
  });
});

describe.skipIf(!hasChromium)("the log of a build", () => {
  const start = useBrowser();

  it("grows, and keeps its end in view unless the reader scrolled up", async () => {
    const { page, visit, fake } = await start(worldWith());
    const { [BUILD_ID]: pieces = [] } = fake.world.buildLogs;
    pieces.push(many(3000));
    await visit(BUILD);
    const log = logOf(page);
    await log.getByText("a line 2999").waitFor();
    await expect.poll(() => page.evaluate(BELOW)).toBe(0);
    pieces.push(many(200, "more"));
    await log.getByText("more 199").waitFor();
    await expect.poll(() => page.evaluate(BELOW)).toBe(0);
    await log.focus();
    const scrolled = page.evaluate(SCROLLED);
    await page.keyboard.press("PageUp");
    await scrolled;
    expect(await page.evaluate(BELOW)).toBeGreaterThan(100);
    const before = await log.evaluate((element) => element.scrollTop);
    pieces.push(many(200, "unseen"));
    await log.getByText("unseen 199").waitFor();
    expect(await log.evaluate((element) => element.scrollTop)).toBe(before);
    await page.keyboard.press("End");
    await expect.poll(() => page.evaluate(BELOW)).toBe(0);
    pieces.push("the last line");
    await log.getByText("the last line").waitFor();
    await expect.poll(() => page.evaluate(BELOW)).toBe(0);
  });

  it("is read while the page is visible, until the build is over", async () => {
    const { page, visit, fake } = await start(worldWith());
    let reads = 0;
    page.on("request", (request) => {
      if (request.url().includes("/log?")) reads += 1;
    });
    const { [BUILD_ID]: pieces = [] } = fake.world.buildLogs;
    await page.clock.install();
    await visit(BUILD);
    await logOf(page).getByText("Get:1").waitFor();
    const see = (state: string) =>
      page.evaluate(
        `Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true })`,
      );
    const reply = page.waitForResponse(/\/builds\/[^/]+$/);
    await page.clock.runFor(1100);
    await reply;
    await see("hidden");
    await page.clock.runFor(1100);
    const seen = reads;
    pieces.push("written meanwhile\n");
    await page.clock.runFor(10_000);
    expect(reads).toBe(seen);
    await see("visible");
    await page.clock.runFor(1100);
    await logOf(page).getByText("written meanwhile").waitFor();
    pieces.push("the end\n");
    isReady(fake.world);
    await page.clock.runFor(1100);
    await logOf(page).getByText("the end").waitFor();
    await page.getByRole("button", { name: "Build again" }).waitFor();
    const all = reads;
    await page.clock.runFor(60_000);
    expect(reads).toBe(all);
  });

  it("says why it cannot be read, and goes on when it can", async () => {
    const { page, visit, fake } = await start(worldWith());
    const { [BUILD_ID]: pieces = [] } = fake.world.buildLogs;
    await visit(BUILD);
    await logOf(page).getByText("Get:1").waitFor();
    fake.world.broken = { status: 503, error: "The database cannot be reached." };
    const problem = page.locator("section", { has: logOf(page) }).getByRole("alert");
    await problem.getByText("The database cannot be reached.").waitFor();
    pieces.push("written meanwhile\n");
    fake.world.broken = null;
    await logOf(page).getByText("written meanwhile").waitFor();
    await problem.waitFor({ state: "detached" });
    expect((await logOf(page).innerText()).match(/Get:1/g)?.length).toBe(1);
  });

  it("begins again when the build does", async () => {
    const { page, visit, fake } = await start(worldWith());
    await visit(BUILD);
    const log = logOf(page);
    await log.getByText("Get:1").waitFor();
    fake.world.buildLogs[BUILD_ID] = [];
    changeBuild(fake.world, BUILD_ID, { tries: 2, status: "resolving", step: null });
    await log.getByText("Get:1").waitFor({ state: "detached" });
    fake.world.buildLogs[BUILD_ID] = ["the second try\n", "goes on\n"];
    changeBuild(fake.world, BUILD_ID, { status: "building" });
    await log.getByText("goes on").waitFor();
    expect((await log.innerText()).trim().split("\n")).toEqual(["the second try", "goes on"]);
  });

  it("of 4 MiB is whole, in a bounded number of elements", async () => {
    const line = `${"0123456789".repeat(7)}\n`;
    const world = worldWith(isReady);
    const whole = line.repeat(Math.floor((4 * 1024 * 1024) / line.length));
    const pieces = Array.from({ length: 700 }, (_, at) =>
      whole.slice(Math.ceil((at * whole.length) / 700), Math.ceil(((at + 1) * whole.length) / 700)),
    );
    world.buildLogs[BUILD_ID] = [...pieces, "the end\n"];
    const { page, visit } = await start(world);
    await visit(BUILD);
    await logOf(page).getByText("the end").waitFor();
    expect(await logOf(page).evaluate((element) => element.textContent?.length)).toBe(whole.length + 8);
    expect(await page.evaluate(ELEMENTS)).toBeLessThanOrEqual(300);
    await expect.poll(() => page.evaluate(BELOW)).toBe(0);
    await logOf(page).focus();
    await page.keyboard.press("Home");
    await expect.poll(() => logOf(page).evaluate((element) => element.scrollTop)).toBe(0);
  });

  it("without ends of lines is bounded, too, and splits no character", async () => {
    const world = worldWith(isReady);
    const whole = `x${"😀".repeat(500_000)}`;
    world.buildLogs[BUILD_ID] = [whole];
    const { page, visit } = await start(world);
    await visit(BUILD);
    await logOf(page).locator(".pieces > span").first().waitFor();
    expect(await logOf(page).evaluate((element) => element.textContent)).toBe(whole);
    const parts = await logOf(page).locator(".pieces > span").allTextContents();
    expect(parts.length).toBeLessThanOrEqual(100);
    expect(parts.every((part) => part.isWellFormed())).toBe(true);
  });

  it("shows control characters as text, also at the border of two pieces", async () => {
    const world = worldWith();
    world.buildLogs[BUILD_ID] = ["\u001b[31mred 50%\r", "100%\r", "\ndone\u0000\u202e\n"];
    const { page, visit } = await start(world);
    await visit(BUILD);
    await logOf(page).getByText("done").waitFor();
    expect(await logOf(page).evaluate((element) => element.textContent)).toBe(
      "␛[31mred 50%␍100%\r\ndone␀[U+202E]\n",
    );
  });
});
