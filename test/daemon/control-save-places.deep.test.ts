/** `POST /platform/save` of a real daemon: the work tree is the workspace, wherever the agent's repository lies. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { daemonPerTest } from "./support/per-test.ts";
import { commit, Restored } from "./support/restored.ts";
import type { Running } from "./support/running.ts";
import { filesOf, headOf, parentsOf, textOf, wipOf, write } from "./support/saving.ts";

const { ready } = daemonPerTest();

const elsewhere = (daemon: Running): string => {
  const directory = join(daemon.directory, "elsewhere");
  mkdirSync(directory);
  writeFileSync(join(directory, "wrong.txt"), "wrong\n");
  return directory;
};

const expectWorkspace = async (daemon: Running): Promise<void> => {
  write(daemon, "new.txt");
  expect(filesOf(daemon, await wipOf(daemon))).toEqual(["README.md", "new.txt"]);
};

describe("a save takes /workspace, regardless of the agent's configuration:", () => {
  test("core.worktree", async () => {
    const daemon = await ready();
    await daemon.git("config", "core.worktree", elsewhere(daemon));
    await expectWorkspace(daemon);
  });

  test("core.bare", async () => {
    const daemon = await ready();
    await daemon.git("config", "core.bare", "true");
    await expectWorkspace(daemon);
  });

  test("a worktree's own configuration, and an included one", async () => {
    const daemon = await ready();
    const directory = elsewhere(daemon);
    const included = join(daemon.directory, "included");
    writeFileSync(included, `[core]\n\tworktree = ${directory}\n\tbare = true\n\tfileMode = false\n`);
    await daemon.git("config", "extensions.worktreeConfig", "true");
    await daemon.git("config", "--worktree", "core.worktree", directory);
    await daemon.git("config", "include.path", included);
    await expectWorkspace(daemon);
    execFileSync("chmod", ["+x", join(daemon.layout.workspace, "new.txt")]);
    expect(daemon.remote("ls-tree", await wipOf(daemon), "new.txt")).toMatch(/^100755 /);
  });

  test("a .git that is a file", async () => {
    const daemon = await ready();
    const { workspace } = daemon.layout;
    const moved = join(daemon.directory, "moved.git");
    execFileSync("mv", [join(workspace, ".git"), moved]);
    writeFileSync(join(workspace, ".git"), `gitdir: ${moved}\n`);
    write(daemon, "new.txt");
    const [, saved] = await daemon.control("save");
    expect(saved).toMatchObject({ skipped: [], error: null });
    expect(filesOf(daemon, String(saved["wip"]))).toEqual(["README.md", "new.txt"]);
  });

  test("a .git that is a worktree of a repository elsewhere", async () => {
    const daemon = await ready();
    const { workspace } = daemon.layout;
    const other = join(daemon.directory, "other");
    execFileSync("git", ["clone", "-q", daemon.bare, other], { stdio: "pipe" });
    rmSync(workspace, { recursive: true });
    execFileSync("git", ["-C", other, "worktree", "add", "-q", "--detach", workspace]);
    write(daemon, "new.txt");
    writeFileSync(join(other, "there.txt"), "there\n");
    const [, saved] = await daemon.control("save");
    expect(saved).toMatchObject({ skipped: [], error: null });
    const wip = String(saved["wip"]);
    expect(filesOf(daemon, wip)).toEqual(["README.md", "new.txt"]);
    const { rest } = new Restored(daemon, wip);
    expect(textOf(daemon, rest, "worktree-1/there.txt")).toBe("there");
  });

  test("objects borrowed from other repositories, over a relative path", async () => {
    const daemon = await ready();
    const { workspace } = daemon.layout;
    const [lender, second] = [join(daemon.directory, "lender"), join(daemon.directory, "second")];
    for (const path of [lender, second]) execFileSync("git", ["init", "-q", path]);
    write(daemon, "borrowed.txt");
    await daemon.git("add", "-A");
    await daemon.git("commit", "-q", "-m", "borrowed");
    const head = await headOf(daemon);
    execFileSync("cp", ["-r", join(workspace, ".git/objects"), join(lender, ".git")]);
    const object = `${head.slice(0, 2)}/${head.slice(2)}`;
    rmSync(join(workspace, ".git/objects", object), { force: true });
    writeFileSync(join(workspace, ".git/objects/info/alternates"), "../../../lender/.git/objects\n");
    expect(parentsOf(daemon, await wipOf(daemon))).toEqual([head]);
  });

  test("a shallow history", async () => {
    const daemon = await ready();
    await commit(daemon, "one.txt");
    await daemon.git("push", "-q", "origin", "HEAD");
    await daemon.git("fetch", "-q", "--depth=1", "origin", daemon.sessionId);
    expect(existsSync(join(daemon.layout.workspace, ".git/shallow"))).toBe(true);
    write(daemon, "new.txt");
    expect(parentsOf(daemon, await wipOf(daemon))).toEqual([await headOf(daemon)]);
  });
});
