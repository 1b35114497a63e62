/**
 * A copy of an installation starts on the machine of its original: restored from a backup, or copied with `cp -a`. Real
 * services, real sandboxes. The original's sandboxes belong to the original alone.
 */
import { execFile, execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identify, isAlive, type ProcessIdentity } from "../../../src/sandbox/machine/processes.ts";
import { runDirectoryPath } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { Installation, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "local",
  ...LIGHT_AGENT,
};

const platform = (args: readonly string[], dataDir: string) => {
  const { DATABASE_URL: _ours, ...environment } = process.env;
  const env = { ...environment, PLATFORM_DATA_DIR: dataDir };
  return promisify(execFile)(process.execPath, [CLI, ...args], { env });
};

/** With owners and times; a socket of a running database is copied as well. */
const copy = (from: string, to: string): void => {
  execFileSync("cp", ["-a", from, to]);
};

describe.runIf(sandboxesStartHere)("a copy of an installation on the same machine as the original", () => {
  let original: Installation;
  let life: Life;
  let projectId = "";
  let sessionId = "";
  let launcher: ProcessIdentity;
  const opened: Installation[] = [];
  const lives: Life[] = [];

  const place = async (): Promise<Installation> => {
    const made = await Installation.open();
    opened.push(made);
    return made;
  };
  const started = async (of: Installation): Promise<Life> => {
    const made = await of.start(SETTINGS);
    lives.push(made);
    return made;
  };
  const target = (below = "") => `/v1/projects/${projectId}/sessions/${sessionId}${below}`;
  /** The original's session runs in the sandbox that it began with. */
  const expectUnharmed = async () => {
    expect(isAlive(launcher)).toBe(true);
    expect(await life.call("GET", target())).toMatchObject({ status: "running" });
    expect(await life.text(target("/runtime/"))).not.toBe("");
  };
  /** The copy takes the session for lost, and has a sandbox of its own for it afterwards. */
  const expectLostIn = async (beside: Life) => {
    const lost = await beside.session(projectId, sessionId, ["failed"]);
    expect(lost).toMatchObject({ failure: { code: "sandbox_lost" } });
    await beside.call("POST", target("/restart"));
    const again = await beside.session(projectId, sessionId, ["running", "failed"]);
    expect(again["status"]).toBe("running");
    await beside.call("POST", target("/stop"));
  };

  beforeAll(async () => {
    original = await place();
    life = await started(original);
    projectId = await life.project(original.sample);
    sessionId = String((await life.call("POST", `/v1/projects/${projectId}/sessions`, {}))["id"]);
    expect((await life.session(projectId, sessionId, ["running", "failed"]))["status"]).toBe("running");
    const sandboxId = String((await life.call("GET", target("/sandbox")))["id"]);
    const installationId = readFileSync(path.join(original.dataDir, "installation-id"), "utf8").trim();
    const record = path.join(runDirectoryPath(installationId), "s", sandboxId, "record.json");
    const { pid } = (JSON.parse(readFileSync(record, "utf8")) as { launcher: { pid: number } }).launcher;
    const found = identify(pid);
    if (found === null) throw new Error("the sandbox's launcher is gone");
    launcher = found;
  }, TEST_MS);
  afterAll(async () => {
    try {
      await life.call("POST", target("/stop"));
    } finally {
      for (const one of lives) await one.end("SIGTERM");
      for (const one of opened) await one.close();
    }
  }, TEST_MS);

  it(
    "that is restored from a backup leaves the original's sandboxes alone",
    async () => {
      const copied = await place();
      const file = path.join(copied.directory, "backup.tar.gz");
      await platform(["backup", file], original.dataDir);
      await platform(["restore", file], copied.dataDir);
      const beside = await started(copied);
      await expectLostIn(beside);
      await expectUnharmed();
      expect(await beside.end("SIGTERM")).toBe(0);
      await expectUnharmed();
    },
    TEST_MS,
  );

  it(
    "that was copied file by file is refused, both while the original runs and while it is stopped",
    async () => {
      const copied = await place();
      copy(original.dataDir, copied.dataDir);
      await expect(copied.start(SETTINGS)).rejects.toThrow(
        `${copied.dataDir} is a copy of ${original.dataDir}`,
      );
      await expectUnharmed();
      expect(await life.end("SIGTERM")).toBe(0);
      await expect(copied.start(SETTINGS)).rejects.toThrow(
        `${copied.dataDir} is a copy of ${original.dataDir}`,
      );
      expect(isAlive(launcher)).toBe(true);
      life = await started(original);
      await expectUnharmed();
    },
    TEST_MS,
  );

  it(
    "that was copied file by file without the file installation-id is an independent installation",
    async () => {
      const copied = await place();
      expect(await life.end("SIGTERM")).toBe(0);
      copy(original.dataDir, copied.dataDir);
      life = await started(original);
      rmSync(path.join(copied.dataDir, "installation-id"));
      const beside = await started(copied);
      await expectLostIn(beside);
      await expectUnharmed();
      expect(await beside.end("SIGTERM")).toBe(0);
    },
    TEST_MS,
  );
});
