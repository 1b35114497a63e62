/** `POST /platform/refresh` of a real daemon, over real git (api.md 7). */
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Running, TOKEN } from "../support/running.ts";
import { daemonPerTest } from "../support/per-test.ts";
import { signal } from "../support/served.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const { start, ready } = daemonPerTest();

const write = (daemon: Running, name: string, text: string): void =>
  writeFileSync(join(daemon.layout.workspace, name), text);
const read = (daemon: Running, name: string): string =>
  readFileSync(join(daemon.layout.workspace, name), "utf8");
const headOf = async (daemon: Running): Promise<string> => (await daemon.git("rev-parse", "HEAD")).trim();

/** What a refresh must not touch, in one text. */
const stateOf = async (daemon: Running): Promise<string> =>
  [
    await daemon.git("rev-parse", "HEAD"),
    await daemon.git("symbolic-ref", "--quiet", "HEAD").catch(() => "detached"),
    await daemon.git("for-each-ref", "refs/heads"),
    await daemon.git("status", "--porcelain", "--ignored"),
    await daemon.git("stash", "list"),
  ].join("\n");

describe("a refresh", () => {
  test("fetches others' commits, and answers once the restarted runtime serves", async () => {
    const daemon = await ready();
    const before = await headOf(daemon);
    const after = daemon.pushFromElsewhere({ "README.md": "changed\n", "new.txt": "new\n" });
    const [status, answer] = await daemon.control("refresh");
    expect([status, answer]).toEqual([
      200,
      {
        repo: { before, after },
        runtime: expect.objectContaining({ state: "ready", restarts: 1 }) as unknown,
        turn_interrupted: false,
      },
    ]);
    expect((await daemon.ask("/")).body).toBe("runtime");
    expect([read(daemon, "README.md"), read(daemon, "new.txt")]).toEqual(["changed\n", "new\n"]);
    expect((await daemon.git("branch", "--show-current")).trim()).toBe(daemon.sessionId);
    expect((await daemon.health()).repo.commit).toBe(after);
  });

  deepTest("updates the workspace regardless of core.worktree and core.bare", async () => {
    const daemon = await ready();
    const elsewhere = join(daemon.directory, "elsewhere");
    mkdirSync(elsewhere);
    await daemon.git("config", "core.worktree", elsewhere);
    await daemon.git("config", "core.bare", "true");
    daemon.pushFromElsewhere({ "new.txt": "new\n" });
    expect((await daemon.control("refresh"))[0]).toBe(200);
    expect(read(daemon, "new.txt")).toBe("new\n");
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  test("restarts the runtime in place if the branch has not moved", async () => {
    const daemon = await ready();
    const head = await headOf(daemon);
    const [status, answer] = await daemon.control("refresh", "");
    expect([status, answer["repo"]]).toEqual([200, { before: head, after: head }]);
    expect((await daemon.health()).runtime).toMatchObject({ state: "ready", restarts: 1 });
  });

  deepTest("reads the config directory again", async () => {
    const daemon = await ready();
    daemon.pushFromElsewhere({ "platform.toml": '[runtime]\nconfig_dir = "agents/conf"\n' });
    await daemon.control("refresh");
    const environment = JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;
    expect(environment["AGENT_CONFIG_DIR"]).toBe(join(daemon.layout.workspace, "agents/conf"));
    daemon.pushFromElsewhere({ "platform.toml": '[runtime]\nconfig_dir = "../../.."\n' });
    await daemon.control("refresh");
    expect((await daemon.health()).error).toContain("config_dir must be a directory inside");
  });

  deepTest("that is sent twice counts once: the second finds everything up to date [A02]", async () => {
    const daemon = await ready();
    const after = daemon.pushFromElsewhere({ "new.txt": "new\n" });
    await daemon.control("refresh");
    const [status, answer] = await daemon.control("refresh");
    expect([status, answer["repo"]]).toEqual([200, { before: after, after }]);
  });

  deepTest("runs once for any number of concurrent requests [X19]", async () => {
    const daemon = await ready();
    const after = daemon.pushFromElsewhere({ "new.txt": "new\n" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => daemon.control("refresh")));
    const [done, ...refused] = answers.toSorted(([a], [b]) => a - b);
    expect(done?.[1]["repo"]).toMatchObject({ after });
    expect(refused.map(([status, { code }]) => [status, code])).toEqual(
      Array.from({ length: 19 }, () => [409, "refresh_in_progress"]),
    );
    expect((await daemon.health()).runtime.restarts).toBe(1);
    expect((await daemon.control("refresh"))[0]).toBe(200);
  });

  deepTest("is refused while the first clone still runs, ×20 in parallel [X19]", async () => {
    const gate = signal();
    const daemon = await start({ prepare: ({ state }) => (state.gate = gate.given) });
    await daemon.logged("agent runtime", { state: "ready" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => daemon.control("refresh")));
    expect(new Set(answers.map(([status, { code }]) => `${status} ${String(code)}`))).toEqual(
      new Set(["409 refresh_in_progress"]),
    );
    gate.give();
    await daemon.logged("ready");
    expect((await daemon.health()).runtime.restarts).toBe(0);
    expect((await daemon.control("refresh"))[0]).toBe(200);
  });

  deepTest("of a checkout that was given up reports that no checkout exists", async () => {
    const daemon = await start({
      environment: { PLATFORM_BRANCH_NAME: "no-such-branch" },
      bootDeadlineMs: 1000,
    });
    await daemon.logged("checkout stopped");
    const [status, { code }] = await daemon.control("refresh");
    expect([status, code]).toEqual([503, "runtime_not_ready"]);
  });

  deepTest("that cannot reach the remote reports git's message, and can be repeated", async () => {
    const daemon = await ready({ agentEnv: { PROJECT_SECRET: "canary-secret" } });
    daemon.service.state.failures = 10;
    const [status, { code, error }] = await daemon.control("refresh");
    expect([status, code]).toEqual([502, "refresh_failed"]);
    expect(error).toContain("The requested URL returned error: 500");
    expect((await daemon.health()).runtime.restarts).toBe(0);
    daemon.service.state.failures = 0;
    expect((await daemon.control("refresh"))[0]).toBe(200);
  });

  deepTest("continues with a new credential if the current one has expired", async () => {
    const daemon = await ready();
    const after = daemon.pushFromElsewhere({ "new.txt": "new\n" });
    daemon.service.state.password = "pw-canary-2";
    const [status, answer] = await daemon.control("refresh");
    expect([status, answer["repo"]]).toMatchObject([200, { after }]);
  });
});

const refusal = async (daemon: Running): Promise<unknown> => {
  daemon.pushFromElsewhere({ "README.md": "from elsewhere\n", "theirs.txt": "theirs\n" });
  const before = await stateOf(daemon);
  const [status, { code }] = await daemon.control("refresh");
  expect(await stateOf(daemon)).toBe(before);
  expect((await daemon.health()).runtime.restarts).toBe(0);
  return [status, code];
};

describe("a refresh loses no work: it refuses and changes nothing", () => {
  test("for a changed file", async () => {
    const daemon = await ready();
    write(daemon, "README.md", "mine\n");
    expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
    expect(read(daemon, "README.md")).toBe("mine\n");
  });

  onlyDeep(() => {
    test.each(["new.txt", "theirs.txt"])("for the untracked file %s", async (name) => {
      const daemon = await ready();
      write(daemon, name, "mine\n");
      expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
      expect(read(daemon, name)).toBe("mine\n");
    });
  });

  deepTest("for changes that were only staged", async () => {
    const daemon = await ready();
    write(daemon, "README.md", "mine\n");
    await daemon.git("add", "README.md");
    expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
  });

  deepTest("for an ignored file that the remote also adds", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", ".gitignore": "theirs.txt\n" } });
    write(daemon, "theirs.txt", "mine\n");
    const seed = join(daemon.directory, "seed");
    // Somebody else forced the ignored file in.
    writeFileSync(join(seed, ".gitignore"), "");
    expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
    expect(read(daemon, "theirs.txt")).toBe("mine\n");
  });

  deepTest("for a change that git was told to overlook", async () => {
    const daemon = await ready();
    await daemon.git("update-index", "--assume-unchanged", "README.md");
    write(daemon, "README.md", "mine\n");
    expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
    expect(read(daemon, "README.md")).toBe("mine\n");
  });

  deepTest("for commits that the remote lacks, whether it moved or not", async () => {
    const daemon = await ready();
    await daemon.git("commit", "-q", "--allow-empty", "-m", "mine");
    const [status, { code }] = await daemon.control("refresh");
    expect([status, code]).toEqual([409, "diverged"]);
    expect(await refusal(daemon)).toEqual([409, "diverged"]);
    await daemon.git("push", "-q", "--force", "origin", "HEAD");
    expect((await daemon.control("refresh"))[0]).toBe(200);
  });

  deepTest(
    "for commits of a detached HEAD, and of the session branch while another is checked out",
    async () => {
      const daemon = await ready();
      await daemon.git("checkout", "-q", "--detach");
      await daemon.git("commit", "-q", "--allow-empty", "-m", "mine");
      expect(await refusal(daemon)).toEqual([409, "diverged"]);
      await daemon.git("branch", "-q", "-f", daemon.sessionId);
      await daemon.git("checkout", "-q", "-b", "other", "origin/main");
      expect(await refusal(daemon)).toEqual([409, "diverged"]);
    },
  );

  deepTest("for a merge in progress, even without remaining differences", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "other");
    await daemon.git("commit", "-q", "--allow-empty", "-m", "other");
    await daemon.git("checkout", "-q", daemon.sessionId);
    await daemon.git("merge", "-q", "--no-ff", "--no-commit", "other");
    expect(await daemon.git("status", "--porcelain")).toBe("");
    expect(await refusal(daemon)).toEqual([409, "uncommitted_changes"]);
  });
});

