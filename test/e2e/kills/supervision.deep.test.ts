/**
 * The result for a session when something in its sandbox is killed, on real parts: the service as a process, a
 * sandbox with its daemon, and an agent runtime that leaves processes behind.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { filesWith } from "../../support/machine/files-with.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { readEvents, type EventReader } from "../../support/service/event-stream.ts";
import { Installation, TOKEN, type Json, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: WAIT_MS, interval: 20 };
const SETTINGS = {
  // The file exists after the checkout: the runtime's first start fails, and a later one succeeds.
  PLATFORM_AGENT_COMMAND: "node /workspace/runtime-server.mjs",
  PLATFORM_AGENT_ADAPTER: "plain",
};

let installation: Installation;
let life: Life;
let projectId: string;
let sessionId: string;

const target = (below: string) => `/v1/projects/${projectId}/sessions/${sessionId}${below}`;
const runtime = (below: string) => life.text(target(`/runtime${below}`));
const log = () => life.text(target("/logs?follow=0"));
const sandboxId = async () => String((await life.call("GET", target("/sandbox")))["id"]);
const status = (...statuses: readonly string[]): Promise<Json> =>
  life.session(projectId, sessionId, statuses);

const commandOf = (pid: number): readonly string[] => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return []; // It ended while it was looked at.
  }
};

/** Processes of a sandbox, by a word of their command, as this machine numbers them. */
const processes = (sandbox: string, ...words: readonly string[]): readonly number[] =>
  processesOfSandbox(sandbox).filter((pid) => words.every((word) => commandOf(pid).includes(word)));

const only = (found: readonly number[]): number => {
  const [pid] = found;
  if (pid === undefined || found.length > 1)
    throw new Error(`one process is looked for: ${found.join(", ")}`);
  return pid;
};

const daemonOf = (sandbox: string): number =>
  only(processes(sandbox, "/opt/platform/lib/node", "/usr/local/bin/platform-agent"));

/** Directories of a sandbox below any run directory. */
const directoriesOf = (sandbox: string): readonly string[] =>
  readdirSync(tmpdir())
    .map((name) => path.join(tmpdir(), name, "s", sandbox))
    .filter((directory) => existsSync(directory));

const follow = (): Promise<EventReader> => readEvents(`${life.url}${target("/logs")}`, { token: TOKEN });
const linesOf = (reader: EventReader): readonly string[] =>
  reader.events.filter(({ event }) => event === "line").map(({ data }) => String((data as Json)["line"]));

/** The newest sandbox and everything of it is gone. */
const gone = (sandbox: string) =>
  vi.waitFor(() => expect([processesOfSandbox(sandbox), directoriesOf(sandbox)]).toEqual([[], []]), POLL);

const restart = async (): Promise<void> => {
  await life.call("POST", target("/restart"));
  expect((await status("running", "failed"))["status"]).toBe("running");
};

