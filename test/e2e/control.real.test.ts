/**
 * Refresh, changed secrets and saving over real parts (api.md 3, 5 and 7): the service as a process, the daemon in a
 * sandbox, the agent runtime. test/daemon proves the daemon's refusals; these tests prove that they hold from end to
 * end.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Keyring, keyringLayer } from "../../src/services/keyring.ts";
import { parseMasterKey } from "../../src/domain/secret.ts";
import { signUserContext } from "../../src/domain/user-context.ts";
import { Installation, TOKEN, type Json, type Life } from "../support/service/process-service.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../support/patience.ts";
import { deepTest } from "../support/vitest/rings.ts";

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

/** Asks the session's daemon itself, as the service does before a teardown. */
const save = async (): Promise<Json> => {
  const { id } = await life.call("GET", `${session()}/sandbox`);
  const run = readdirSync(tmpdir()).find((name) =>
    existsSync(path.join(tmpdir(), name, "s", String(id), "run", "d.sock")),
  );
  const bytes = parseMasterKey(readFileSync(path.join(installation.dataDir, "master-key"), "utf8").trim());
  const layer = keyringLayer({ current: { version: 1, bytes: bytes ?? new Uint8Array() }, former: [] });
  const keyring = Context.get(await Effect.runPromise(Effect.scoped(Layer.build(layer))), Keyring);
  // oxlint-disable-next-line no-restricted-properties -- the daemon reads the machine's clock
  const nowMs = Date.now();
  const acting = { userId: "service", sessionId, role: "service", nowMs };
  const context = signUserContext(acting, keyring.serviceKey(String(id)));
  const socketPath = path.join(tmpdir(), run ?? "", "s", String(id), "run", "d.sock");
  return await new Promise((resolve, reject) => {
    const headers = { "x-platform-user-context": context };
    const call = request({ socketPath, path: "/platform/save", method: "POST", headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += String(chunk)));
      answer.on("end", () => resolve({ status: answer.statusCode, ...(JSON.parse(text) as Json) }));
    });
    call.on("error", reject);
    call.end("{}");
  });
};

const inRepository = (...args: readonly string[]): string =>
  execFileSync("git", ["-C", path.join(installation.dataDir, "repositories", `${projectId}.git`), ...args], {
    encoding: "utf8",
  }).trim();

describe.runIf(sandboxesStartHere)("a running session", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
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
      const twice = await life.call("POST", `${session()}/refresh`, {});
      const head = inRepository("rev-parse", sessionId);
      expect(twice["repo"]).toEqual({ before: head, after: head });
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
    "has its uncommitted work saved to refs/wip, by programs that run as the agent does [G06]",
    async () => {
      const spy = "sh -c '(id -u; env) > /tmp/spied; cat'";
      const { uid } = await after(
        `git config filter.spy.clean "${spy}"; echo '*.dat filter=spy' > .gitattributes; echo x > a.dat; echo mine > mine.txt`,
        5184,
      );
      const branch = inRepository("rev-parse", sessionId);
      const saved = await save();
      expect(saved).toMatchObject({ status: 200, error: null });
      const wip = inRepository("rev-parse", `refs/wip/${sessionId}`);
      expect([saved["wip"], inRepository("rev-parse", `${wip}^1`)]).toEqual([wip, branch]);
      expect(inRepository("show", `${wip}:mine.txt`)).toBe("mine");
      expect(inRepository("rev-parse", sessionId)).toBe(branch);
      expect((await save())["wip"]).toBe(wip);

      const read = `node -e 'require("http").createServer((q,r)=>r.end(JSON.stringify(require("fs").readFileSync("/tmp/spied","utf8")),()=>process.exit())).listen(5185,"127.0.0.1")'`;
      await prompt(read);
      const spied = String(await answerOf(5185));
      expect(spied.split("\n")[0]).toBe(String(uid));
      expect(spied).not.toContain("PLATFORM_TOKEN");
      expect(spied).toContain("GIT_CONFIG_SYSTEM");
    },
    TEST_MS,
  );

  it(
    "has its work saved when it is stopped, and restored after a restart",
    async () => {
      await after("echo 'not committed' > left-behind.txt", 5186);
      const branch = inRepository("rev-parse", sessionId);
      const stopped = await life.call("POST", `${session()}/stop`);
      const wip = inRepository("rev-parse", `refs/wip/${sessionId}`);
      expect(stopped).toMatchObject({
        status: "stopped",
        stop_reason: "requested",
        saved: { wip, error: null },
      });
      expect(inRepository("show", `${wip}:left-behind.txt`)).toBe("not committed");
      expect(inRepository("rev-parse", sessionId)).toBe(branch);

      await life.call("POST", `${session()}/restart`);
      const running = await life.session(projectId, sessionId, ["running", "failed"]);
      expect(running).toMatchObject({ status: "running", saved: { wip } });
      await after(
        `git fetch -q origin refs/wip/${sessionId} && git show FETCH_HEAD:left-behind.txt > got.txt`,
        5187,
      );
      await after("git add got.txt && git commit -qm took-it-up && git push -q origin HEAD", 5188);
      expect(inRepository("show", `${sessionId}:got.txt`)).toBe("not committed");
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
      expect(stopped).toMatchObject({ status: "stopped", saved: { error: null } });
      expect(inRepository("ls-tree", "--name-only", String((stopped["saved"] as Json)["wip"]))).toContain(
        "began.txt",
      );
      expect(inRepository("ls-tree", "--name-only", String((stopped["saved"] as Json)["wip"]))).not.toContain(
        "waited.txt",
      );
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

  deepTest(
    "continues with its saved work if the restart asks for it",
    async () => {
      await after(
        "echo half > half.txt && git add -A && git commit -qm not-pushed && echo more >> half.txt",
        5189,
      );
      const pushed = inRepository("rev-parse", sessionId);
      const stopped = await life.call("POST", `${session()}/stop`);
      const { wip } = stopped["saved"] as Json;
      const files = (await life.call("GET", `${session()}/changes?of=saved`)) as Json;
      expect(files["files_changed"]).toMatchObject(
        expect.arrayContaining([expect.objectContaining({ path: "half.txt", additions: 2 })]),
      );
      expect(await life.text(`${session()}/diff?of=saved&path=half.txt`)).toContain("+more");

      await life.call("POST", `${session()}/restart`, { restore_saved: true });
      const running = await life.session(projectId, sessionId, ["running", "failed"]);
      expect(running).toMatchObject({ status: "running", saved: { wip } });
      expect(running["restored"]).toMatchObject({ wip, commits: 1, skipped: [], error: null });
      expect(inRepository("rev-parse", sessionId)).toBe(pushed);
      await after(
        "git status --porcelain > status.txt; git add -A; git commit -qm status; git push -q origin HEAD",
        5190,
      );
      expect(inRepository("show", `${sessionId}:status.txt`)).toContain("M half.txt");
      expect(inRepository("log", "-1", "--format=%s", `${sessionId}~1`)).toBe("not-pushed");
      expect(inRepository("show", `${sessionId}:half.txt`)).toBe("half\nmore");
    },
    TEST_MS,
  );
});
