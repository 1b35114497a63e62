/**
 * A newcomer's whole way, with real parts: from the link at a terminal to the first merge, following only what the page says.
 *
 * The scripted model can only stand behind the operator's gateway, because sandboxes reach no private address. So the newcomer
 * names a key first, as without a gateway; then the operator restarts the service with one, under the open page.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ScriptedModel, startScriptedModel } from "../../../demo/scripted-model.ts";
import { chosen } from "../../dashboard/states/state-of-a-page.ts";
import { followLink, hasChromium, launch, newPage } from "../../dashboard/browser.ts";
import { gitOk } from "../../git/git-client.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { processesIn } from "../../support/machine/processes-in.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { commitFiles } from "../../support/service/requests.ts";

const MAIN = path.join(import.meta.dirname, "../../../src/main.ts");
/** Gives a program a terminal. */
const SCRIPT = "/usr/bin/script";
const POLL = { timeout: WAIT_MS, interval: 100 };
const CTRL_C = "\u0003";

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** The steps of the first run. */
const stepOf = (page: Page) => (name: string) =>
  page.getByRole("listitem").filter({ has: page.getByRole("heading", { name }) });

const missing = [
  !existsSync(SCRIPT) && `${SCRIPT} is missing`,
  !hasChromium && "/usr/bin/chromium is missing",
  !sandboxesStartHere && "no sandbox starts here",
].filter(Boolean);
const title = ["a newcomer", missing.length > 0 && `(${missing.join(", ")})`].filter(Boolean).join(" ");

describe.runIf(missing.length === 0)(title, () => {
  const guarded = guardedDirectory("platform-newcomer-");
  let model: ScriptedModel;
  let browser: Browser;
  let port = 0;
  let child: ChildProcess | null = null;
  let output = "";

  /** `npm start` at a terminal, until it is ready. */
  const startService = async (settings: Readonly<Record<string, string>>): Promise<void> => {
    const { DATABASE_URL: _ours, ...environment } = process.env;
    output = "";
    child = spawn(SCRIPT, ["-qfec", `${process.execPath} ${MAIN}`, "/dev/null"], {
      cwd: guarded.directory,
      env: {
        ...environment,
        PLATFORM_PORT: String(port),
        PLATFORM_DATA_DIR: path.join(guarded.directory, "data"),
        PLATFORM_LLM_BASE_URL: "",
        PLATFORM_LLM_TIERS: "[]",
        ...settings,
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdout?.on("data", (bytes: Buffer) => (output += bytes.toString()));
    await vi.waitFor(() => expect(output).toMatch(/^ready http/m), POLL);
  };
  const stopService = async (): Promise<void> => {
    child?.stdin?.write(CTRL_C);
    await vi.waitFor(() => expect(child?.exitCode).not.toBe(null), POLL);
  };

  beforeAll(async () => {
    model = await startScriptedModel();
    browser = await launch();
    port = await freePort();
    await startService({});
  }, TEST_MS);

  afterAll(async () => {
    await browser.close();
    await stopService();
    await model.close();
    for (const pid of processesIn(guarded.directory)) process.kill(pid, "SIGKILL");
    guarded.remove();
  }, TEST_MS);

  /** The newcomer's own repository, and git that answers its questions with any user name and the token. */
  const ownClone = async () => {
    const work = path.join(guarded.directory, "greeter");
    mkdirSync(work);
    await gitOk(work, "init", "--quiet", "--initial-branch=main");
    await commitFiles(work, { "README.md": "# Greeter\n" });
    const askpass = path.join(guarded.directory, "askpass");
    writeFileSync(
      askpass,
      '#!/bin/sh\ncase "$1" in Username*) echo anyone;; *) printf "%s" "$TOKEN";; esac\n',
    );
    chmodSync(askpass, 0o755);
    const paste = (line: string, token: string) =>
      promisify(execFile)("sh", ["-c", line], {
        cwd: work,
        env: { ...process.env, GIT_ASKPASS: askpass, TOKEN: token },
      });
    return { work, paste };
  };

  it(
    "comes from the link to the first merge by what the page says",
    async () => {
      const link = /http:\S+\/dashboard\/open\?code=\S+/.exec(output)?.[0] ?? "";
      const { page, complaints } = await newPage(browser);
      const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
      const agree = (name: string) =>
        page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
      const step = stepOf(page);
      const times: [string, number][] = [];
      let began = performance.now();
      const lap = (name: string): void => {
        const now = performance.now();
        times.push([name, now - began]);
        began = now;
      };

      await followLink(page, link);
      await page.getByRole("link", { name: "Create a project" }).click();
      await page.getByLabel("Project name").fill("greeter");
      await press("Create the project");
      const code = step("Push your code");
      await code.getByText("Push your code from a clone that you have:").waitFor();
      const line = await code.locator("code").first().innerText();
      await press("Create an access token");
      const token = await page.getByRole("dialog").locator("code").innerText();
      await agree("Done");
      const { work, paste } = await ownClone();
      await paste(line, token);
      await code.getByText("The branch main is at").waitFor();
      lap("connect a repository");

      const key = step("Name a model");
      await step("Start a session").getByText("A session needs a model first.").waitFor();
      // The service cannot ask this provider about a key, so the test needs no network.
      await key.getByLabel("Provider").selectOption("COHERE_API_KEY");
      await key.getByLabel("Key").fill("sk-a-key-of-a-newcomer");
      await press("Try and save the key");
      await key.getByText("Its key is a secret of the project.").waitFor();
      lap("name a model");

      await stopService();
      await page.getByRole("alert").getByText("The service does not respond.").waitFor();
      await startService({
        PLATFORM_LLM_BASE_URL: model.url,
        PLATFORM_LLM_API_KEY: "scripted",
        PLATFORM_LLM_TIERS: '["free"]',
      });
      await key.getByText("The operator's gateway provides it.").waitFor();
      await page.getByRole("alert").waitFor({ state: "detached" });
      // The browser itself reports the connections that failed meanwhile.
      complaints.length = 0;
      lap("(the operator's restart)");

      await step("Start a session")
        .getByLabel("What should the agent do?")
        .fill("write first.md: from the agent");
      await press("Start session");
      await page.getByRole("log").getByText("Wrote first.md and pushed it").waitFor();
      await page.locator(".state-word", { hasText: "Ready for review" }).waitFor();
      lap("first session");
      await press("Open a change request");
      await agree("Open");
      await page.getByRole("link", { name: "Open it" }).click();
      await page.getByText("+from the agent").waitFor();
      await press("Merge");
      await agree("Merge");
      await page.locator("h1").getByText("merged").waitFor();
      lap("see and merge the change request");

      // The address of the pasted line has the merged work.
      const address = /http\S+\.git/.exec(line)?.[0] ?? "";
      await paste(`git fetch --quiet ${address} main`, token);
      expect(await gitOk(work, "show", "FETCH_HEAD:first.md")).toBe("from the agent");
      await page.getByRole("link", { name: "greeter" }).click();
      await page.getByRole("link", { name: "write first.md" }).click();
      await chosen("Stop session")(page);
      await agree("Stop");
      await page.getByRole("button", { name: "Send and restart" }).waitFor();
      expect(complaints).toEqual([]);

      const own = times.filter(([name]) => !name.startsWith("("));
      const sum = own.reduce((all, [, ms]) => all + ms, 0);
      const laps = times.map(([name, ms]) => `${name} ${seconds(ms)}`).join(", ");
      process.stdout.write(
        `a newcomer's first merge took ${seconds(sum)} of the page and its agent: ${laps}\n`,
      );
    },
    TEST_MS,
  );
});