const startEverything = async (): Promise<void> => {
  installation = await Installation.open();
  const { sample } = installation;
  copyFileSync(
    path.join(import.meta.dirname, "../../sandbox/runtime-server.mjs"),
    path.join(sample, "runtime-server.mjs"),
  );
  const git = (...args: readonly string[]) => execFileSync("git", ["-C", sample, ...args]);
  git("add", "runtime-server.mjs");
  git("-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "Serve as a runtime");
  life = await installation.start(SETTINGS);
  projectId = await life.project(sample);
  sessionId = String((await life.call("POST", `/v1/projects/${projectId}/sessions`, {}))["id"]);
  expect((await status("running", "failed"))["status"]).toBe("running");
};

describe.runIf(sandboxesStartHere)("a sandbox with a killed process", () => {
  beforeAll(startEverything, TEST_MS);
  afterAll(async () => {
    // Sandboxes outlive the service: none may stay behind, however the tests went.
    try {
      const sandbox = await sandboxId();
      await life.call("POST", target("/stop"));
      await gone(sandbox);
    } finally {
      await life.end("SIGTERM");
      await installation.close();
    }
  }, TEST_MS);

  it("shows the daemon's token nowhere to its agent, and in no log [S05, G05, I16]", async () => {
    const environment = readFileSync(`/proc/${daemonOf(await sandboxId())}/environ`, "latin1").split("\0");
    const token = environment.find((entry) => entry.startsWith("PLATFORM_TOKEN="))?.slice(15) ?? "";
    expect(token).toMatch(/^platform_sbx_.{20}/);
    const seen = await runtime("/look");
    expect(seen).toContain("PLATFORM_SESSION_ID");
    expect(seen).not.toContain(token);
    expect(seen).not.toContain("PLATFORM_TOKEN");
    const [, password = ""] = /^password=(.+)$/m.exec(seen) ?? [];
    expect(password).not.toBe("");
    await runtime(`/say?line=${encodeURIComponent(`it prints ${password}`)}`);
    await vi.waitFor(async () => expect(await log()).toContain("runtime it prints [redacted]"), POLL);
    for (const secret of [token, password]) expect(await log()).not.toContain(secret);
  });

  it("lets its agent push and fetch with a password that git stores nowhere [G04, G05]", async () => {
    const [, password = ""] = /^password=(.+)$/m.exec(await runtime("/look")) ?? [];
    const answer = await runtime(`/push?word=${encodeURIComponent(password)}`);
    expect(answer).not.toContain(password);
    const { said, files, held, url } = JSON.parse(answer) as {
      readonly said: string;
      readonly files: readonly string[];
      readonly held: readonly string[];
      readonly url: string;
    };
    expect(said).toContain(`HEAD -> ${sessionId}`);
    expect(said).toContain(`remote: To merge ${sessionId}, open a change request:`);
    const looked = ["config", "FETCH_HEAD", "logs/HEAD"].map((name) => `/workspace/.git/${name}`);
    expect(files).toEqual(expect.arrayContaining(looked));
    expect(held).toEqual([]);
    expect(url).toMatch(/^http:\/\/platform\.internal\/v1\/git\/[0-9a-f-]{36}\.git$/);
    expect(filesWith(password, path.join(installation.dataDir, "repositories"))).toEqual([]);
  });

  it(
    "ends with its daemon: all processes end, the session fails, its log is kept and continued by the next boot",
    async () => {
      const sandbox = await sandboxId();
      const reader = await follow();
      await runtime("/say?line=a-line-of-the-first-boot");
      await vi.waitFor(() => expect(linesOf(reader)).toContain("a-line-of-the-first-boot"), POLL);
      process.kill(daemonOf(sandbox), "SIGKILL");
      expect((await status("failed"))["failure"]).toMatchObject({
        code: "sandbox_lost",
        message: expect.stringContaining("137"),
      });
      await gone(sandbox);
      const kept = await log();
      expect(kept).toMatch(/^\S+Z daemon boot step=listening at_ms=\d+$/m);
      expect(kept).toMatch(/^\S+Z runtime a-line-of-the-first-boot$/m);
      await restart();
      await vi.waitFor(async () => expect(await runtime("/")).toMatch(/^\d+$/), POLL);
      await runtime("/say?line=a-line-of-the-second-boot");
      await vi.waitFor(() => expect(linesOf(reader)).toContain("a-line-of-the-second-boot"), POLL);
      reader.close();
      expect(reader.events.map(({ event }) => event)).not.toContain("reset");
      const ids = reader.events.flatMap(({ id }) => (id === null ? [] : [id]));
      expect(new Set(ids).size).toBe(ids.length);
      expect(new Set(ids.map((id) => id.split(":")[0]))).toEqual(new Set([sandbox, await sandboxId()]));
      expect((await log()).startsWith(kept)).toBe(true);
    },
    TEST_MS,
  );
});
