/**
 * Refresh, changed secrets and saving over real parts (api.md 3, 5 and 7): the service as a process, the daemon in a
 * sandbox, the agent runtime. test/daemon proves the daemon's refusals; these tests prove that they hold from end to
 * end.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Installation, TOKEN, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

/** A limit for what hangs, not a claim about speed. */
const POLL = { timeout: WAIT_MS, interval: 50 };
/** Answers one request with the agent's environment and uid, and ends: a turn that lasts until the test asks. */
const ONE_ANSWER = (port: number): string =>
  `node -e 'require("http").createServer((q,r)=>r.end(JSON.stringify({env:process.env,uid:process.getuid()}),()=>process.exit())).listen(${port},"127.0.0.1")'`;

interface AgentSide {
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
}

let installation: Installation;
let life: Life;
let projectId: string;
let sessionId: string;
const session = (): string => `/v1/projects/${projectId}/sessions/${sessionId}`;

const prompt = async (command: string): Promise<void> => {
  const { id } = await life.call("POST", `${session()}/runtime/session`, { title: "asked for by a test" });
  const parts = [{ type: "text", text: `run: ${command}` }];
  await life.call("POST", `${session()}/runtime/session/${String(id)}/prompt_async`, { parts });
};

/** Waits for the agent's program behind the port, and takes its one answer. */
const answerOf = (port: number): Promise<AgentSide> =>
  vi.waitFor(
    async () => (await life.call("GET", `${session()}/ports/${port}/`)) as unknown as AgentSide,
    POLL,
  );

/** Waits until the agent's program listens there, and takes no answer. */
const answersAt = (port: number): Promise<void> =>
  vi.waitFor(async () => {
    const { ports } = (await life.call("GET", `${session()}/ports`)) as {
      readonly ports?: readonly number[];
    };
    expect(ports).toContain(port);
  }, POLL);

/** Runs a command in the agent's shell, then tells what its environment is. */
const after = async (command: string, port: number): Promise<AgentSide> => {
  await prompt(`${command}; ${ONE_ANSWER(port)}`);
  return await answerOf(port);
};

/** How many lines of the session's log hold all of these. */
const logged = async (...parts: readonly string[]): Promise<number> => {
  const log = await life.text(`${session()}/logs?follow=0`);
  return log.split("\n").filter((line) => parts.every((part) => line.includes(part))).length;
};
const runtimesReady = (): Promise<number> => logged("agent runtime", "state=ready");
const turnsBegun = (): Promise<number> => logged("turn", "active=true");

/** Pushes a commit to the session branch, as a person does. @returns the commit. */
const pushFromElsewhere = (files: Readonly<Record<string, string>>): string => {
  const work = mkdtempSync(path.join(tmpdir(), "elsewhere-"));
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-C", work, "-c", "user.name=p", "-c", "user.email=p@localhost", ...args], {
      encoding: "utf8",
    });
  try {
    const url = `${life.url.replace("://", `://x:${TOKEN}@`)}/v1/git/${projectId}.git`;
    git("clone", "-q", "--branch", sessionId, url, ".");
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(work, name), text);
    git("add", "-A");
    git("commit", "-q", "-m", "From elsewhere");
    git("push", "-q", "origin", "HEAD");
    return git("rev-parse", "HEAD").trim();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};

const inRepository = (...args: readonly string[]): string =>
  execFileSync("git", ["-C", path.join(installation.dataDir, "repositories", `${projectId}.git`), ...args], {
    encoding: "utf8",
  }).trim();

