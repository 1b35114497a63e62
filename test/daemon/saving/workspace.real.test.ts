/** `GET /platform/workspace/…` of a real daemon with real git: what it compares, and what it refuses. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DIFF_MAX_BYTES, FILES_MAX } from "../../../daemon/workspace/changes.ts";
import { ENTRIES_MAX, FILE_MAX_BYTES } from "../../../daemon/workspace/entries.ts";
import { daemonPerTest } from "../support/per-test.ts";
import type { Running } from "../support/running.ts";
import { headOf, write } from "../support/workspace-files.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const { ready } = daemonPerTest();

const SECRET = "hunter2-of-the-project";

interface File {
  readonly path: string;
  readonly [field: string]: unknown;
}

const sides = (daemon: Running): string => {
  const base = daemon.remote("rev-parse", "main");
  return `base=${base}&pushed=${daemon.remote("rev-parse", daemon.sessionId)}`;
};

const read = async (daemon: Running, path: string): Promise<readonly [number, Record<string, unknown>]> => {
  const { status, body } = await daemon.ask(`/platform/workspace/${path}`);
  return [status, JSON.parse(body) as Record<string, unknown>];
};

const changes = async (daemon: Running) => {
  const [status, body] = await read(daemon, `changes?${sides(daemon)}`);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as { readonly files_changed: readonly File[]; readonly [field: string]: unknown };
};

const diff = async (daemon: Running, path?: string): Promise<string> => {
  const query = path === undefined ? "" : `&path=${encodeURIComponent(path)}`;
  const [status, body] = await read(daemon, `diff?${sides(daemon)}${query}`);
  expect(status).toBe(200);
  return String(body["diff"]);
};

const files = (daemon: Running, path = "") => read(daemon, `files?path=${encodeURIComponent(path)}`);

const commitAll = async (daemon: Running, message: string): Promise<void> => {
  await daemon.git("add", "-A");
  await daemon.git("commit", "-q", "-m", message);
};

const at = (daemon: Running, ...names: readonly string[]): string => join(daemon.layout.workspace, ...names);

describe("changes of the workspace", () => {
  test("name pushed, committed and uncommitted work, and nothing that is ignored", async () => {
    const daemon = await ready({
      files: { "README.md": "hello\n", "gone.txt": "gone\n", ".gitignore": "out\n" },
    });
    write(daemon, "pushed.txt");
    await commitAll(daemon, "pushed");
    await daemon.git("push", "-q", "origin", "HEAD");
    write(daemon, "committed.txt");
    await commitAll(daemon, "committed");
    write(daemon, "README.md", "hello\nyou\n");
    write(daemon, "new dir/é\n.txt", "new\n");
    write(daemon, "out", "ignored\n");
    execFileSync("rm", [at(daemon, "gone.txt")]);
    expect(await changes(daemon)).toEqual({
      base_commit: daemon.remote("rev-parse", "main"),
      pushed_commit: daemon.remote("rev-parse", daemon.sessionId),
      head_commit: await headOf(daemon),
      unpushed_commits: 1,
      files_changed_total: 5,
      uncommitted_total: 3,
      unpushed_total: 4,
      files_changed: [
        { path: "README.md", status: "modified", state: "uncommitted", additions: 1, deletions: 0 },
        { path: "committed.txt", status: "added", state: "committed", additions: 1, deletions: 0 },
        { path: "gone.txt", status: "removed", state: "uncommitted", additions: 0, deletions: 1 },
        { path: "new dir/é\n.txt", status: "added", state: "uncommitted", additions: 1, deletions: 0 },
        { path: "pushed.txt", status: "added", state: "pushed", additions: 1, deletions: 0 },
      ],
    });
    const whole = await diff(daemon);
    for (const line of ["+you", "+new", "-gone", "+pushed.txt", "+committed.txt"])
      expect(whole.split("\n")).toContain(line);
    expect(await diff(daemon, "README.md")).not.toContain("+new");
    expect(await diff(daemon, "new dir/é\n.txt")).toContain("+new");
    expect(await diff(daemon, "nowhere")).toBe("");
    // A name that is not UTF-8, by the path that the list shows.
    writeFileSync(Buffer.from(`${at(daemon)}/odd-\xe9.txt`, "latin1"), "odd\n");
    expect(await diff(daemon, "odd-\ufffd.txt")).toMatch(/^diff --git [^]*\n\+odd\n$/);
  });

  deepTest("leave the index, the objects and the files as they are", async () => {
    const daemon = await ready();
    write(daemon, "staged.txt");
    await daemon.git("add", "staged.txt");
    write(daemon, "new.txt");
    // The time differs and the content does not: `git status` would write the index now.
    execFileSync("touch", ["-d", "2001-01-01", at(daemon, "README.md")]);
    const state = () => [
      readFileSync(at(daemon, ".git/index")).toString("base64"),
      statSync(at(daemon, ".git/index")).mtimeMs,
      execFileSync("find", [at(daemon, ".git"), "-type", "f", "-newer", at(daemon, "new.txt")]).toString(),
      execFileSync("find", [at(daemon, ".git/objects"), "-type", "f"])
        .toString()
        .split("\n")
        .toSorted(),
      execFileSync("ls", [join(daemon.directory, "tmp")]).toString(),
    ];
    const before = state();
    expect((await changes(daemon)).files_changed.map(({ path }) => path)).toEqual(["new.txt", "staged.txt"]);
    await diff(daemon);
    expect(state()).toEqual(before);
  });

  deepTest("leave out what the default branch has got meanwhile, once the agent has merged it", async () => {
    const daemon = await ready();
    write(daemon, "own.txt");
    await commitAll(daemon, "own");
    const seed = join(daemon.directory, "seed");
    const run = (...args: readonly string[]) =>
      execFileSync("git", ["-C", seed, "-c", "user.name=s", "-c", "user.email=s@example.com", ...args]);
    writeFileSync(join(seed, "theirs.txt"), "theirs\n");
    run("checkout", "-q", "main");
    run("add", "-A");
    run("commit", "-q", "-m", "theirs");
    const base = daemon.remote("rev-parse", "main");
    run("push", "-q", daemon.bare, "main");
    await daemon.git("fetch", "-q", "origin", "main");
    await daemon.git("merge", "-q", "--no-edit", "origin/main");
    const pushed = daemon.remote("rev-parse", daemon.sessionId);
    const [, found] = await read(daemon, `changes?base=${base}&pushed=${pushed}`);
    expect((found["files_changed"] as readonly File[]).map(({ path }) => path)).toEqual(["own.txt"]);
  });

  deepTest("show a file in conflict with its content", async () => {
    const daemon = await ready();
    await daemon.git("checkout", "-q", "-b", "other");
    write(daemon, "README.md", "theirs\n");
    await commitAll(daemon, "theirs");
    await daemon.git("checkout", "-q", daemon.sessionId);
    write(daemon, "README.md", "ours\n");
    await commitAll(daemon, "ours");
    await expect(daemon.git("merge", "-q", "other")).rejects.toThrow();
    expect((await changes(daemon)).files_changed).toMatchObject([
      { path: "README.md", status: "modified", state: "uncommitted" },
    ]);
    expect(await diff(daemon)).toContain("+<<<<<<< HEAD");
  });

  deepTest(
    "are read in a workspace without commits that the service knows, and without a repository",
    async () => {
      const daemon = await ready();
      write(daemon, "new.txt");
      const nowhere = "1".repeat(40);
      const [, found] = await read(daemon, `changes?base=${nowhere}&pushed=${nowhere}`);
      expect(found).toMatchObject({ files_changed_total: 1 });
      execFileSync("rm", ["-r", at(daemon, ".git")]);
      expect((await read(daemon, `changes?${sides(daemon)}`))[1]).toMatchObject({
        code: "workspace_unreadable",
      });
      expect((await read(daemon, `diff?${sides(daemon)}`))[1]).toMatchObject({
        code: "workspace_unreadable",
      });
    },
  );
});

describe("a hostile workspace", () => {
  test("starts no program by external diff, textconv, fsmonitor or hooks", async () => {
    const daemon = await ready({ files: { "a.txt": "a\n", ".gitattributes": "*.txt diff=evil\n" } });
    const trace = join(daemon.directory, "started");
    const program = join(daemon.directory, "evil");
    writeFileSync(program, `#!/bin/sh\necho "$0 $*" >>${trace}\n`);
    chmodSync(program, 0o755);
    for (const name of ["post-index-change", "fsmonitor-watchman"])
      writeFileSync(at(daemon, ".git/hooks", name), readFileSync(program), { mode: 0o755 });
    for (const [key, value] of [
      ["diff.external", program],
      ["diff.evil.command", program],
      ["diff.evil.textconv", program],
      ["core.fsmonitor", program],
      ["core.pager", program],
      ["core.hooksPath", at(daemon, ".git/hooks")],
      ["color.ui", "always"],
      ["diff.noprefix", "true"],
      ["diff.suppressBlankEmpty", "true"],
    ] as const)
      await daemon.git("config", key, value);
    write(daemon, "a.txt", "b\n");
    expect(await changes(daemon)).toMatchObject({ files_changed: [{ path: "a.txt", additions: 1 }] });
    expect(await diff(daemon)).toMatch(/^diff --git a\/a\.txt b\/a\.txt\n[^]*\n-a\n\+b\n$/);
    expect(existsSync(trace)).toBe(false);
    // The programs would run otherwise.
    await daemon.git("diff");
    expect(existsSync(trace)).toBe(true);
  });

  deepTest("cuts the diff of a file of a million lines, and counts its lines", async () => {
    const daemon = await ready();
    write(daemon, "long.txt", "line\n".repeat(1_000_000));
    expect((await changes(daemon)).files_changed).toMatchObject([{ path: "long.txt", additions: 1_000_000 }]);
    const cut = await diff(daemon, "long.txt");
    expect(Buffer.byteLength(cut)).toBeLessThan(DIFF_MAX_BYTES + 100);
    expect(cut.slice(-150)).toMatch(
      /\n\+line\n\[The diff is longer than 1048576 bytes and was cut here\.\]\n$/,
    );
  });

  deepTest("lists the first of 50,000 changed files", async () => {
    const daemon = await ready();
    for (let group = 0; group < 50; group += 1) {
      mkdirSync(at(daemon, `d${group}`));
      for (let file = 0; file < 1000; file += 1) writeFileSync(at(daemon, `d${group}`, `f${file}`), "x\n");
    }
    const found = await changes(daemon);
    expect(found).toMatchObject({ files_changed_total: 50_000, uncommitted_total: 50_000 });
    expect(found.files_changed).toHaveLength(FILES_MAX);
    expect(found.files_changed.at(-1)).toMatchObject({ additions: 1, status: "added" });
  });

  deepTest("loses the project's secrets in diffs, names and files, also across the end", async () => {
    const daemon = await ready({ agentEnv: { DEPLOY_KEY: SECRET } });
    write(daemon, `${SECRET}.txt`, `key=${SECRET}\n`);
    write(daemon, "z-end.txt", `${"x".repeat(FILE_MAX_BYTES - 5)}${SECRET}\n`);
    const [changed, text, [, listing], [, end]] = [
      await changes(daemon),
      await diff(daemon),
      await files(daemon),
      await files(daemon, "z-end.txt"),
    ];
    for (const told of [changed, text, listing, end]) expect(JSON.stringify(told)).not.toContain("hunter");
    expect(text).toContain("+key=[redacted]");
    expect(end).toMatchObject({ truncated: true });
  });
});

describe("files of the workspace", () => {
  deepTest("are listed directory by directory, and read as text", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "src/a.ts": "a\n" } });
    symlinkSync("README.md", at(daemon, "link"));
    writeFileSync(Buffer.concat([Buffer.from(`${at(daemon)}/`), Buffer.from([0xff, 0x41])]), "x");
    execFileSync("mkfifo", [at(daemon, "fifo")]);
    expect(await files(daemon)).toEqual([
      200,
      {
        kind: "directory",
        truncated: false,
        entries: [
          { name: "src", kind: "directory", size: null },
          { name: "README.md", kind: "file", size: 6 },
          { name: "fifo", kind: "other", size: null },
          { name: "link", kind: "link", size: null },
          { name: "\ufffdA", kind: "other", size: null },
        ],
      },
    ]);
    expect(await files(daemon, "src")).toMatchObject([200, { entries: [{ name: "a.ts" }] }]);
    expect(await files(daemon, "src/a.ts")).toEqual([
      200,
      { kind: "file", size: 2, text: "a\n", truncated: false },
    ]);
    write(daemon, "binary", Buffer.from([1, 0, 2]));
    write(daemon, "latin1", Buffer.from([0x41, 0xe9]));
    write(daemon, "empty", "");
    expect(await files(daemon, "binary")).toMatchObject([200, { size: 3, text: null }]);
    expect(await files(daemon, "latin1")).toMatchObject([200, { text: null }]);
    expect(await files(daemon, "empty")).toMatchObject([200, { size: 0, text: "" }]);
    write(daemon, "long", "é".repeat(FILE_MAX_BYTES));
    const [, long] = await files(daemon, "long");
    expect(long).toMatchObject({ size: 2 * FILE_MAX_BYTES, truncated: true });
    expect(long["text"]).toBe("é".repeat(FILE_MAX_BYTES / 2));
  });

  deepTest("are listed up to a number", async () => {
    const daemon = await ready();
    mkdirSync(at(daemon, "many"));
    for (let file = 0; file <= ENTRIES_MAX; file += 1) writeFileSync(at(daemon, "many", `f${file}`), "");
    const [, listing] = await files(daemon, "many");
    expect(listing).toMatchObject({ truncated: true });
    expect(listing["entries"]).toHaveLength(ENTRIES_MAX);
  });

  test("are not read through links, and FIFOs and devices not at all", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "src/a.ts": "a\n" } });
    symlinkSync("/etc/passwd", at(daemon, "passwd"));
    symlinkSync("/etc", at(daemon, "etc"));
    symlinkSync("src", at(daemon, "inside"));
    symlinkSync(".git", at(daemon, "repository"));
    execFileSync("mkfifo", [at(daemon, "fifo")]);
    for (const path of ["passwd", "etc", "etc/passwd", "inside", "inside/a.ts", "repository/config", "fifo"])
      expect([path, await files(daemon, path)]).toMatchObject([path, [409, { code: "path_unreadable" }]]);
    for (const path of ["nowhere", "README.md/x", "src/nowhere"])
      expect([path, await files(daemon, path)]).toMatchObject([path, [404, { code: "not_found" }]]);
  });

  deepTest("are refused by their path before any program starts", async () => {
    const daemon = await ready();
    const bad = [
      "../x",
      "/etc/passwd",
      "a/../b",
      "./a",
      "a//b",
      "a/",
      ".git/config",
      "sub/.GIT",
      "a\0b",
      "x".repeat(4097),
    ];
    for (const path of bad) expect([path, (await files(daemon, path))[0]]).toEqual([path, 400]);
    expect((await read(daemon, "files?path=%ff"))[0]).toBe(400);
    expect((await read(daemon, "files?path=a&path=b"))[0]).toBe(400);
    expect((await read(daemon, "changes"))[0]).toBe(400);
    expect((await read(daemon, `diff?${sides(daemon)}&path=--output%3Dx`))[0]).toBe(200);
    expect(existsSync(at(daemon, "x"))).toBe(false);
    expect((await daemon.ask("/platform/workspace/files", { headers: {} })).status).toBe(401);
    expect((await daemon.ask("/platform/workspace/files", { method: "POST" })).status).toBe(405);
  });
});
