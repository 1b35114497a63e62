/** From `npm start` to the first merge with nothing but the page: a real terminal, browser, sandbox and agent runtime. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startScriptedModel, type ScriptedModel } from "../../../demo/scripted-model.ts";
import { chosen } from "../../dashboard/states/state-of-a-page.ts";
import { followLink, hasChromium, launch, newPage } from "../../dashboard/browser.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { processesIn } from "../../support/machine/processes-in.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";

const MAIN = path.join(import.meta.dirname, "../../../src/main.ts");
/** Gives a program a terminal. */
const SCRIPT = "/usr/bin/script";
const POLL = { timeout: WAIT_MS, interval: 100 };
const CTRL_C = "\u0003";

const missing = [
  !existsSync(SCRIPT) && `${SCRIPT} is missing`,
  !hasChromium && "/usr/bin/chromium is missing",
  !sandboxesStartHere && "no sandbox starts here",
].filter(Boolean);
const title = ["a first start at a terminal", missing.length > 0 && `(${missing.join(", ")})`]
  .filter(Boolean)
  .join(" ");

describe.runIf(missing.length === 0)(title, () => {
  const guarded = guardedDirectory("platform-first-");
  let model: ScriptedModel;
  let child: ChildProcess;
  let output = "";

  beforeAll(async () => {
    model = await startScriptedModel();
    const { DATABASE_URL: _ours, ...environment } = process.env;
    child = spawn(SCRIPT, ["-qfec", `"${process.execPath}" "${MAIN}"`, "/dev/null"], {
      cwd: guarded.directory,
      env: {
        ...environment,
        PLATFORM_PORT: "0",
        PLATFORM_DATA_DIR: path.join(guarded.directory, "data"),
        PLATFORM_LLM_BASE_URL: model.url,
        PLATFORM_LLM_API_KEY: "scripted",
        PLATFORM_LLM_TIERS: '["free"]',
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdout?.on("data", (bytes: Buffer) => (output += bytes.toString()));
    await vi.waitFor(() => expect(output).toMatch(/^ready http/m), POLL);
  }, TEST_MS);

  afterAll(async () => {
    child.stdin?.write(CTRL_C);
    await vi.waitFor(() => expect(child.exitCode).not.toBe(null), POLL);
    await model.close();
    for (const pid of processesIn(guarded.directory)) process.kill(pid, "SIGKILL");
    guarded.remove();
  }, TEST_MS);

  it(
    "prints a link that leads in four steps to the first merge",
    async () => {
      const link = /http:\S+\/dashboard\/open\?code=\S+/.exec(output)?.[0] ?? "";
      expect(output).toMatch(/^platform_pat_[\w-]{43}\r?$/m);
      const browser = await launch();
      try {
        const { page, complaints } = await newPage(browser);
        const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
        const agree = (name: string) =>
          page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
        await followLink(page, link);
        await page.getByRole("link", { name: "Create a project" }).click();
        await page.getByLabel("Project name").fill("greeter");
        await press("Create the project");
        await page.getByText("The operator's gateway provides it.").waitFor();
        await page.getByLabel("What should the agent do?").fill("write first.md: from the agent");
        await press("Start session");
        await page.getByRole("log").getByText("Wrote first.md and pushed it").waitFor();
        await page.locator(".state-word", { hasText: "Ready for review" }).waitFor();
        await press("Open a change request");
        await agree("Open");
        await page.getByRole("link", { name: "Open it" }).click();
        await page.getByText("first.md").first().waitFor();
        await press("Merge");
        await agree("Merge");
        await page.locator(".badge", { hasText: "merged" }).waitFor();
        await page.getByRole("link", { name: "greeter" }).click();
        await page.getByRole("link", { name: "write first.md" }).click();
        await chosen("Stop session")(page);
        await agree("Stop");
        await page.getByRole("button", { name: "Send and restart" }).waitFor();
        expect(complaints).toEqual([]);
      } finally {
        await browser.close();
      }
    },
    TEST_MS,
  );
});
