/** A daemon that waits for its session (W1 to W3 of daemon/boot/standby.ts). */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { isThere, PROJECT_ID, Running, sessionVariables, type Answer } from "./support/running.ts";
import { deepTest, onlyDeep } from "../support/vitest/rings.ts";

const ID = randomUUID();

let running: Running;
afterEach(() => running.dispose());

const start = async (): Promise<Running> => {
  running = await Running.start({ standby: ID });
  await running.logged("listening");
  return running;
};

const claimOf = (sessionId: string, more: object = {}) => ({
  session_id: sessionId,
  environment: sessionVariables(sessionId),
  boot_deadline_ms: 60_000,
  ...more,
});

const claim = (body: unknown, context = running.context()): Promise<Answer> =>
  running.ask("/platform/claim", {
    method: "POST",
    headers: { "x-platform-user-context": context },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

const codeOf = ({ status, body }: Answer): string => {
  const { code = "" } = JSON.parse(body) as { code?: string };
  return `${status} ${code}`.trim();
};

const git = (...args: string[]): Buffer => execFileSync("git", ["-C", running.bare, ...args]);

/** The newest commit of `main`, and it with its history as a pack. */
const packed = (): { readonly commit: string; readonly pack: Buffer } => {
  const commit = git("rev-parse", "main").toString("utf8").trim();
  const pack = execFileSync("git", ["-C", running.bare, "pack-objects", "--revs", "--stdout", "--quiet"], {
    input: `${commit}\n`,
  });
  return { commit, pack };
};

const prepare = (commit: string, pack: Uint8Array, context = running.context({ sessionId: ID })) =>
  running.ask(`/platform/checkout?commit=${commit}`, {
    method: "PUT",
    headers: { "x-platform-user-context": context },
    body: pack,
  });

const manifestOf = (setup: string) => ({
  "README.md": "hello\n",
  "platform.toml": `[environment]\nsetup = '${setup}'\n`,
});

const startWith = async (setup: string): Promise<void> => {
  running = await Running.start({ standby: ID, files: manifestOf(setup) });
  await running.logged("listening");
};

/** The sessions that a setup command of these tests ran for. */
const ran = (): string => readFileSync(`${running.layout.workspace}/ran.txt`, "utf8");
const states = () => running.log.filter(({ event }) => event === "setup").map(({ state }) => state);

describe("a daemon that waits for its session", () => {
  deepTest("answers its health and nothing else, and does not clone", async () => {
    await start();
    expect(await running.health()).toMatchObject({
      status: "starting",
      repo: { ready: false, branch: null, commit: null },
    });
    for (const path of ["/", "/session", "/platform/logs", "/platform/conversation", "/proxy/3000/"])
      expect(codeOf(await running.ask(path, { headers: {} })), path).toBe("503 unclaimed");
    expect(running.service.seen).toEqual([]);
  });

  test("boots with the session of its claim, and answers the same claim again", async () => {
    await start();
    expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
    await running.logged("ready");
    expect(await running.health()).toMatchObject({
      status: "ready",
      repo: { ready: true, branch: running.sessionId },
    });
    expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
    // A runtime that started with its session has the variables in its own environment.
    const environment = await running.ask("/environment");
    expect(environment.body).toContain(`"PLATFORM_SESSION_ID":"${running.sessionId}"`);
    const written = readFileSync(`${running.layout.sessionEnvironment}.json`, "utf8");
    expect(JSON.parse(written)).toEqual(sessionVariables(running.sessionId));
  });

  deepTest("boots with the session of a claim whose caller left before the answer", async () => {
    // Each program of the agent's side starts late.
    running = await Running.start({ standby: ID, prefix: ["sh", "-c", 'sleep 1; exec "$@"', "late"] });
    await running.logged("listening");
    const { commit, pack } = packed();
    const preparing = prepare(commit, pack);
    // A claim that comes now waits until the commit is unpacked.
    const asked = request({
      socketPath: running.layout.socket,
      path: "/platform/claim",
      method: "POST",
      headers: { "x-platform-user-context": running.context() },
      agent: false,
    });
    asked.on("error", () => undefined);
    // oxlint-disable-next-line no-restricted-globals -- the daemon under test has read the pack by then
    setTimeout(() => asked.end(JSON.stringify(claimOf(running.sessionId))), 200);
    // oxlint-disable-next-line no-restricted-globals -- and this request
    setTimeout(() => asked.destroy(), 500);
    expect(codeOf(await preparing)).toBe("200");
    await running.logged("ready");
    expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
  });

  deepTest("accepts no claim of another, and no second one", async () => {
    await start();
    const other = randomUUID();
    expect(codeOf(await claim(claimOf(running.sessionId), ""))).toBe("401 invalid_user_context");
    const forged = running.context({ token: "platform_sbx_of-another-sandbox" });
    expect(codeOf(await claim(claimOf(running.sessionId), forged))).toBe("401 invalid_user_context");
    // Signed for one session, and it names another.
    expect(codeOf(await claim(claimOf(other)))).toBe("401 invalid_user_context");
    expect(codeOf(await claim("{}"))).toBe("400 invalid_request");
    expect(codeOf(await claim("not JSON"))).toBe("400 invalid_request");
    expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
    await running.logged("ready");
    const late = running.context({ sessionId: other });
    expect(codeOf(await claim(claimOf(other), late))).toBe("401 invalid_user_context");
  });

  deepTest("has the project's commit before its session, and fetches only the rest", async () => {
    await start();
    const { commit, pack } = packed();
    expect(codeOf(await prepare(commit, pack, running.context()))).toBe("401 invalid_user_context");
    expect(codeOf(await prepare("HEAD", pack))).toBe("400 bad_request");
    expect(codeOf(await prepare(commit, pack))).toBe("200");
    expect(readFileSync(`${running.layout.workspace}/README.md`, "utf8")).toBe("hello\n");
    expect(codeOf(await prepare(commit, pack))).toBe("409 claimed");
    const newer = running.pushFromElsewhere({ "new.txt": "new\n" });
    expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
    await running.logged("ready");
    expect((await running.health()).repo).toMatchObject({ commit: newer, branch: running.sessionId });
    expect(await running.git("status", "--porcelain")).toBe("");
    expect(codeOf(await prepare(commit, pack, running.context()))).toBe("409 claimed");
  });

  deepTest(
    "does not fetch if it has the session branch's commit, and leaves a checkout that can",
    async () => {
      await start();
      const { commit, pack } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("200");
      // A fetch would bring it.
      const newer = running.pushFromElsewhere({ "new.txt": "new\n" });
      expect(codeOf(await claim(claimOf(running.sessionId, { branch_commit: commit })))).toBe("200");
      await running.logged("ready");
      expect((await running.health()).repo).toMatchObject({ commit, branch: running.sessionId });
      expect(await running.git("status", "--porcelain", "--branch")).toBe(
        `## ${running.sessionId}...origin/${running.sessionId}\n`,
      );
      await running.git("pull", "--quiet");
      expect((await running.git("rev-parse", "HEAD")).trim()).toBe(newer);
      expect((await running.git("rev-parse", "origin/main")).trim()).toMatch(/^[0-9a-f]{40}$/);
    },
  );

  deepTest("takes the credential that its claim brings, and asks for none", async () => {
    await start();
    const { commit, pack } = packed();
    expect(codeOf(await prepare(commit, pack))).toBe("200");
    const credential = {
      repo_url: "http://platform.internal/v1/git/of-the-claim.git",
      auth: { type: "basic", username: "session", password: "canary-password" },
      expires_at: "2999-01-01T00:00:00.000Z",
      bootstrap: "pending",
    };
    const body = claimOf(running.sessionId, { branch_commit: commit, credential });
    expect(codeOf(await claim(body))).toBe("200");
    await running.logged("ready");
    expect(running.service.seen).toEqual([]);
    expect(readFileSync(running.layout.credentialFile, "utf8")).toContain("password=canary-password");
    expect(readFileSync(running.layout.gitConfigFile, "utf8")).toContain("http://platform.internal");
    expect(running.output).not.toContain("canary-password");
  });

  onlyDeep(() => {
    test.each([
      ["it has another commit", [], "0".repeat(40)],
      [
        "it cannot use its commit",
        ["sh", "-c", 'case "$*" in *symbolic-ref*) exit 1 ;; esac; exec "$@"', "broken"],
        null,
      ],
    ])("fetches if %s", async (_, prefix, branchCommit) => {
      running = await Running.start({ standby: ID, prefix });
      await running.logged("listening");
      const { commit, pack } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("200");
      const newer = running.pushFromElsewhere({ "new.txt": "new\n" });
      const body = claimOf(running.sessionId, { branch_commit: branchCommit ?? commit });
      expect(codeOf(await claim(body))).toBe("200");
      await running.logged("ready");
      expect((await running.health()).repo).toMatchObject({ commit: newer });
      expect(await running.git("status", "--porcelain")).toBe("");
    });
  });

  describe("with a setup command", () => {
    /** It fails while the file `fail` exists, and tells each run with its session. */
    const SETUP =
      'echo "${PLATFORM_SESSION_ID:-none}" >>ran.txt; echo "with $PLATFORM_PROJECT_ID"; test ! -e ../fail';

    test("runs it before the session, which does not run it again", async () => {
      await startWith(SETUP);
      const { commit, pack } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("200");
      await running.logged("setup", { state: "done" });
      expect(codeOf(await claim(claimOf(running.sessionId, { branch_commit: commit })))).toBe("200");
      await running.logged("ready");
      await running.logged("boot", { step: "setup_ended" });
      expect(ran()).toBe("none\n");
      expect(running.output).toContain(`with ${PROJECT_ID}`);
    });

    deepTest("lets the session wait for its end", async () => {
      await startWith("while ! test -e ../go; do sleep 0.1; done");
      const { commit, pack } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("200");
      expect(codeOf(await claim(claimOf(running.sessionId, { branch_commit: commit })))).toBe("200");
      await running.logged("ready");
      expect(states()).toEqual(["running"]);
      writeFileSync(`${running.directory}/go`, "");
      await running.logged("boot", { step: "setup_ended" });
      expect(states()).toEqual(["running", "done"]);
    });

    onlyDeep(() => {
      test.each([
        ["it failed", true, null],
        ["the session is on another commit", false, "0".repeat(40)],
      ])("runs it in the session, on a clean checkout, if %s", async (_, fails, branchCommit) => {
        await startWith(SETUP);
        const fail = `${running.directory}/fail`;
        if (fails) writeFileSync(fail, "");
        const { commit, pack } = packed();
        expect(codeOf(await prepare(commit, pack))).toBe("200");
        await running.logged("setup", { state: fails ? "failed" : "done" });
        rmSync(fail, { force: true });
        const body = claimOf(running.sessionId, { branch_commit: branchCommit ?? commit });
        expect(codeOf(await claim(body))).toBe("200");
        await running.logged("boot", { step: "setup_ended" });
        expect(ran()).toBe(`${running.sessionId}\n`);
      });
    });

    deepTest(
      "runs it once more if it fails during the session, and keeps the files that people made meanwhile",
      async () => {
        await startWith(
          "while ! test -e ../go; do sleep 0.1; done; test -e ../tried || { touch ../tried; exit 3; }",
        );
        const { commit, pack } = packed();
        expect(codeOf(await prepare(commit, pack))).toBe("200");
        expect(codeOf(await claim(claimOf(running.sessionId, { branch_commit: commit })))).toBe("200");
        await running.logged("ready");
        const mine = `${running.layout.workspace}/mine.txt`;
        writeFileSync(mine, "mine");
        writeFileSync(`${running.directory}/go`, "");
        await running.logged("boot", { step: "setup_ended" });
        expect(states()).toEqual(["running", "failed", "running", "done"]);
        expect(existsSync(mine)).toBe(true);
      },
    );

    deepTest("ends it if the session is on another commit", async () => {
      await startWith("echo $$ >../pid; test -e ../go || sleep 600");
      const { commit, pack } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("200");
      const pidFile = `${running.directory}/pid`;
      await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, "utf8")).toMatch(/\d\n/);
      const pid = Number(readFileSync(pidFile, "utf8"));
      writeFileSync(`${running.directory}/go`, "");
      expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
      await running.logged("boot", { step: "setup_ended" });
      await expect.poll(() => isThere(pid)).toBe(false);
    });
  });

  onlyDeep(() => {
    test.each([
      ["is no pack", Buffer.from("no pack")],
      ["ends early", Buffer.from("PACK\0\0\0\u0002\0\0\0\u0009")],
      ["is empty", Buffer.alloc(0)],
    ])("clones as usual if what it got %s", async (_, pack) => {
      await start();
      const { commit } = packed();
      expect(codeOf(await prepare(commit, pack))).toBe("502 not_prepared");
      expect(codeOf(await claim(claimOf(running.sessionId)))).toBe("200");
      await running.logged("ready");
      expect((await running.health()).repo).toMatchObject({ ready: true, commit });
    });
  });

  deepTest("ends if its agent runtime ends before a session comes", async () => {
    running = await Running.start({ standby: ID, adapter: "opencode", agentCommand: ["sh", "-c", "exit 3"] });
    const { child } = running;
    if (child === null) throw new Error("the daemon was started");
    const [code] =
      child.exitCode === null ? ((await once(child, "exit")) as [number | null]) : [child.exitCode];
    expect(code).toBe(0);
    await running.logged("the agent runtime ended before a session came");
  });

  deepTest("fails with its own reason if the claim lacks a variable, and prints no value of it", async () => {
    await start();
    const { PLATFORM_AGENT_NAME: _, ...environment } = sessionVariables(running.sessionId);
    const body = claimOf(running.sessionId, {
      environment: { ...environment, PLATFORM_INITIAL_PROMPT: "canary-prompt" },
    });
    expect(codeOf(await claim(body))).toBe("200");
    await running.logged("daemon failed");
    expect(running.output).not.toContain("canary-prompt");
  });
});
