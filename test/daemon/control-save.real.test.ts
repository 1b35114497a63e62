/** `POST /platform/save` of a real daemon, over real git: what it stores, names and says (api.md 3 "Saving" and 7). */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { daemonPerTest } from "./support/per-test.ts";
import { TOKEN } from "./support/running.ts";
import {
  save,
  wipOf,
  write,
  headOf,
  filesOf,
  textOf,
  parentsOf,
  reasonOf,
  restOf,
} from "./support/saving.ts";
import { signal } from "./support/served.ts";
import { deepTest } from "../support/vitest/rings.ts";

const { start, ready } = daemonPerTest();

describe("a save", () => {
  test("does nothing if everything is pushed", async () => {
    const daemon = await ready();
    expect(await daemon.control("save", "")).toEqual([200, { wip: null, skipped: [], error: null }]);
    write(daemon, "new.txt");
    await daemon.git("add", "-A");
    await daemon.git("commit", "-q", "-m", "work");
    await daemon.git("push", "-q", "origin", "HEAD");
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
    expect(daemon.remote("for-each-ref", "refs/wip")).toBe("");
  });

  deepTest("does nothing if the remote is ahead", async () => {
    const daemon = await ready();
    daemon.pushFromElsewhere({ "new.txt": "new\n" });
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
  });

  deepTest("does nothing before the checkout", async () => {
    const gate = signal();
    const daemon = await start({ prepare: ({ state }) => (state.gate = gate.given) });
    await daemon.logged("listening");
    expect(await daemon.control("save")).toEqual([200, { wip: null, skipped: [], error: null }]);
    gate.give();
    await daemon.logged("ready");
  });

  test("puts unpushed commits and uncommitted work into one commit on refs/wip", async () => {
    const daemon = await ready({
      files: { "README.md": "hello\n", "gone.txt": "gone\n", "staged.txt": "a\n", "old/name.txt": "moved\n" },
    });
    const branch = daemon.remote("rev-parse", daemon.sessionId);
    write(daemon, "committed.txt");
    await daemon.git("add", "-A");
    await daemon.git("commit", "-q", "-m", "not pushed");
    const head = await headOf(daemon);
    write(daemon, "README.md", "changed\n");
    write(daemon, "staged.txt", "staged\n");
    await daemon.git("add", "staged.txt");
    write(daemon, "staged.txt", "staged, then changed\n");
    write(daemon, "run.sh", "#!/bin/sh\n");
    chmodSync(join(daemon.layout.workspace, "run.sh"), 0o755);
    rmSync(join(daemon.layout.workspace, "gone.txt"));
    renameSync(join(daemon.layout.workspace, "old"), join(daemon.layout.workspace, "new"));

    const wip = await wipOf(daemon);
    expect(parentsOf(daemon, wip)).toEqual([head, restOf(daemon, wip)]);
    expect(filesOf(daemon, wip)).toEqual([
      "README.md",
      "committed.txt",
      "new/name.txt",
      "run.sh",
      "staged.txt",
    ]);
    expect(textOf(daemon, wip, "README.md")).toBe("changed");
    expect(textOf(daemon, wip, "staged.txt")).toBe("staged, then changed");
    expect(daemon.remote("ls-tree", wip, "run.sh")).toMatch(/^100755 /);
    expect(daemon.remote("show", "-s", "--format=%an <%ae>", wip)).toBe(
      `default <default@${daemon.sessionId}.platform.internal>`,
    );
    expect(daemon.remote("rev-parse", daemon.sessionId)).toBe(branch);
  });

  deepTest("of unpushed commits alone also makes a commit", async () => {
    const daemon = await ready();
    await daemon.git("commit", "-q", "--allow-empty", "-m", "mine");
    expect(parentsOf(daemon, await wipOf(daemon))).toEqual([await headOf(daemon)]);
  });

  deepTest("has the previous one as a parent; the same work twice is one save [A02]", async () => {
    const daemon = await ready();
    const head = await headOf(daemon);
    write(daemon, "a.txt");
    const first = await wipOf(daemon);
    expect(await wipOf(daemon)).toBe(first);
    write(daemon, "b.txt");
    const second = await wipOf(daemon);
    expect(parentsOf(daemon, second)).toEqual([head, first]);
    rmSync(join(daemon.layout.workspace, "a.txt"));
    expect(filesOf(daemon, await wipOf(daemon))).toEqual(["README.md", "b.txt"]);
    rmSync(join(daemon.layout.workspace, "b.txt"));
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
  });

  deepTest("makes one commit for many concurrent requests [A02]", async () => {
    const daemon = await ready();
    write(daemon, "a.txt");
    const answers = await Promise.all(Array.from({ length: 5 }, () => daemon.control("save")));
    const wips = new Set(answers.map(([, { wip }]) => wip));
    expect([...wips]).toEqual([daemon.remote("rev-parse", `refs/wip/${daemon.sessionId}`)]);
    expect(daemon.remote("rev-list", "--count", [...wips].join(" "))).toBe("2");
  });

  deepTest("continues with a new credential if the current one has expired", async () => {
    const daemon = await ready();
    write(daemon, "a.txt");
    daemon.service.state.password = "pw-canary-2";
    await wipOf(daemon);
  });
});

