/**
 * Real sandboxes whose service never comes back: they end themselves, and `platform doctor --orphans` lists and ends what is
 * left. It is always asked for one data directory: other services run on this machine meanwhile.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identify } from "../../../src/sandbox/machine/processes.ts";
import { runDirectoryPath } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { Installation, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: WAIT_MS, interval: 100 };
const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "local",
  ...LIGHT_AGENT,
};

interface Told {
  readonly orphans: readonly {
    readonly kind: string;
    readonly what: string;
    readonly pids: readonly number[];
    readonly problem: string | null;
  }[];
}

const orphans = async (of: string, ...more: readonly string[]): Promise<Told["orphans"]> => {
  const args = [CLI, "doctor", "--orphans", "--json", "--of", of, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return (JSON.parse(stdout) as Told).orphans;
};

/** Not where only its exit code is left. */
const isRunning = (pid: number): boolean => identify(pid) !== null;
const groupsOf = (id: string): string =>
  spawnSync("find", ["/sys/fs/cgroup", "-name", id], { encoding: "utf8" }).stdout;

const kinds = (found: Told["orphans"]) => found.map(({ kind }) => kind).toSorted();
const postmaster = ({ dataDir }: Installation): number =>
  Number(readFileSync(path.join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0]);

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
    runDir = runDirectoryPath(
      readFileSync(path.join(installation.dataDir, "installation-id"), "utf8").trim(),
    );
    expect(processesOfSandbox(sandboxId)).not.toEqual([]);
  };
  const end = async (): Promise<void> => {
    await life.end("SIGKILL");
    for (const pid of processesOfSandbox(sandboxId)) process.kill(pid, "SIGKILL");
    rmSync(runDir, { recursive: true, force: true });
    await installation.close();
  };

  describe("that is silent", () => {
    beforeAll(() => begin({ PLATFORM_SANDBOX_ORPHAN_MS: "8000" }), TEST_MS);
    afterAll(end, TEST_MS);
    it(
      "ends itself after PLATFORM_SANDBOX_ORPHAN_MS",
      async () => {
        await life.end("SIGKILL");
        await expect.poll(() => processesOfSandbox(sandboxId), POLL).toEqual([]);
        expect(readFileSync(path.join(runDir, "s", sandboxId, "log"), "utf8")).toContain(
          "the service did not respond for 8000 ms",
        );
      },
      TEST_MS,
    );
  });

  describe("and the doctor", () => {
    beforeAll(() => begin(), TEST_MS);
    afterAll(end, TEST_MS);

    it(
      "does not list or end anything of a running service",
      async () => {
        expect(await orphans(installation.dataDir, "--end", "--yes")).toEqual([]);
        expect(await orphans(runDir, "--end", "--yes")).toEqual([]);
        expect(processesOfSandbox(sandboxId)).not.toEqual([]);
        expect(await life.text("/readyz")).not.toBe("");
      },
      TEST_MS,
    );

    it(
      "lists what a killed service left, leaves it to the next start, and ends it on request",
      async () => {
        const server = postmaster(installation);
        await life.end("SIGKILL");
        const left = await orphans(installation.dataDir);
        expect(kinds(left)).toEqual(["postgres", "run_directory", "sandbox"]);
        expect(left.find(({ kind }) => kind === "sandbox")?.pids).toEqual(processesOfSandbox(sandboxId));
        expect([isRunning(server), processesOfSandbox(sandboxId).length > 0]).toEqual([true, true]);
        const ended = await orphans(installation.dataDir, "--end", "--yes");
        expect(ended.map(({ problem }) => problem)).toEqual([null, null, null]);
        expect(processesOfSandbox(sandboxId)).toEqual([]);
        expect([isRunning(server), existsSync(runDir), groupsOf(sandboxId)]).toEqual([false, false, ""]);
        expect(await orphans(installation.dataDir)).toEqual([]);
      },
      TEST_MS,
    );

    it(
      "finds a database whose data directory was removed",
      async () => {
        life = await installation.start(SETTINGS);
        const server = postmaster(installation);
        await life.end("SIGKILL");
        rmSync(installation.dataDir, { recursive: true });
        const ended = await orphans(installation.dataDir, "--end", "--yes");
        expect(kinds(ended)).toContain("postgres");
        expect(isRunning(server)).toBe(false);
      },
      TEST_MS,
    );
  });
});
