import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_LIMITS } from "../../../src/sandbox/machine/options.ts";
import type { ProcessSample } from "../../../src/sandbox/machine/processes.ts";
import {
  type SandboxPaths,
  type SandboxRecord,
  sandboxPaths,
} from "../../../src/sandbox/machine/disk/run-directory.ts";
import {
  LOG_KEPT_BYTES,
  type SandboxWatch,
  measureDisk,
  measureProcesses,
  newestLines,
  trimLog,
} from "../../../src/sandbox/machine/limits/watcher.ts";

const MIB = 1024 * 1024;
const limits = { ...DEFAULT_LIMITS, memoryBytes: 100 * MIB, processes: 10, diskBytes: 1 * MIB };
const rules = { limits, kernelMemory: false, kernelProcesses: false };

const launcher = { pid: 100, startTime: "1", bootId: "b" };
const record: SandboxRecord = {
  version: 1,
  id: "0b4cf0a4-5a3f-4c39-9d67-1f62c2f0a001",
  sessionId: "s",
  installationId: "i",
  nodeId: "n",
  uidBase: null,
  launcher,
  cgroups: [],
  egressAllow: [],
  secretNames: [],
  llmUpstream: null,
};

let directory = "";
let paths: SandboxPaths;
let watched: SandboxWatch;

beforeEach(async () => {
  directory = await mkdtemp("/tmp/platform-watcher-");
  paths = sandboxPaths(directory, record.id);
  await mkdir(paths.workspace, { recursive: true });
  watched = { paths, record, disk: null };
});

afterEach(() => rm(directory, { recursive: true }));

const sample = (pid: number, parent: number, memory: number, threads = 1): ProcessSample => ({
  pid,
  parent,
  namespacePids: [pid],
  threads,
  memoryBytes: memory * MIB,
});

describe("the watcher of processes", () => {
  it("adds up the descendants of the launcher, and nothing else", () => {
    const others = [sample(1, 0, 500, 100), sample(100, 1, 500, 100), sample(300, 1, 500, 100)];
    const inside = [sample(101, 100, 60, 5), sample(102, 101, 40, 5)];
    expect(measureProcesses(watched, [...others, ...inside], rules)).toBeNull();
    expect(measureProcesses(watched, [...others, ...inside, sample(103, 102, 1, 0)], rules)?.code).toBe(
      "memory_exceeded",
    );
    expect(measureProcesses(watched, [...others, ...inside, sample(103, 102, 0, 1)], rules)?.code).toBe(
      "processes_exceeded",
    );
  });

  it("does not check limits that the kernel enforces", () => {
    const samples = [sample(101, 100, 1000, 1000)];
    expect(
      measureProcesses(watched, samples, { limits, kernelMemory: true, kernelProcesses: true }),
    ).toBeNull();
  });
});