describe("a save names what it does not store", () => {
  deepTest("ignored files and directories, and files over 10 MiB, however they were changed", async () => {
    const daemon = await ready({
      files: { ".gitignore": "*.log\nnode_modules\n", "tracked.bin": "small\n", "staged.bin": "small\n" },
    });
    const large = 10 * 1024 * 1024 + 1;
    write(daemon, "debug.log");
    write(daemon, "node_modules/one/index.js");
    write(daemon, "node_modules/two/index.js");
    execFileSync("git", ["init", "-q", join(daemon.layout.workspace, "node_modules/two")]);
    for (const name of ["new.bin", "tracked.bin", "staged.bin", "added.bin", "limit.bin"]) {
      write(daemon, name, "");
      truncateSync(join(daemon.layout.workspace, name), name === "limit.bin" ? large - 1 : large);
    }
    await daemon.git("add", "staged.bin", "added.bin");
    write(daemon, "kept.txt");
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(saved.skipped.map(({ path, reason }) => `${path}: ${reason}`).toSorted()).toEqual(
      [
        "debug.log: ignored by git",
        "new.bin: larger than 10 MiB",
        "node_modules/: ignored by git",
        "tracked.bin: larger than 10 MiB",
        "staged.bin: larger than 10 MiB",
        "added.bin: larger than 10 MiB",
      ].toSorted(),
    );
    const wip = saved.wip ?? "";
    expect(filesOf(daemon, wip)).toEqual([
      ".gitignore",
      "kept.txt",
      "limit.bin",
      "staged.bin",
      "tracked.bin",
    ]);
    expect([textOf(daemon, wip, "tracked.bin"), textOf(daemon, wip, "staged.bin")]).toEqual([
      "small",
      "small",
    ]);
  });

  deepTest("but not what the agent runtime installs for itself in its directories", async () => {
    const daemon = await ready({ files: { ".gitignore": "*.log\n" } });
    const own = "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore\n";
    for (const directory of [".platform/runtime", ".opencode"]) {
      write(daemon, `${directory}/.gitignore`, own);
      write(daemon, `${directory}/package.json`);
      write(daemon, `${directory}/node_modules/plugin/index.js`);
    }
    expect(await save(daemon)).toEqual({ wip: null, skipped: [], error: null });
    write(daemon, ".platform/runtime/debug.log");
    write(daemon, ".platform/Dockerfile");
    const { wip, skipped } = await save(daemon);
    expect(skipped).toEqual([{ path: ".platform/runtime/debug.log", reason: "ignored by git" }]);
    expect(filesOf(daemon, wip ?? "")).toEqual([".gitignore", ".platform/Dockerfile"]);
  });

  deepTest("the runtime's directory too if the repository ignores it", async () => {
    const daemon = await ready({ files: { ".gitignore": ".platform/runtime/\n" } });
    write(daemon, ".platform/runtime/.gitignore", ".gitignore\n");
    write(daemon, ".platform/runtime/notes.txt");
    const { skipped } = await save(daemon);
    expect(skipped).toContainEqual({ path: ".platform/runtime/", reason: "ignored by git" });
  });

  deepTest("a list that is too long is cut and says so, and the ignored files go first", async () => {
    const daemon = await ready({ files: { ".gitignore": "*.log\n" } });
    for (let index = 0; index < 300; index += 1) write(daemon, `${index}.log`);
    write(daemon, "large.bin", "");
    truncateSync(join(daemon.layout.workspace, "large.bin"), 11 * 1024 * 1024);
    const { skipped } = await save(daemon);
    expect(skipped).toHaveLength(201);
    expect(skipped[0]).toEqual({ path: "large.bin", reason: "larger than 10 MiB" });
    expect(skipped.at(-1)).toEqual({ path: "…", reason: "101 more were skipped" });
  });

  test("repositories inside the repository, with and without commits, and submodules", async () => {
    const daemon = await ready();
    const { workspace } = daemon.layout;
    const commit = ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "inner"];
    for (const name of ["nested", "empty", "submodule"]) {
      write(daemon, `${name}/inner.txt`);
      execFileSync("git", ["init", "-q", join(workspace, name)]);
    }
    for (const name of ["nested", "submodule"]) {
      execFileSync("git", ["-C", join(workspace, name), "add", "-A"]);
      execFileSync("git", ["-C", join(workspace, name), ...commit]);
    }
    await daemon.git("-c", "advice.addEmbeddedRepo=false", "add", "submodule");
    await daemon.git("commit", "-q", "-m", "a submodule");
    write(daemon, "submodule/inner.txt", "changed\n");
    write(daemon, "outer.txt");
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(filesOf(daemon, saved.wip ?? "")).toEqual(["README.md", "outer.txt", "submodule"]);
    for (const name of ["nested/", "empty/", "submodule/"])
      expect(reasonOf(saved, name)).toBe("a nested git repository");
  });

  deepTest("anything other than files and links, also in place of a tracked file", async () => {
    const daemon = await ready({ files: { "README.md": "hello\n", "file.txt": "a file\n" } });
    execFileSync("mkfifo", [join(daemon.layout.workspace, "pipe")]);
    rmSync(join(daemon.layout.workspace, "file.txt"));
    execFileSync("mkfifo", [join(daemon.layout.workspace, "file.txt")]);
    write(daemon, "new.txt");
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect(reasonOf(saved, "file.txt")).toBe("neither a file nor a link");
    expect(filesOf(daemon, saved.wip ?? "")).toEqual(["README.md", "file.txt", "new.txt"]);
  });

  deepTest("a file that git cannot store, while all others are stored", async () => {
    const daemon = await ready();
    await daemon.git("config", "filter.broken.clean", "false");
    await daemon.git("config", "filter.broken.required", "true");
    write(daemon, ".gitattributes", "bad* filter=broken\n");
    for (const name of ["a.txt", "bad1", "c.txt", "d.txt", "bad2", "z.txt"]) write(daemon, name);
    const saved = await save(daemon);
    expect(saved.error).toBeNull();
    expect([reasonOf(saved, "bad1"), reasonOf(saved, "bad2")]).toEqual(
      Array(2).fill("cannot be read or stored"),
    );
    expect(filesOf(daemon, saved.wip ?? "")).toEqual([
      ".gitattributes",
      "README.md",
      "a.txt",
      "c.txt",
      "d.txt",
      "z.txt",
    ]);
  });
});

