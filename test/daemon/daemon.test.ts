import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isThere, TOKEN } from "./support/running.ts";
import { WAIT_MS } from "../support/patience.ts";
import { daemonPerTest } from "./support/per-test.ts";
import { signal } from "./support/served.ts";

const { start } = daemonPerTest();

/** The text of every file below a directory. */
const textBelow = (directory: string): string =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");

describe("a boot", () => {
  test("answers health before it has a credential, and 503 on everything else", async () => {
    const gate = signal();
    const daemon = await start({ prepare: ({ state }) => (state.gate = gate.given) });
    await daemon.logged("agent runtime", { state: "ready" });
    expect(await daemon.health()).toMatchObject({
      status: "starting",
      runtime: { state: "ready" },
      repo: { ready: false, url: daemon.service.repoUrl, branch: daemon.sessionId, commit: null },
      error: null,
    });
    expect((await daemon.ask("/")).status).toBe(503);
    gate.give();
    await daemon.logged("ready");
    const { status, repo, boot } = await daemon.health();
    expect([status, repo.ready]).toEqual(["ready", true]);
    expect(boot.map(({ step }) => step)).toEqual([
      "listening",
      "runtime_started",
      "runtime_ready",
      "credential",
      "cloned",
      "ready",
    ]);
    expect((await daemon.ask("/")).body).toBe("runtime");
  });

  test("checks the session branch out, so that the agent commits, pushes and fetches the base", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    const head = (await daemon.git("rev-parse", "HEAD")).trim();
    expect((await daemon.health()).repo).toMatchObject({ ready: true, commit: head });
    expect((await daemon.git("branch", "--show-current")).trim()).toBe(daemon.sessionId);
    await daemon.git("commit", "--quiet", "--allow-empty", "-m", "work");
    await daemon.git("push", "--quiet", "origin", "HEAD");
    await daemon.git("fetch", "--quiet", "origin");
    expect(await daemon.git("config", "--get-all", "remote.origin.fetch")).toContain("refs/heads/main:");
    expect(
      (await daemon.git("log", "--format=%s %an", `origin/main..origin/${daemon.sessionId}`)).trim(),
    ).toBe("work default");
  });

  test("stores the credential only in the file that git's helper reads [G05]", async () => {
    const daemon = await start({ prepare: ({ state }) => (state.stale = 1) });
    await daemon.logged("ready");
    await daemon.git("commit", "--quiet", "--allow-empty", "-m", "work");
    await daemon.git("push", "--quiet", "origin", "HEAD");
    const password = "pw-canary";
    expect(readFileSync(daemon.layout.credentialFile, "utf8")).toContain(password);
    expect(textBelow(daemon.layout.workspace)).not.toContain(password);
    expect(textBelow(join(daemon.directory, "home"))).not.toContain(password);
    expect(daemon.output).not.toContain(password);
    expect(JSON.stringify(await daemon.health())).not.toContain(password);
  });

  test("repeats a failed checkout, with a new credential each time, and reports the reason meanwhile", async () => {
    const daemon = await start({
      prepare: ({ state }) => {
        state.failures = 2;
        state.stale = 2;
      },
    });
    const failed = await daemon.logged("checkout failed");
    expect(failed["message"]).toContain("clone failed: fatal:");
    await daemon.logged("ready");
    expect(daemon.service.credentials).toBeGreaterThan(2);
    expect(await daemon.health()).toMatchObject({ status: "ready", error: null });
  });

  test("gives up the checkout at the boot deadline, with git's message in health", async () => {
    const daemon = await start({
      environment: { PLATFORM_BRANCH_NAME: "no-such-branch" },
      bootDeadlineMs: 5000,
    });
    await daemon.logged("checkout stopped");
    const { status, error, repo } = await daemon.health();
    expect([status, repo.ready]).toEqual(["error", false]);
    expect(error).toContain("couldn't find remote ref refs/heads/no-such-branch");
    expect((await daemon.ask("/")).status).toBe(503);
  });

  test("works on a repository that has no default branch", async () => {
    const daemon = await start({ environment: { PLATFORM_DEFAULT_BRANCH: "trunk" } });
    await daemon.logged("ready");
    await daemon.git("fetch", "--quiet", "origin");
  });

  test("renews the credential before it expires, and pushes still succeed", async () => {
    const daemon = await start({ prepare: ({ state }) => (state.lifeMs = 1500) });
    await daemon.logged("ready");
    daemon.service.state.password = "pw-canary-2";
    await daemon.service.gaveCredentials(2);
    await daemon.service.gaveCredentials(3);
    await daemon.git("push", "--quiet", "origin", "HEAD");
  });
});