/** A process that has a removed file of that size open. @returns a function that ends it */
const keeping = async (place: string, bytes: number) => {
  const script = 'exec 3>"$0"; rm "$0"; head -c "$1" /dev/zero >&3; echo open; (read -r _) ; :';
  const child = spawn("sh", ["-c", script, place, String(bytes)], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return async () => {
    child.stdin.end();
    await once(child, "exit");
  };
};

describe("the watcher of the disk", () => {
  it("counts the files below workspace, home and tmp", async () => {
    expect(await measureDisk(watched, rules, 0)).toBeNull();
    await writeFile(`${paths.workspace}/big`, Buffer.alloc(2 * MIB, 1));
    expect((await measureDisk({ ...watched, disk: null }, rules, 0))?.code).toBe("disk_exceeded");
  });

  it("counts the files again after a while, or when the disk lost space, but not at every check", async () => {
    await measureDisk(watched, rules, 0);
    await writeFile(`${paths.workspace}/big`, Buffer.alloc(2 * MIB, 1));
    expect(await measureDisk(watched, rules, 2000)).toBeNull();
    expect((await measureDisk(watched, rules, 60 * 60 * 1000))?.code).toBe("disk_exceeded");
    const last = { atMs: 0, nextMs: Number.MAX_SAFE_INTEGER, freeBytes: 0, freeFiles: 0 };
    expect(await measureDisk({ ...watched, disk: last }, rules, 2000)).toBeNull();
    const lost = [
      { ...last, freeBytes: Number.MAX_SAFE_INTEGER },
      { ...last, freeFiles: Number.MAX_SAFE_INTEGER },
    ];
    const found = await Promise.all(lost.map((disk) => measureDisk({ ...watched, disk }, rules, 2000)));
    expect(found.map((excess) => excess?.code)).toEqual(["disk_exceeded", "disk_exceeded"]);
  });

  it("counts empty files too, which take no disk space but use up inodes", async () => {
    // The disk, its workspace and home.
    const few = { ...rules, limits: { ...limits, diskFiles: 3 } };
    await mkdir(paths.home);
    expect(await measureDisk(watched, few, 0)).toBeNull();
    await writeFile(`${paths.home}/empty`, "");
    expect(await measureDisk({ ...watched, disk: null }, few, 0)).toEqual({
      code: "disk_exceeded",
      message: "the sandbox made more than its 3 files and directories",
    });
  });

  it("counts removed files that processes of the sandbox have open, except on other file systems", async () => {
    const inside = { ...watched, record: { ...record, launcher: { ...launcher, pid: process.pid } } };
    const one = await keeping(`${paths.workspace}/gone`, MIB * 0.75);
    const elsewhere = await keeping(`/dev/shm/${record.id}`, 2 * MIB);
    expect(await measureDisk(inside, rules, 0)).toBeNull();
    const other = await keeping(`${paths.workspace}/gone`, MIB * 0.75);
    expect((await measureDisk({ ...inside, disk: null }, rules, 0))?.code).toBe("disk_exceeded");
    expect(await measureDisk({ ...watched, disk: null }, rules, 0)).toBeNull();
    await Promise.all([one(), elsewhere(), other()]);
  });

  it("counts removed files that are in the memory of a process of the sandbox alone", async () => {
    const program = `${paths.workspace}/program`;
    await copyFile(process.execPath, program);
    const child = spawn(program, ["-e", "console.log('runs'); setInterval(() => {}, 1e6)"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(child, "exit");
    try {
      await once(child.stdout, "data");
      await rm(program);
      const inside = { ...watched, record: { ...record, launcher: { ...launcher, pid: process.pid } } };
      expect((await measureDisk(inside, rules, 0))?.code).toBe("disk_exceeded");
    } finally {
      child.kill("SIGKILL");
      await ended;
    }
  });

  it("fails if the files cannot be counted, instead of reporting none", async () => {
    const path = process.env["PATH"];
    process.env["PATH"] = paths.root;
    try {
      await expect(measureDisk(watched, rules, 0)).rejects.toThrow();
    } finally {
      process.env["PATH"] = path;
    }
  });
});

describe("the watcher of the log", () => {
  it("leaves a short log alone", async () => {
    await writeFile(paths.log, "short\n");
    await trimLog(watched, limits);
    expect(await readFile(paths.log, "utf8")).toBe("short\n");
  });

  it("keeps the newest part of a flood, and says how much it omitted", async () => {
    await writeFile(paths.log, `${"older\n".repeat(3 * MIB)}newest\n`);
    await trimLog(watched, limits);
    expect((await stat(paths.log)).size).toBe(0);
    const kept = await readFile(paths.oldLog, "utf8");
    expect(kept).toMatch(/^\[\d+ bytes of output left out\]\n/);
    expect(kept.endsWith("newest\n")).toBe(true);
    expect(kept.length).toBeLessThan(LOG_KEPT_BYTES + 100);
    expect(new Set(kept.split("\n").slice(1))).toEqual(new Set(["older", "newest", ""]));
  });

  it("takes the newest whole lines of a text", () => {
    expect(newestLines("one\ntwo\nthree\n", 100)).toBe("one\ntwo\nthree\n");
    expect(newestLines("one\ntwo\nthree\n", 10)).toBe("two\nthree\n");
    expect(newestLines("one\ntwo\nthree\n", 9)).toBe("three\n");
    expect(newestLines("énd\nünï\n", 6)).toBe("ünï\n");
  });
});
