import { chmod, mkdir, mkdtemp, readFile, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type SandboxRecord,
  installContent,
  installFile,
  openRunDirectory,
  readExit,
  readRecord,
  removeTree,
  sandboxPaths,
  writeExit,
  writeRecord,
} from "../../src/sandbox/machine/disk/run-directory.ts";

const ID = "5d0c1f5e-93b7-4c1e-8d9f-5d2f3f0a7b11";

const record: SandboxRecord = {
  version: 1,
  id: ID,
  sessionId: "c4f6d2a9-1f1f-4b57-9a35-0d3f7a8e9c22",
  installationId: "i",
  nodeId: "n",
  uidBase: 300_000_000,
  launcher: { pid: 7, startTime: "12", bootId: "b" },
  cgroups: ["/sys/fs/cgroup/x"],
  egressAllow: ["example.org"],
  secretNames: ["A_KEY"],
  llmUpstream: null,
};

let directory = "";

beforeEach(async () => {
  directory = await mkdtemp("/tmp/platform-run-");
});

afterEach(() => removeTree(directory));

describe("the run directory", () => {
  it("lets other uids pass through, and list nothing", async () => {
    const runDir = join(directory, "run");
    await openRunDirectory(runDir);
    const modes = await Promise.all(["", "parts", "s"].map((name) => stat(join(runDir, name))));
    expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o711, 0o711, 0o711]);
  });

  it("is refused if others can write to it, as with /tmp itself", async () => {
    const shared = join(directory, "shared");
    await mkdir(shared);
    await chmod(shared, 0o1777);
    await expect(openRunDirectory(shared)).rejects.toThrow(/this user alone/);
    expect((await stat(shared)).mode & 0o777).toBe(0o777);
  });

  it("is refused if it is a link to another place", async () => {
    await symlink("/usr", join(directory, "link"));
    await expect(openRunDirectory(join(directory, "link"))).rejects.toThrow(/this user alone/);
  });

  it("is refused if a socket's path in it would be too long", async () => {
    await expect(openRunDirectory(join(directory, "x".repeat(60)))).rejects.toThrow(/100 bytes/);
  });

  it("keeps one copy of a program for each content", async () => {
    await openRunDirectory(directory);
    const source = join(directory, "program");
    await writeFile(source, "one");
    const first = await installFile(directory, source);
    expect(await installFile(directory, source)).toBe(first);
    await writeFile(source, "other");
    const second = await installFile(directory, source);
    expect(second).not.toBe(first);
    expect([await readFile(first, "utf8"), await readFile(second, "utf8")]).toEqual(["one", "other"]);
    expect((await stat(second)).mode & 0o777).toBe(0o755);
    const content = await installContent(directory, "passwd", "text");
    expect(await installContent(directory, "passwd", "text")).toBe(content);
  });
});

describe("the record of a sandbox", () => {
  it("is read back as it was written, or is empty if the file is missing or invalid", async () => {
    const paths = sandboxPaths(directory, ID);
    expect(await readRecord(paths)).toBeNull();
    await mkdir(paths.root, { recursive: true });
    await writeRecord(paths, record);
    expect(await readRecord(paths)).toEqual(record);
    expect((await stat(paths.record)).mode & 0o777).toBe(0o600);
    await writeFile(paths.record, '{"version": 2}');
    expect(await readRecord(paths)).toBeNull();
  });

  it("keeps the first reason for an end", async () => {
    const paths = sandboxPaths(directory, ID);
    await mkdir(paths.root, { recursive: true });
    const first = { code: "memory_exceeded", message: "too much" } as const;
    expect(await writeExit(paths, first)).toEqual(first);
    expect(await writeExit(paths, { code: "exited", message: "gone" })).toEqual(first);
    expect(await readExit(paths)).toEqual(first);
  });

  it("is removed with directories that the agent locked, and without the targets of its links", async () => {
    const kept = join(directory, "kept");
    const root = join(directory, "tree");
    await mkdir(join(root, "locked", "deeper"), { recursive: true });
    await mkdir(kept);
    await writeFile(join(kept, "file"), "stays");
    await writeFile(join(root, "locked", "deeper", "file"), "goes");
    await symlink(kept, join(root, "locked", "link"));
    await chmod(join(root, "locked", "deeper"), 0o000);
    await chmod(join(root, "locked"), 0o000);
    await removeTree(root);
    await expect(stat(root)).rejects.toThrow(/ENOENT/);
    expect(await readdir(kept)).toEqual(["file"]);
  });

  it("reports the rest if it cannot be removed", async () => {
    // The kernel's files about a process cannot be removed.
    await expect(removeTree("/proc/self/fdinfo")).rejects.toThrow(/cannot be removed: rm: /);
  });
});