test("a credential that the remote refused is renewed", async () => {
  const daemon = await start();
  await daemon.logged("ready");
  daemon.service.state.password = "pw-canary-2";
  await expect(daemon.git("push", "--quiet", "origin", "HEAD")).rejects.toThrow("Authentication failed");
  const kept = () => readFileSync(daemon.layout.credentialFile, "utf8");
  await expect.poll(kept, { timeout: WAIT_MS }).toContain("pw-canary-2");
  await daemon.git("push", "--quiet", "origin", "HEAD");
});

describe("the agent runtime", () => {
  test("has the injected environment and the secrets, but never PLATFORM_TOKEN", async () => {
    const daemon = await start({
      agentEnv: {
        PROJECT_SECRET: "line one\nline two",
        PLATFORM_PROJECT_ID: "forged",
        PATH: "/nowhere",
        LANG: "de_DE.UTF-8",
      },
    });
    await daemon.logged("ready");
    const environment = JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;
    expect(environment).toMatchObject({
      PROJECT_SECRET: "line one\nline two",
      LANG: "de_DE.UTF-8",
      PLATFORM_SESSION_ID: daemon.sessionId,
      PLATFORM_CLI_TOKEN: "platform_pat_canary-of-the-user",
      AGENT_CONFIG_DIR: join(daemon.layout.workspace, ".platform/runtime"),
      HOME: join(daemon.directory, "home"),
    });
    expect(environment["PLATFORM_PROJECT_ID"]).not.toBe("forged");
    expect(environment["PATH"]).not.toBe("/nowhere");
    expect(Object.keys(environment)).not.toContain("PLATFORM_TOKEN");
    expect(JSON.stringify(environment)).not.toContain(TOKEN);
    expect(existsSync(daemon.layout.launchFile)).toBe(false);
  });

  test("has its own PATH, which the daemon does not search", async () => {
    const bin = mkdtempSync(join(tmpdir(), "agent-bin-"));
    onTestFinished(() => rmSync(bin, { recursive: true }));
    for (const name of ["git", "sh", "env", "find", "rm", "cp"])
      writeFileSync(join(bin, name), "#!/nonexistent\n", { mode: 0o755 });
    writeFileSync(join(bin, "agents-node"), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 });
    const daemon = await start({ agentBin: bin, agentProgram: "agents-node" });
    await daemon.logged("ready");
    const environment = JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;
    expect(environment["PATH"]).toBe(`${bin}:${process.env["PATH"]}`);
    writeFileSync(join(daemon.layout.workspace, "new.txt"), "new\n");
    // The daemon's own git answers.
    expect((await daemon.control("refresh"))[1]).toMatchObject({ code: "uncommitted_changes" });
  });

  test("is restarted once before its first request if the manifest names another config directory", async () => {
    const daemon = await start({
      files: { "platform.toml": '[runtime]\nconfig_dir = "agents/conf"\n', "agents/conf/x": "" },
    });
    await daemon.logged("ready");
    const environment = JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;
    expect(environment["AGENT_CONFIG_DIR"]).toBe(join(daemon.layout.workspace, "agents/conf"));
    expect((await daemon.health()).runtime.restarts).toBe(1);
  });

  test("keeps the default directory if the manifest's directory is outside the repository [M15]", async () => {
    const daemon = await start({ files: { "platform.toml": '[runtime]\nconfig_dir = "../.."\n' } });
    await daemon.logged("ready");
    const { status, error, runtime } = await daemon.health();
    expect([status, runtime.restarts]).toEqual(["degraded", 0]);
    expect(error).toContain("config_dir must be a directory inside the repository");
  });

  test("is restarted after a crash, and health shows its last output without secrets [R12]", async () => {
    const daemon = await start({ agentEnv: { PROJECT_SECRET: "canary-secret" } });
    await daemon.logged("ready");
    await daemon.ask("/crash");
    await daemon.logged("agent runtime", { state: "restarting" });
    expect(await daemon.health()).toMatchObject({ status: "degraded" });
    await daemon.logged("agent runtime", { state: "ready", run: 2 });
    const { status, runtime, error } = await daemon.health();
    expect([status, error]).toEqual(["ready", null]);
    expect(runtime).toMatchObject({ state: "ready", restarts: 1, last_exit: { code: 3, signal: null } });
    expect(runtime.last_exit?.output).toEqual(["the runtime says hello", "about to crash with [redacted]"]);
    expect(daemon.output).not.toContain("canary-secret");
  });

  test("is restarted even if children of the crashed one hold its output open", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    await daemon.ask("/crash-with-children").catch(() => undefined);
    await daemon.logged("agent runtime", { state: "ready", run: 2 });
    expect((await daemon.health()).runtime.last_exit?.code).toBe(4);
  });

  test("that cannot be started is named in health", async () => {
    const daemon = await start({ agentCommand: ["/no/such/program"] });
    await daemon.logged("agent runtime", { state: "restarting" });
    expect((await daemon.health()).error).toContain("cannot be started: spawn /no/such/program ENOENT");
  });

  test("ends with the daemon, together with all its processes", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    const { own, child } = JSON.parse((await daemon.ask("/spawn")).body) as { own: number; child: number };
    expect([isThere(own), isThere(child)]).toEqual([true, true]);
    expect(await daemon.end("SIGTERM")).toBe(0);
    expect(daemon.log.at(-1)).toMatchObject({ event: "agent runtime", state: "stopped" });
    // The machine's first process takes the child's end a moment later.
    await expect.poll(() => [isThere(own), isThere(child)], { timeout: WAIT_MS }).toEqual([false, false]);
  });
});

