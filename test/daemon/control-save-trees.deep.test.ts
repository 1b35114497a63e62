/** `POST /platform/save` of a real daemon, over real git: every state a work tree can be in (api.md 7). */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TOKEN } from "./support/running.ts";
import { daemonPerTest } from "./support/per-test.ts";
import { save, wipOf, write, headOf, filesOf, textOf, parentsOf, restOf } from "./support/saving.ts";

const { ready } = daemonPerTest();

describe("a save works", () => {
  test("with names of any bytes", async () => {
    const daemon = await ready();
    const names = ["two\nlines", "-rf", " blank ", 'quote"s', "tab\t", ":(top)x", "*", "é", "\\"];
    for (const name of names) write(daemon, name, "odd\n");
    const bytes = Buffer.concat([
      Buffer.from(`${daemon.layout.workspace}/`),
      Buffer.from([0x66, 0xff, 0xfe, 0x0a, 0x2e]),
    ]);
    writeFileSync(bytes, "bytes\n");
    const wip = await wipOf(daemon);
    const listed = filesOf(daemon, wip);
    for (const name of names) expect(listed).toContain(name);
    expect(listed).toContain("f\ufffd\ufffd\n.");
    expect(listed).toHaveLength(names.length + 2);
  });

  test("with links, which are stored as links and never followed [G07]", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "dir/a.txt": "a\n", "b.txt": "b\n" } });
    const { workspace } = daemon.layout;
    symlinkSync("/etc/passwd", join(workspace, "out"));
    symlinkSync("/etc", join(workspace, "outdir"));
    symlinkSync("nowhere", join(workspace, "dangling"));
    rmSync(join(workspace, "dir"), { recursive: true });
    mkdirSync(join(daemon.directory, "elsewhere"));
    writeFileSync(join(daemon.directory, "elsewhere/a.txt"), "outside\n");
    symlinkSync(join(daemon.directory, "elsewhere"), join(workspace, "dir"));
    rmSync(join(workspace, "b.txt"));
    write(daemon, "b.txt/inside.txt");
    const wip = await wipOf(daemon);
    expect(filesOf(daemon, wip)).toEqual([
      "README.md",
      "b.txt/inside.txt",
      "dangling",
      "dir",
      "out",
      "outdir",
    ]);
    expect(textOf(daemon, wip, "out")).toBe("/etc/passwd");
    expect(textOf(daemon, wip, "dir")).toBe(join(daemon.directory, "elsewhere"));
  });

  test("on a detached HEAD and on another branch, with the other commits of the session branch", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "--detach");
    await daemon.git("commit", "-q", "--allow-empty", "-m", "detached");
    const detached = await headOf(daemon);
    const first = await wipOf(daemon);
    expect(parentsOf(daemon, first)).toEqual([detached]);
    await daemon.git("checkout", "-q", daemon.sessionId);
    await daemon.git("commit", "-q", "--allow-empty", "-m", "on the session branch");
    const branch = await headOf(daemon);
    await daemon.git("checkout", "-q", "-b", "other", "origin/main");
    write(daemon, "other.txt");
    const head = await headOf(daemon);
    const wip = await wipOf(daemon);
    expect(parentsOf(daemon, wip)).toEqual([head, branch, first]);
    expect(filesOf(daemon, wip)).toEqual(["README.md", "other.txt"]);
  });

  test("in the middle of a merge with conflicts, and of a rebase", async () => {
    const daemon = await ready({
      files: { "README.md": "hello\n", "both.txt": "base\n", "gone.txt": "x\n" },
    });
    await daemon.git("checkout", "-q", "-b", "other");
    write(daemon, "both.txt", "theirs\n");
    write(daemon, "gone.txt", "changed\n");
    await daemon.git("commit", "-q", "-a", "-m", "theirs");
    await daemon.git("checkout", "-q", daemon.sessionId);
    write(daemon, "both.txt", "ours\n");
    rmSync(join(daemon.layout.workspace, "gone.txt"));
    await daemon.git("commit", "-q", "-a", "-m", "ours");
    await daemon.git("merge", "other").catch(() => "conflict");
    rmSync(join(daemon.layout.workspace, "gone.txt"));
    const merging = await wipOf(daemon);
    expect(textOf(daemon, merging, "both.txt")).toContain("<<<<<<< HEAD\nours\n=======\ntheirs\n");
    expect(filesOf(daemon, merging)).toEqual(["README.md", "both.txt"]);
    await daemon.git("merge", "--abort");
    await daemon.git("rebase", "other").catch(() => "conflict");
    const rebasing = await wipOf(daemon);
    expect(parentsOf(daemon, rebasing)).toEqual([
      (await daemon.git("rev-parse", "other")).trim(),
      (await daemon.git("rev-parse", daemon.sessionId)).trim(),
      restOf(daemon, rebasing),
      merging,
    ]);
    expect(await daemon.git("status")).toContain("rebase in progress");
  });

  test("with a large file in conflict, which stays as in HEAD", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "both.txt": "base\n" } });
    await daemon.git("checkout", "-q", "-b", "other");
    write(daemon, "both.txt", "theirs\n");
    await daemon.git("commit", "-q", "-a", "-m", "theirs");
    await daemon.git("checkout", "-q", daemon.sessionId);
    write(daemon, "both.txt", "ours\n");
    await daemon.git("commit", "-q", "-a", "-m", "ours");
    await daemon.git("merge", "other").catch(() => "conflict");
    truncateSync(join(daemon.layout.workspace, "both.txt"), 11 * 1024 * 1024);
    expect(textOf(daemon, await wipOf(daemon), "both.txt")).toBe("ours");
  });

  test("on a branch without a commit", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "--orphan", "fresh");
    await daemon.git("rm", "-q", "-r", "-f", ".");
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
    write(daemon, "fresh.txt");
    const wip = await wipOf(daemon);
    expect([filesOf(daemon, wip), parentsOf(daemon, wip)]).toEqual([["fresh.txt"], [""]]);
    write(daemon, "more.txt");
    expect(parentsOf(daemon, await wipOf(daemon))).toEqual([wip]);
  });

  test("with files that git was told to overlook, and with a sparse checkout", async () => {
    const daemon = await ready({
      files: { "README.md": "hello\n", "assumed.txt": "a\n", "skipped.txt": "s\n", "sub/x.txt": "x\n" },
    });
    await daemon.git("update-index", "--assume-unchanged", "assumed.txt");
    await daemon.git("update-index", "--skip-worktree", "skipped.txt", "sub/x.txt");
    write(daemon, "assumed.txt", "changed\n");
    write(daemon, "skipped.txt", "changed\n");
    rmSync(join(daemon.layout.workspace, "sub"), { recursive: true });
    const wip = await wipOf(daemon);
    for (const name of ["assumed.txt", "skipped.txt"]) expect(textOf(daemon, wip, name)).toBe("changed");
    expect(textOf(daemon, wip, "sub/x.txt")).toBe("x");
  });

  test("without an index, and with a stale lock file", async () => {
    const daemon = await ready();
    const index = join(daemon.layout.workspace, ".git/index");
    rmSync(index);
    writeFileSync(`${index}.lock`, "");
    write(daemon, "new.txt");
    expect(filesOf(daemon, await wipOf(daemon))).toEqual(["README.md", "new.txt"]);
  });

  test("with a file that changed in the second in which the index was written", async () => {
    const daemon = await ready();
    const { workspace } = daemon.layout;
    const then = new Date("2026-01-01T00:00:00Z");
    const atOnce = (name: string): void => utimesSync(join(workspace, name), then, then);
    write(daemon, "racy.txt", "first\n");
    atOnce("racy.txt");
    await daemon.git("add", "racy.txt");
    write(daemon, "racy.txt", "other\n");
    atOnce("racy.txt");
    atOnce(".git/index");
    expect(textOf(daemon, await wipOf(daemon), "racy.txt")).toBe("other");
  });

  test("with an environment that the agent's configuration overrides [G06]", async () => {
    const daemon = await ready({ prefix: ["env", "BEHIND_THE_PREFIX=yes"] });
    const ran = (name: string): string => join(daemon.directory, `${name}-ran`);
    const program = (name: string): string => {
      const file = join(daemon.directory, name);
      writeFileSync(file, `#!/bin/sh\nenv > '${ran(name)}'\nexec cat\n`, { mode: 0o755 });
      return file;
    };
    for (const [key, value] of [
      ["filter.spy.clean", program("filter")],
      ["core.fsmonitor", program("fsmonitor")],
      ["remote.origin.receivepack", program("receivepack")],
      ["core.sshCommand", program("ssh")],
      ["credential.helper", program("helper")],
      ["url.file:///nowhere/.insteadOf", `${daemon.service.base}/`],
      ["push.pushOption", "unwanted"],
      ["push.gpgSign", "true"],
      ["commit.gpgSign", "true"],
      ["user.useConfigOnly", "true"],
      ["core.splitIndex", "true"],
      ["status.showUntrackedFiles", "no"],
    ] as const)
      await daemon.git("config", key, value);
    for (const name of ["pre-push", "reference-transaction", "post-index-change"])
      writeFileSync(
        join(daemon.layout.workspace, ".git/hooks", name),
        `#!/bin/sh\nenv > '${ran("hook")}'\nexit 1\n`,
        { mode: 0o755 },
      );
    write(daemon, ".gitattributes", "*.dat filter=spy\n");
    write(daemon, "a.dat");
    expect(filesOf(daemon, await wipOf(daemon))).toEqual([".gitattributes", "README.md", "a.dat"]);
    const seen = readFileSync(ran("filter"), "utf8");
    expect(seen).toContain("BEHIND_THE_PREFIX=yes");
    expect(seen).not.toMatch(/PLATFORM_TOKEN/);
    expect(seen).not.toContain(TOKEN);
    for (const name of ["fsmonitor", "receivepack", "ssh", "helper", "hook"])
      expect([name, existsSync(ran(name))]).toEqual([name, false]);
  });
});
