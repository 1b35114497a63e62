/** Saved work in a later sandbox of the session: a real daemon over real git brings it back (daemon/saving/restore.ts). */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Restored } from "../../src/domain/saved.ts";
import { daemonPerTest } from "./support/per-test.ts";
import type { Running } from "./support/running.ts";
import { headOf, save, wipOf, write } from "./support/saving.ts";
import { deepTest } from "../support/vitest/rings.ts";

const { ready } = daemonPerTest();

const commit = async (daemon: Running, name: string): Promise<string> => {
  write(daemon, name);
  await daemon.git("add", "-A");
  await daemon.git("commit", "-q", "-m", name);
  return await headOf(daemon);
};

/** Boots the session again with its saved work. */
const restart = async (daemon: Running, wip: string): Promise<Restored> => {
  await daemon.reboot({ wip, restore: true });
  const { restored } = await daemon.health();
  if (restored === null) throw new Error("nothing was said of a restoration");
  return restored;
};

const textIn = (daemon: Running, name: string): string =>
  readFileSync(join(daemon.layout.workspace, name), "utf8");
const statusOf = async (daemon: Running): Promise<string[]> =>
  (await daemon.git("status", "--porcelain", "-uall")).split("\n").filter((line) => line !== "");

/** Puts a commit that no save makes on the session's wip ref. `tree` has lines for `git mktree`. */
const hostile = (daemon: Running, tree: string, message = "anything"): string => {
  const git = (input: string, ...args: string[]): string =>
    execFileSync("git", ["-C", daemon.bare, "-c", "user.name=x", "-c", "user.email=x@example.com", ...args], {
      input,
      encoding: "utf8",
    }).trim();
  const object = git(tree, "mktree");
  const wip = git("", "commit-tree", object, "-p", daemon.sessionId, "-m", message);
  git("", "update-ref", `refs/wip/${daemon.sessionId}`, wip);
  return wip;
};
const blobIn = (daemon: Running, text: string): string =>
  execFileSync("git", ["-C", daemon.bare, "hash-object", "-w", "--stdin"], {
    input: text,
    encoding: "utf8",
  }).trim();