describe("the initial prompt", () => {
  const environment = { PLATFORM_INITIAL_PROMPT: "do it", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

  test("is absent if the session has none", async () => {
    const daemon = await start();
    await daemon.logged("ready");
    expect((await daemon.health()).bootstrap).toEqual({ state: "none", at: null });
  });

  test("is passed in the variable by the plain adapter, and reported as done once the runtime serves", async () => {
    const daemon = await start({ environment });
    await daemon.logged("initial prompt accepted");
    const { bootstrap } = await daemon.health();
    expect(bootstrap.state).toBe("done");
    expect(bootstrap.at).toMatch(/^\d{4}-.*Z$/);
    expect(daemon.output).not.toContain("do it");
  });

  test("that an earlier boot handed over is not handed over again", async () => {
    const daemon = await start({ environment, prepare: ({ state }) => (state.bootstrap = "done") });
    await daemon.logged("ready");
    expect((await daemon.health()).bootstrap).toEqual({ state: "done", at: null });
    expect(daemon.log.some(({ event }) => event === "initial prompt accepted")).toBe(false);
  });
});

test("a daemon without its launch file ends with code 1 and names the file without quoting it", async () => {
  const daemon = await start({ launchFile: '{"agentEnv": {"A": "canary-secret"}}' });
  const exited = signal<number | null>();
  daemon.child?.once("exit", (code) => exited.give(code));
  expect(await exited.given).toBe(1);
  expect(daemon.output).toContain("launch.json cannot be read");
  expect(daemon.output).not.toContain("canary-secret");
});