deepTest("a refresh from a detached HEAD or another branch ends on the session branch", async () => {
  const daemon = await ready();
  for (const way of [
    ["checkout", "-q", "--detach"],
    ["checkout", "-q", "-b", "other"],
  ]) {
    await daemon.git(...way);
    const after = daemon.pushFromElsewhere({ "new.txt": `${way.join(" ")}\n` });
    expect((await daemon.control("refresh"))[1]["repo"]).toMatchObject({ after });
    expect((await daemon.git("branch", "--show-current")).trim()).toBe(daemon.sessionId);
    expect(await headOf(daemon)).toBe(after);
  }
});

deepTest(
  "programs that git runs for a refresh run as the agent, without the daemon's environment; hooks and fsmonitor do not run [G06]",
  async () => {
    const daemon = await ready({ prefix: ["env", "BEHIND_THE_PREFIX=yes"] });
    const traces = new Map(
      ["filter", "hook", "fsmonitor"].map((name) => [name, join(daemon.directory, `${name}-ran`)] as const),
    );
    const program = (name: string): string => {
      const file = join(daemon.directory, name);
      writeFileSync(file, `#!/bin/sh\nenv > '${traces.get(name)}'\nexec cat\n`);
      chmodSync(file, 0o755);
      return file;
    };
    const [filter, hook, fsmonitor] = [program("filter"), program("hook"), program("fsmonitor")];
    await daemon.git("config", "filter.spy.smudge", filter);
    await daemon.git("config", "core.fsmonitor", fsmonitor);
    for (const name of ["post-merge", "post-checkout", "reference-transaction"]) {
      writeFileSync(join(daemon.layout.workspace, ".git/hooks", name), readFileSync(hook), { mode: 0o755 });
    }
    daemon.pushFromElsewhere({ ".gitattributes": "*.dat filter=spy\n", "a.dat": "x\n" });
    expect((await daemon.control("refresh"))[0]).toBe(200);
    const seen = readFileSync(traces.get("filter") ?? "", "utf8");
    expect(seen).toContain("BEHIND_THE_PREFIX=yes");
    expect(seen).not.toMatch(/PLATFORM_TOKEN/);
    expect(seen).not.toContain(TOKEN);
    expect([existsSync(traces.get("hook") ?? ""), existsSync(traces.get("fsmonitor") ?? "")]).toEqual([
      false,
      false,
    ]);
  },
);
