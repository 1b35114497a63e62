/** `POST /platform/save` of a real daemon: what it leaves out of branches, tags, stashes and worktrees (api.md 7). */
import { execFileSync } from "node:child_process";
import { rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { daemonPerTest } from "./support/per-test.ts";
import { commit, gitIn, Restored } from "./support/restored.ts";
import { headOf, reasonOf, restOf, save, textOf, write } from "./support/saving.ts";

const { ready } = daemonPerTest();

describe("a save names the parts that it leaves out", () => {
  test("branches beyond 500", async () => {
    const daemon = await ready();
    const base = await headOf(daemon);
    const stream = Array.from(
      { length: 510 },
      (_, index) =>
        `commit refs/heads/b${String(index).padStart(3, "0")}\ncommitter a <a@b> ${index} +0000\ndata 1\nx\nfrom ${base}\n`,
    );
    writeFileSync(join(daemon.directory, "stream"), stream.join(""));
    execFileSync("sh", [
      "-c",
      'git -C "$1" fast-import --quiet < "$2"',
      "import",
      daemon.layout.workspace,
      join(daemon.directory, "stream"),
    ]);
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(saved.skipped).toHaveLength(10);
    expect(saved.skipped[0]?.reason).toBe("more than 500 branches, tags and stashes");
    const restored = new Restored(daemon, saved.wip ?? "");
    expect(restored.git("show", `${restored.rest}:refs`).split("\n")).toHaveLength(500);
  });

  test("history beyond 100 MiB, and a smaller branch is stored", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "a-large");
    write(daemon, "large.bin", "");
    truncateSync(join(daemon.layout.workspace, "large.bin"), 101 * 1024 * 1024);
    await daemon.git("-c", "core.looseCompression=0", "-c", "core.bigFileThreshold=1g", "add", "large.bin");
    await daemon.git("commit", "-q", "-m", "large");
    await daemon.git("checkout", "-q", "-b", "b-small", daemon.sessionId);
    const small = await commit(daemon, "small.txt");
    await daemon.git("checkout", "-q", daemon.sessionId);
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(saved.skipped).toEqual([
      { path: "refs/heads/a-large", reason: "more than 100 MiB of history that the remote does not have" },
    ]);
    expect(textOf(daemon, restOf(daemon, saved.wip ?? ""), "refs")).toBe(`${small} refs/heads/b-small`);
  });

  test("everything if the remote refuses it, and the files are stored all the same", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "work");
    await commit(daemon, "secret.txt");
    await daemon.git("checkout", "-q", daemon.sessionId);
    write(daemon, "staged.txt");
    await daemon.git("add", "-A");
    write(daemon, "staged.txt", "changed\n");
    const hook = `#!/bin/sh\nwhile read -r old new ref; do git log --format=%s "$new" | grep -q secret.txt && exit 1; done\nexit 0\n`;
    writeFileSync(join(daemon.bare, "hooks/pre-receive"), hook, { mode: 0o755 });
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(textOf(daemon, saved.wip ?? "", "staged.txt")).toBe("changed");
    expect(saved.skipped).toEqual([
      { path: "refs/heads/work", reason: "refused by the remote" },
      { path: ".git/index", reason: "refused by the remote" },
    ]);
  });

  test("copies of another remote's branches, a missing worktree, large staged files", async () => {
    const daemon = await ready();
    const other = join(daemon.directory, "other");
    execFileSync("git", ["init", "-q", other]);
    gitIn(other, "commit", "-q", "--allow-empty", "-m", "x");
    await daemon.git("remote", "add", "upstream", other);
    await daemon.git("fetch", "-q", "upstream");
    await daemon.git("worktree", "add", "-q", "--detach", join(daemon.directory, "gone"));
    rmSync(join(daemon.directory, "gone"), { recursive: true });
    write(daemon, "large.bin", "");
    truncateSync(join(daemon.layout.workspace, "large.bin"), 10 * 1024 * 1024 + 1);
    await daemon.git("add", "large.bin");
    rmSync(join(daemon.layout.workspace, "large.bin"));
    const saved = await save(daemon);
    expect(saved).toMatchObject({ wip: null, error: null });
    expect(reasonOf(saved, "refs/remotes/upstream/*")).toBe("copies of another remote's branches");
    expect(reasonOf(saved, join(daemon.directory, "gone"))).toBe("a worktree whose directory is missing");
    expect(reasonOf(saved, "large.bin")).toBe("larger than 10 MiB");
  });

  test("a branch that git cannot read, and the others are stored", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "whole");
    const whole = await commit(daemon, "whole.txt");
    await daemon.git("checkout", "-q", daemon.sessionId);
    writeFileSync(join(daemon.layout.workspace, ".git/refs/heads/broken"), `${"ab".repeat(20)}\n`);
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(saved.skipped).toEqual([{ path: "refs/heads/broken", reason: "cannot be read or stored" }]);
    daemon.remote("merge-base", "--is-ancestor", whole, saved.wip ?? "");
  });
});