describe("a save that fails gives the reason, with status 200", () => {
  test("if the remote refuses the push", async () => {
    const daemon = await ready();
    writeFileSync(join(daemon.bare, "hooks/pre-receive"), "#!/bin/sh\necho 'no wip today' >&2\nexit 1\n", {
      mode: 0o755,
    });
    write(daemon, "new.txt");
    const saved = await save(daemon);
    expect(saved).toMatchObject({ wip: null, skipped: [] });
    expect(saved.error).toContain("no wip today");
  });

  deepTest("if the remote cannot be reached, and the next save stores the work", async () => {
    const daemon = await ready();
    write(daemon, "new.txt");
    daemon.service.state.failures = 10;
    const saved = await save(daemon);
    expect([saved.wip, saved.error]).toEqual([null, expect.stringContaining("error: 500")]);
    daemon.service.state.failures = 0;
    await wipOf(daemon);
  });

  deepTest("if no space is left", async () => {
    const bin = mkdtempSync(join(tmpdir(), "full-"));
    try {
      // The draft's first file has no room.
      writeFileSync(join(bin, "cp"), '#!/bin/sh\nexec cat "$1" > /dev/full\n', { mode: 0o755 });
      const daemon = await ready({ prefix: ["env", `PATH=${bin}:${process.env["PATH"]}`] });
      write(daemon, "new.txt");
      const saved = await save(daemon);
      expect([saved.wip, saved.error]).toEqual([null, expect.stringContaining("No space left on device")]);
    } finally {
      rmSync(bin, { recursive: true, force: true });
    }
  });

  deepTest("if the agent no longer has a repository", async () => {
    const daemon = await ready();
    rmSync(join(daemon.layout.workspace, ".git"), { recursive: true });
    const [status, saved] = await daemon.control("save");
    expect([status, saved["wip"]]).toEqual([200, null]);
    expect(saved["error"]).toContain("not a git repository");
    expect(JSON.stringify(saved)).not.toContain(TOKEN);
  });
});

test("a save's answer contains no credential and no secrets [G05]", async () => {
  const daemon = await ready({ agentEnv: { PROJECT_SECRET: "canary-secret" } });
  const hook = "#!/bin/sh\necho canary-secret pw-canary-1 >&2\nexit 1\n";
  writeFileSync(join(daemon.bare, "hooks/pre-receive"), hook, { mode: 0o755 });
  write(daemon, "new.txt");
  const { error } = await save(daemon);
  expect(error).toContain("[redacted] [redacted]");
  expect(daemon.output).not.toMatch(/canary-secret|pw-canary/);
});