describe("a restart with saved work", () => {
  test("brings back commits as commits, and the rest as uncommitted changes", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "gone.txt": "gone\n", "a/b.txt": "b\n" } });
    const pushed = daemon.remote("rev-parse", daemon.sessionId);
    const head = await commit(daemon, "committed.txt");
    write(daemon, "README.md", "changed\n");
    write(daemon, "new dir/ü\n.txt", "new\n");
    write(daemon, "run.sh", "#!/bin/sh\n");
    chmodSync(join(daemon.layout.workspace, "run.sh"), 0o755);
    symlinkSync("/etc/passwd", join(daemon.layout.workspace, "link"));
    rmSync(join(daemon.layout.workspace, "gone.txt"));
    rmSync(join(daemon.layout.workspace, "a"), { recursive: true });
    write(daemon, "a", "a file in place of a directory\n");
    const before = await statusOf(daemon);
    const wip = await wipOf(daemon);

    expect(await restart(daemon, wip)).toEqual({ wip, commits: 1, files: 7, skipped: [], error: null });
    expect(await headOf(daemon)).toBe(head);
    expect((await daemon.git("symbolic-ref", "HEAD")).trim()).toBe(`refs/heads/${daemon.sessionId}`);
    expect(await statusOf(daemon)).toEqual(before);
    expect(textIn(daemon, "README.md")).toBe("changed\n");
    expect(textIn(daemon, "new dir/ü\n.txt")).toBe("new\n");
    expect(lstatSync(join(daemon.layout.workspace, "run.sh")).mode & 0o111).toBe(0o111);
    expect(readlinkSync(join(daemon.layout.workspace, "link"))).toBe("/etc/passwd");
    expect((await daemon.health()).repo.commit).toBe(head);
    expect(daemon.remote("rev-parse", daemon.sessionId)).toBe(pushed);
    // The next stop saves the same work as the same commit.
    expect(await save(daemon)).toEqual({ wip, skipped: [], error: null });
  });

  deepTest("leaves the workspace alone unless it is asked", async () => {
    const daemon = await ready();
    write(daemon, "new.txt");
    const wip = await wipOf(daemon);
    await daemon.reboot({ wip });
    expect((await daemon.health()).restored).toBeNull();
    expect(await statusOf(daemon)).toEqual([]);
  });

  deepTest("keeps what was pushed meanwhile, and names the files that it left", async () => {
    const daemon = await ready({ files: { "both.txt": "old\n", "mine.txt": "old\n", "same.txt": "old\n" } });
    for (const name of ["both.txt", "mine.txt", "same.txt", "new.txt"]) write(daemon, name, "mine\n");
    const wip = await wipOf(daemon);
    daemon.pushFromElsewhere({ "both.txt": "theirs\n", "same.txt": "mine\n", "new.txt": "theirs\n" });

    const reason = "changed on the branch since the save";
    expect(await restart(daemon, wip)).toEqual({
      wip,
      commits: 0,
      files: 1,
      skipped: [
        { path: "both.txt", reason },
        { path: "new.txt", reason },
      ],
      error: null,
    });
    expect(await statusOf(daemon)).toEqual([" M mine.txt"]);
    expect(textIn(daemon, "both.txt")).toBe("theirs\n");
    expect(daemon.remote("rev-parse", `refs/wip/${daemon.sessionId}`)).toBe(wip);
  });

  deepTest("restores commits as changed files if the branch has gone another way", async () => {
    const daemon = await ready();
    await commit(daemon, "mine.txt");
    const wip = await wipOf(daemon);
    const theirs = daemon.pushFromElsewhere({ "theirs.txt": "theirs\n" });
    const restored = await restart(daemon, wip);
    expect(restored).toMatchObject({ commits: 0, files: 1, skipped: [] });
    expect(restored.error).toContain("1 commit is not on the session branch");
    expect(await headOf(daemon)).toBe(theirs);
    expect(await statusOf(daemon)).toEqual(["?? mine.txt"]);
  });

  deepTest(
    "puts the files of another branch onto the session branch, and its unpushed commits too",
    async () => {
      const daemon = await ready();
      const head = await commit(daemon, "own.txt");
      await daemon.git("checkout", "-q", "-b", "other", "HEAD~1");
      await commit(daemon, "other.txt");
      write(daemon, "loose.txt");
      const wip = await wipOf(daemon);
      expect(await restart(daemon, wip)).toMatchObject({ commits: 1, files: 2, skipped: [], error: null });
      expect(await headOf(daemon)).toBe(head);
      expect(await statusOf(daemon)).toEqual(["?? loose.txt", "?? other.txt"]);
    },
  );

  deepTest("restores the newest of several saves", async () => {
    const daemon = await ready();
    write(daemon, "first.txt");
    await restart(daemon, await wipOf(daemon));
    write(daemon, "second.txt");
    const wip = await wipOf(daemon);
    expect(await restart(daemon, wip)).toMatchObject({ files: 2, error: null });
    expect(await statusOf(daemon)).toEqual(["?? first.txt", "?? second.txt"]);
  });

  deepTest("says so if the saved commit is not on the ref, and boots", async () => {
    const daemon = await ready();
    const restored = await restart(daemon, "1".repeat(40));
    expect(restored).toMatchObject({ commits: 0, files: 0 });
    expect(restored.error).toContain("refs/wip/");
    expect(await statusOf(daemon)).toEqual([]);
  });
});

describe("a commit on refs/wip that no save made", () => {
  test("puts nothing into .git, and follows no link", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n" } });
    const text = blobIn(daemon, "#!/bin/sh\ntouch pwned\n");
    const inner = execFileSync("git", ["-C", daemon.bare, "mktree"], {
      input: `100755 blob ${text}\tpost-checkout\n`,
      encoding: "utf8",
    }).trim();
    const readme = daemon.remote("rev-parse", `${daemon.sessionId}:README.md`);
    const wip = hostile(
      daemon,
      `100644 blob ${readme}\tREADME.md\n040000 tree ${inner}\t.GIT\n160000 commit ${"2".repeat(40)}\tmodule\n` +
        `120000 blob ${blobIn(daemon, "/tmp")}\tlink\n`,
    );
    const restored = await restart(daemon, wip);
    expect(restored).toEqual({
      wip,
      commits: 0,
      files: 1,
      skipped: [
        { path: ".GIT/post-checkout", reason: "a path into git's own directory" },
        { path: "module", reason: "a submodule" },
      ],
      error: null,
    });
    expect(await statusOf(daemon)).toEqual(["?? link"]);
    expect(existsSync(join(daemon.layout.workspace, "pwned"))).toBe(false);
  });

  deepTest("is refused with too many files, and the workspace stays clean", async () => {
    const daemon = await ready();
    const blob = blobIn(daemon, "x");
    const lines = Array.from({ length: 20_001 }, (_, at) => `100644 blob ${blob}\tf${at}\n`);
    const restored = await restart(daemon, hostile(daemon, lines.join("")));
    expect(restored).toMatchObject({ commits: 0, files: 0, error: "it has more than 20000 changed files" });
    expect(await statusOf(daemon)).toEqual([]);
  });
});