describe.runIf(sandboxesStartHere)("a running session", () => {
  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start(database());
    projectId = await life.project(installation.sample);
    await life.call("PUT", `/v1/projects/${projectId}/secrets/FROM_THE_BOOT`, { value: "boot value" });
    sessionId = String((await life.call("POST", `/v1/projects/${projectId}/sessions`, {}))["id"]);
    expect((await life.session(projectId, sessionId, ["running", "failed"]))["status"]).toBe("running");
  }, TEST_MS);
  afterAll(async () => {
    try {
      // Sandboxes outlive the service: none may stay behind, however the tests went.
      const { id } = await life.call("GET", `${session()}/sandbox`);
      await life.call("POST", `${session()}/stop`);
      const left = () =>
        readdirSync(tmpdir()).filter((name) => existsSync(path.join(tmpdir(), name, "s", String(id))));
      await vi.waitFor(() => expect(left()).toEqual([]), POLL);
    } finally {
      await life.end("SIGTERM");
      await installation.close();
    }
  }, TEST_MS);

  it(
    "gets others' commits on its branch through a refresh over the API, and its runtime does as well",
    async () => {
      const before = inRepository("rev-parse", sessionId);
      const pushed = pushFromElsewhere({ "theirs.txt": "from elsewhere\n" });
      const answer = await life.call("POST", `${session()}/refresh`, {});
      expect(answer).toMatchObject({
        repo: { before, after: pushed },
        runtime: { state: "ready", restarts: 1 },
        turn_interrupted: false,
      });
      await after('git commit -q --allow-empty -m "saw $(cat theirs.txt)" && git push -q origin HEAD', 5181);
      expect(inRepository("log", "-1", "--format=%s %P", sessionId)).toBe(`saw from elsewhere ${pushed}`);
    },
    TEST_MS,
  );

  deepTest(
    "has a changed secret in its runtime's environment after the turn, and not before",
    async () => {
      const ready = await runtimesReady();
      const begun = await turnsBegun();
      await prompt(ONE_ANSWER(5182));
      await vi.waitFor(async () => expect(await turnsBegun()).toBeGreaterThan(begun), POLL);
      await life.call("PUT", `/v1/projects/${projectId}/secrets/NEW_ONE`, { value: "line one\nline two" });
      await life.call("DELETE", `/v1/projects/${projectId}/secrets/FROM_THE_BOOT`);
      // The turn goes on until the program that it runs was asked: a restart would have ended it.
      const { env } = await answerOf(5182);
      expect([env["FROM_THE_BOOT"], env["NEW_ONE"]]).toEqual(["boot value", undefined]);
      await vi.waitFor(async () => expect(await runtimesReady()).toBeGreaterThan(ready), POLL);
      const { env: changed } = await after("true", 5183);
      expect([changed["FROM_THE_BOOT"], changed["NEW_ONE"]]).toEqual([undefined, "line one\nline two"]);
      const { revision } = (await life.call("GET", `/v1/projects/${projectId}/secrets`)) as Json;
      expect(changed).toMatchObject({
        PLATFORM_PROJECT_SECRET_NAMES: "NEW_ONE",
        PLATFORM_PROJECT_SECRETS_REVISION: revision,
      });
      expect(await life.text(`${session()}/logs?follow=0`)).not.toContain("line one");
    },
    TEST_MS,
  );

  deepTest(
    "has its work saved when it is stopped, and restored after a restart",
    async () => {
      await after("echo 'not committed' > left-behind.txt", 5186);
      const branch = inRepository("rev-parse", sessionId);
      const stopped = await life.call("POST", `${session()}/stop`, { save: "require" });
      expect(stopped).toMatchObject({
        status: "stopped",
        stop_reason: "requested",
        saved: { state: "complete", files: 1, error: null },
      });
      expect(inRepository("rev-parse", sessionId)).toBe(branch);

      await life.call("POST", `${session()}/restart`, { restore_saved: true });
      const running = await life.session(projectId, sessionId, ["running", "failed"]);
      expect(running).toMatchObject({ status: "running", restored: { files: 1, skipped: [], error: null } });
      await after("git add -A && git commit -qm took-it-up && git push -q origin HEAD", 5188);
      expect(inRepository("show", `${sessionId}:left-behind.txt`)).toBe("not committed");
    },
    TEST_MS,
  );

  deepTest(
    "is stopped while its agent works, and a message that waits goes to the next sandbox",
    async () => {
      const [first, second] = [randomUUID(), randomUUID()];
      const send = (id: string, text: string) => life.call("POST", `${session()}/messages`, { id, text });
      const items = async (): Promise<readonly Json[]> =>
        (await life.call("GET", `${session()}/conversation`))["items"] as readonly Json[];
      const statusOf = async (id: string) => (await items()).find((item) => item["id"] === id)?.["status"];
      await send(first, `run: echo began > began.txt; ${ONE_ANSWER(5191)}`);
      await vi.waitFor(async () => expect(await statusOf(first)).toBe("accepted"), POLL);
      await answersAt(5191);
      await send(
        second,
        "run: echo waited > waited.txt; git add -A; git commit -qm waited; git push -q origin HEAD",
      );
      expect(await statusOf(second)).toBe("queued");
      const stopped = await life.call("POST", `${session()}/stop`);
      expect(stopped).toMatchObject({ status: "stopped", saved: { state: "complete", files: 1 } });
      await vi.waitFor(async () => expect(await statusOf(second)).toBe("queued"), POLL);

      await life.call("POST", `${session()}/restart`);
      await vi.waitFor(
        () => expect(inRepository("ls-tree", "--name-only", sessionId)).toContain("waited.txt"),
        POLL,
      );
      expect(await statusOf(second)).toBe("accepted");
    },
    TEST_MS,
  );
});
