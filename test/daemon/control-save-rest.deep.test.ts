/**
 * `POST /platform/save` of a real daemon, over real git: what git knows beside HEAD and the files (api.md 3 "Saving").
 * Tests restore what was saved in a fresh clone, by the commands that the saved README names.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { daemonPerTest } from "./support/per-test.ts";
import { commit, gitIn, Restored } from "./support/restored.ts";
import { filesOf, headOf, parentsOf, save, wipOf, write } from "./support/saving.ts";

const { ready } = daemonPerTest();

/** What a command that stops half-way says. */
const failing = (work: Promise<string>): Promise<string> => work.catch(() => "stopped");

describe("a save keeps", () => {
  test("the commits of every local branch, and tags of either kind", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "feature/one");
    const one = await commit(daemon, "one.txt");
    await daemon.git("tag", "-a", "v1", "-m", "the first");
    const tag = (await daemon.git("rev-parse", "v1")).trim();
    await daemon.git("tag", "-a", "v1-again", "-m", "a tag of a tag", "v1");
    const again = (await daemon.git("rev-parse", "v1-again")).trim();
    await daemon.git("checkout", "-q", "--detach");
    const light = await commit(daemon, "light.txt");
    await daemon.git("tag", "light");
    await daemon.git("tag", "on-main", "origin/main");
    const blob = (await daemon.git("rev-parse", "HEAD:light.txt")).trim();
    await daemon.git("tag", "a-file", blob);
    await daemon.git("tag", "a-tree", "HEAD^{tree}");
    await daemon.git("checkout", "-q", "-b", "current", daemon.sessionId);

    const wip = await wipOf(daemon);
    expect(daemon.remote("show", "-s", "--format=%B", wip)).toContain("HEAD names refs/heads/current.");
    expect(filesOf(daemon, wip)).toEqual(["README.md"]);
    const restored = new Restored(daemon, wip);
    restored.run("Branches and tags");
    const kept = (name: string): string => restored.git("rev-parse", `refs/saved/${name}`);
    expect(kept("heads/feature/one")).toBe(one);
    expect([kept("tags/v1"), kept("tags/v1-again"), kept("tags/light")]).toEqual([tag, again, light]);
    expect(kept("tags/on-main")).toBe(daemon.remote("rev-parse", "main"));
    expect([restored.git("show", "refs/saved/tags/a-file"), kept("tags/a-file")]).toEqual([
      "light.txt",
      blob,
    ]);
    expect(restored.git("ls-tree", "--name-only", "refs/saved/tags/a-tree")).toContain("light.txt");
    expect(restored.git("cat-file", "-p", "refs/saved/tags/v1")).toContain("the first");
    expect(restored.git("fsck", "--connectivity-only")).not.toContain("missing");
  });

  test("no part that the remote already has: branches behind it, its tags, others' commits", async () => {
    const daemon = await ready();
    daemon.remote("tag", "released", "main");
    await daemon.git("fetch", "-q", "--tags", "origin");
    await daemon.git("branch", "main", "origin/main");
    await daemon.git("branch", "pointer");
    const seed = join(daemon.directory, "seed");
    gitIn(seed, "commit", "-q", "--allow-empty", "-m", "on");
    execFileSync("git", [
      "-C",
      seed,
      "push",
      "-q",
      daemon.bare,
      "HEAD:refs/heads/main",
      "HEAD:refs/heads/theirs",
    ]);
    await daemon.git("fetch", "-q", "origin", "theirs");
    await daemon.git("branch", "theirs", "FETCH_HEAD");
    gitIn(seed, "commit", "-q", "--allow-empty", "-m", "on");
    execFileSync("git", [
      "-C",
      seed,
      "push",
      "-q",
      daemon.bare,
      "HEAD:refs/heads/main",
      "HEAD:refs/heads/theirs",
    ]);
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
  });

  test("every stash, with its untracked files", async () => {
    const daemon = await ready();
    write(daemon, "README.md", "first\n");
    await daemon.git("stash", "push", "-q");
    write(daemon, "README.md", "second\n");
    write(daemon, "untracked.txt");
    await daemon.git("stash", "push", "-q", "-u", "-m", "with more");
    const wip = await wipOf(daemon);
    expect(await wipOf(daemon)).toBe(wip);
    const restored = new Restored(daemon, wip);
    restored.run("Stashes");
    expect(restored.git("stash", "list")).toMatch(/^stash@\{0\}: .*with more\nstash@\{1\}: .*WIP on/);
    restored.git("stash", "pop", "-q");
    expect(readFileSync(restored.path("untracked.txt"), "utf8")).toBe("untracked.txt\n");
    expect(restored.git("show", "stash@{0}:README.md")).toBe("first");
  });

  test("staged changes that differ from the files", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "kept.txt": "kept\n" } });
    write(daemon, "gone.txt", "staged and deleted\n");
    write(daemon, "README.md", "staged\n");
    await daemon.git("add", "-A");
    rmSync(join(daemon.layout.workspace, "gone.txt"));
    write(daemon, "README.md", "changed since\n");
    await daemon.git("rm", "-q", "--cached", "kept.txt");
    const wip = await wipOf(daemon);
    expect(await wipOf(daemon)).toBe(wip);
    expect(filesOf(daemon, wip)).toEqual(["README.md", "kept.txt"]);
    const restored = new Restored(daemon, wip);
    restored.git("checkout", "-q", "--detach", "FETCH_HEAD");
    restored.run("The index");
    expect(restored.git("ls-files")).toBe("README.md\ngone.txt");
    expect([restored.git("show", ":gone.txt"), restored.git("show", ":README.md")]).toEqual([
      "staged and deleted",
      "staged",
    ]);
  });

  test("no index if it matches the files", async () => {
    const daemon = await ready();
    write(daemon, "a.txt");
    await daemon.git("add", "-A");
    expect(parentsOf(daemon, await wipOf(daemon))).toEqual([await headOf(daemon)]);
  });

  test("a conflict's three sides, and the merge in progress", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "both.txt": "base\n" } });
    await daemon.git("checkout", "-q", "-b", "other");
    const theirs = await commit(daemon, "both.txt", "theirs\n");
    await daemon.git("checkout", "-q", daemon.sessionId);
    await commit(daemon, "both.txt", "ours\n");
    await failing(daemon.git("merge", "other"));
    await daemon.git("branch", "-q", "-D", "other");
    const restored = new Restored(daemon, await wipOf(daemon));
    const side = (stage: number): string =>
      restored.git("show", `${restored.rest}:conflicts-${stage}/both.txt`);
    expect([side(1), side(2), side(3)]).toEqual(["base", "ours", "theirs"]);
    expect(restored.git("show", `${restored.rest}:state/MERGE_HEAD`)).toBe(theirs);
    expect(restored.git("cat-file", "-t", theirs)).toBe("commit");
  });

  test("a rebase that stopped half-way, which can be continued", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "both.txt": "base\n" } });
    await daemon.git("checkout", "-q", "-b", "work");
    const first = await commit(daemon, "first.txt");
    await commit(daemon, "both.txt", "mine\n");
    const last = await commit(daemon, "last.txt");
    await daemon.git("checkout", "-q", "-b", "base", daemon.sessionId);
    await commit(daemon, "both.txt", "theirs\n");
    await daemon.git("checkout", "-q", "work");
    await failing(daemon.git("rebase", "base"));
    expect(await daemon.git("status")).toContain("rebase in progress");
    const saved = await save(daemon);
    expect(saved).toMatchObject({ skipped: [], error: null });

    const restored = new Restored(daemon, saved.wip ?? "");
    restored.run("Branches and tags");
    expect(restored.git("rev-parse", "refs/saved/heads/work")).toBe(last);
    expect(restored.git("merge-base", "--is-ancestor", first, "refs/saved/heads/work")).toBe("");
    restored.git("branch", "work", "refs/saved/heads/work");
    restored.git("checkout", "-q", "--detach", "FETCH_HEAD^1");
    restored.git("restore", "-s", "FETCH_HEAD", "--", ".");
    restored.run("The index");
    restored.run("An operation in progress");
    expect(restored.git("status")).toContain("rebase in progress");
    writeFileSync(restored.path("both.txt"), "settled\n");
    restored.git("add", "both.txt");
    restored.git(
      "-c",
      "core.editor=true",
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b",
      "rebase",
      "--continue",
    );
    expect(restored.git("log", "--format=%s", "-3", "work")).toBe("last.txt\nboth.txt\nfirst.txt");
  });

  test.each([
    ["a cherry-pick", ["cherry-pick", "other~1", "other"], "state/CHERRY_PICK_HEAD"],
    ["a revert", ["revert", "--no-edit", "other~1"], "state/REVERT_HEAD"],
  ])("%s in progress", async (_, command, file) => {
    const daemon = await ready({ files: { "README.md": "hello\n", "both.txt": "base\n" } });
    await daemon.git("checkout", "-q", "-b", "other");
    const picked = await commit(daemon, "both.txt", "theirs\n");
    await commit(daemon, "more.txt");
    await daemon.git("checkout", "-q", daemon.sessionId);
    await commit(daemon, "both.txt", "ours\n");
    await failing(daemon.git(...command));
    const restored = new Restored(daemon, await wipOf(daemon));
    expect(restored.git("show", `${restored.rest}:${file}`)).toBe(picked);
  });

  test("a bisection, and patches that are not applied yet", async () => {
    const daemon = await ready();
    for (const name of ["1", "2", "3", "4"]) await commit(daemon, name);
    await daemon.git("bisect", "start", "HEAD", "HEAD~3");
    const bisecting = new Restored(daemon, await wipOf(daemon));
    expect(bisecting.git("show", `${bisecting.rest}:state/BISECT_LOG`)).toContain("git bisect start");
    await daemon.git("bisect", "reset");
    await daemon.git("format-patch", "-q", "-2", "-o", join(daemon.directory, "patches"));
    await daemon.git("reset", "-q", "--hard", "HEAD~2");
    write(daemon, "3", "in the way\n");
    await daemon.git("add", "-A");
    await daemon.git("commit", "-q", "-m", "in the way");
    const patches = ["0001-3.patch", "0002-4.patch"].map((name) => join(daemon.directory, "patches", name));
    await failing(daemon.git("am", ...patches));
    const applying = new Restored(daemon, await wipOf(daemon));
    expect(applying.git("show", `${applying.rest}:state/rebase-apply/0002`)).toContain(
      "Subject: [PATCH 2/2] 4",
    );
  });

  test("the files, index and commits of other worktrees, wherever they are", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", ".gitignore": "*.log\n" } });
    const outside = join(daemon.directory, "tmp2/outside");
    await daemon.git("worktree", "add", "-q", "-b", "beside", outside);
    await daemon.git("worktree", "add", "-q", "--detach", "inside");
    await daemon.git("worktree", "add", "-q", "--detach", join(daemon.directory, "clean"), "origin/main");
    writeFileSync(join(outside, "new.txt"), "outside\n");
    writeFileSync(join(outside, "noise.log"), "noise\n");
    writeFileSync(join(outside, "large.bin"), "");
    truncateSync(join(outside, "large.bin"), 10 * 1024 * 1024 + 1);
    writeFileSync(join(outside, "staged.txt"), "staged\n");
    execFileSync("git", ["-C", outside, "add", "staged.txt"]);
    rmSync(join(outside, "staged.txt"));
    const inside = join(daemon.layout.workspace, "inside");
    gitIn(inside, "commit", "-q", "--allow-empty", "-m", "detached");
    const detached = gitIn(inside, "rev-parse", "HEAD");

    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(saved.skipped).toEqual([
      { path: join(outside, "large.bin"), reason: "larger than 10 MiB" },
      { path: join(outside, "noise.log"), reason: "ignored by git" },
    ]);
    const restored = new Restored(daemon, saved.wip ?? "");
    const numbers = restored.git("show", `${restored.rest}:worktrees`).split("\n");
    const of = (path: string): string =>
      numbers.find((line) => line.endsWith(` ${path}`))?.split(" ")[0] ?? "none";
    expect(restored.git("ls-tree", "--name-only", `${restored.rest}:${of(outside)}`)).toBe(
      ".gitignore\nREADME.md\nnew.txt",
    );
    expect(restored.git("show", `${restored.rest}:${of(outside)}-index/staged.txt`)).toBe("staged");
    expect(of(join(daemon.directory, "clean"))).toBe("none");
    restored.run("Branches and tags");
    expect(restored.git("for-each-ref", "--format=%(objectname)", "refs/saved")).toBe(detached);
    restored.run("Other worktrees");
    expect(readFileSync(restored.path("new.txt"), "utf8")).toBe("outside\n");
  });

  test("all of this again after a restart, even if the next sandbox does not know about it", async () => {
    const daemon = await ready();
    await daemon.git("branch", "work");
    await daemon.git("checkout", "-q", "work");
    const work = await commit(daemon, "work.txt");
    await daemon.git("checkout", "-q", daemon.sessionId);
    const first = await wipOf(daemon);
    await daemon.git("branch", "-q", "-D", "work");
    write(daemon, "later.txt");
    const second = await wipOf(daemon);
    expect(parentsOf(daemon, second)).toEqual([await headOf(daemon), first]);
    daemon.remote("merge-base", "--is-ancestor", work, second);
  });
});
