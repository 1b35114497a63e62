/** Real sandboxes whose service never comes back: they end themselves. */
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runDirectoryOf } from "../../src/sandbox/local/run-directory.ts";
import { processesOfSandbox } from "../support/processes-seeing.ts";
import { Installation, type Life } from "../support/process-service.ts";
import { sandboxesStartHere } from "../support/requirements.ts";

const LIGHT_AGENT = path.join(import.meta.dirname, "../real-faults");
const TIMEOUT_MS = 180_000;
/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: 120_000, interval: 100 };
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "local",
  PLATFORM_AGENT_COMMAND: "light-agent",
  PLATFORM_AGENT_ADAPTER: "plain",
  PATH: `${LIGHT_AGENT}${path.delimiter}${process.env["PATH"] ?? ""}`,
};

describe.runIf(sandboxesStartHere)("a sandbox whose service never comes back", () => {
  let installation: Installation;
  let life: Life;
  let runDir = "";
  let sandboxId = "";

  const begin = async (settings: Readonly<Record<string, string>> = {}): Promise<void> => {
    installation = await Installation.open();
    life = await installation.start({ ...SETTINGS, ...settings });
    const projectId = await life.project(installation.sample);
    const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
    const session = `/v1/projects/${projectId}/sessions/${String(id)}`;
    expect((await life.session(projectId, String(id), ["running", "failed"]))["status"]).toBe("running");
    sandboxId = String((await life.call("GET", `${session}/sandbox`))["id"]);
    runDir = runDirectoryOf(readFileSync(path.join(installation.dataDir, "installation-id"), "utf8").trim());
    expect(processesOfSandbox(sandboxId)).not.toEqual([]);
  };
  const end = async (): Promise<void> => {
    await life.end("SIGKILL");
    for (const pid of processesOfSandbox(sandboxId)) process.kill(pid, "SIGKILL");
    rmSync(runDir, { recursive: true, force: true });
    await installation.close();
  };

  describe("and is silent", () => {
    beforeAll(() => begin({ PLATFORM_SANDBOX_ORPHAN_MS: "8000" }), TIMEOUT_MS);
    afterAll(end, TIMEOUT_MS);
    it(
      "ends itself after PLATFORM_SANDBOX_ORPHAN_MS",
      async () => {
        await life.end("SIGKILL");
        await expect.poll(() => processesOfSandbox(sandboxId), POLL).toEqual([]);
        expect(readFileSync(path.join(runDir, "s", sandboxId, "log"), "utf8")).toContain(
          "the service was silent for 8000 ms",
        );
      },
      TIMEOUT_MS,
    );
  });

  describe("and whose run directory is removed", () => {
    beforeAll(() => begin(), TIMEOUT_MS);
    afterAll(end, TIMEOUT_MS);
    it(
      "ends itself at once",
      async () => {
        await life.end("SIGKILL");
        rmSync(runDir, { recursive: true });
        await expect.poll(() => processesOfSandbox(sandboxId), POLL).toEqual([]);
      },
      TIMEOUT_MS,
    );
  });
});
