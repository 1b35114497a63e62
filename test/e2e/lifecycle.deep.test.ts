/**
 * Sessions through the whole real service: embedded Postgres, git over HTTP, namespaces, daemon, agent runtime. The
 * service runs as a process of its own and is killed, its sandboxes are looked at from outside.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sandboxesStartHere } from "../support/requirements.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { TEST_MS, WAIT_MS } from "../support/patience.ts";

/** Processes whose command line names the sandbox: its outermost one on this machine does. */
const processesOf = (sandboxId: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(sandboxId);
      } catch {
        return false; // It ended while it was looked at.
      }
    })
    .map(Number);

/** Directories of a sandbox below any run directory. */
const directoriesOf = (sandboxId: string): string[] =>
  readdirSync(tmpdir())
    .filter((name) => name.startsWith("platform-"))
    .map((name) => path.join(tmpdir(), name, "s", sandboxId))
    .filter((directory) => existsSync(directory));

describe.runIf(sandboxesStartHere)("a session on real parts", () => {
  let installation: Installation;
  let life: Life;
  let projectId: string;

  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
    projectId = await life.project(installation.sample);
  }, TEST_MS);
  afterAll(async () => {
    await life.end("SIGTERM");
    await installation.close();
  }, TEST_MS);

  const create = async (body: Record<string, unknown>): Promise<string> =>
    String((await life.call("POST", `/v1/projects/${projectId}/sessions`, body))["id"]);
  const sandboxOf = (id: string) => life.call("GET", `/v1/projects/${projectId}/sessions/${id}/sandbox`);

  it(
    "reaches running after the service was killed during provisioning, and its prompt is delivered once",
    async () => {
      const id = await create({ initial_prompt: "write kept.txt: once" });
      await life.end("SIGKILL");
      life = await installation.start();
      await life.session(projectId, id, ["running"]);
      const runtime = `/v1/projects/${projectId}/sessions/${id}/runtime/session`;
      const sessions = (await life.call("GET", runtime)) as unknown as { title: string }[];
      expect(sessions.filter(({ title }) => title === id).length).toBeLessThanOrEqual(1);
      await life.call("POST", `/v1/projects/${projectId}/sessions/${id}/stop`);
    },
    TEST_MS,
  );

  it(
    "continues when the service shuts down and starts again, and leaves nothing behind when it is stopped",
    async () => {
      const id = await create({});
      await life.session(projectId, id, ["running"]);
      const { id: sandboxId } = (await sandboxOf(id)) as { id: string };
      expect(processesOf(sandboxId).length).toBeGreaterThan(0);

      expect(await life.end("SIGTERM")).toBe(0);
      expect(processesOf(sandboxId).length).toBeGreaterThan(0);
      life = await installation.start();
      expect((await life.session(projectId, id, ["running", "failed"]))["status"]).toBe("running");

      const stopped = await life.call("POST", `/v1/projects/${projectId}/sessions/${id}/stop`);
      expect(stopped).toMatchObject({ status: "stopped", stop_reason: "requested" });
      await expect.poll(() => processesOf(sandboxId), { timeout: WAIT_MS }).toEqual([]);
      await expect.poll(() => directoriesOf(sandboxId), { timeout: WAIT_MS }).toEqual([]);
    },
    TEST_MS,
  );

  it(
    "fails as lost, frees its slot and is cleaned up when its sandbox dies",
    async () => {
      const id = await create({});
      await life.session(projectId, id, ["running"]);
      const { id: sandboxId } = (await sandboxOf(id)) as { id: string };
      for (const pid of processesOf(sandboxId)) process.kill(pid, "SIGKILL");

      const failed = await life.session(projectId, id, ["failed"]);
      expect(failed).toMatchObject({ failure: { code: "sandbox_lost" } });
      await expect.poll(() => directoriesOf(sandboxId), { timeout: WAIT_MS }).toEqual([]);
      const { account } = (await life.call("GET", "/v1/me")) as { account: { active_sessions: number } };
      expect(account.active_sessions).toBe(0);
      expect(await sandboxOf(id)).toMatchObject({ status: "error" });
    },
    TEST_MS,
  );

  it(
    "fails with the runtime's last words when the agent runtime cannot start",
    async () => {
      expect(await life.end("SIGTERM")).toBe(0);
      life = await installation.start({
        PLATFORM_AGENT_ADAPTER: "plain",
        PLATFORM_AGENT_COMMAND: "ls /no/such/agent",
        PLATFORM_BOOT_TIMEOUT_MS: "5000",
      });
      const id = await create({});
      const failed = await life.session(projectId, id, ["failed"]);
      expect(failed["failure"]).toMatchObject({
        code: "runtime_failed",
        message: expect.stringContaining("/no/such/agent") as string,
      });
      const { account } = (await life.call("GET", "/v1/me")) as { account: { active_sessions: number } };
      expect(account.active_sessions).toBe(0);
      const { id: sandboxId } = (await sandboxOf(id)) as { id: string };
      await expect.poll(() => directoriesOf(sandboxId), { timeout: WAIT_MS }).toEqual([]);
    },
    TEST_MS,
  );
});
