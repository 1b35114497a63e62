import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { joinGroups, removeGroup, removeGroups } from "../../../src/sandbox/machine/limits/cgroup.ts";

it("joins control groups without blocking the event loop, however long the kernel takes", async () => {
  const directory = mkdtempSync(join(tmpdir(), "platform-groups-"));
  try {
    // A write that ends when a reader comes: no reader could come if this process stood still until then.
    const members = join(directory, "cgroup.procs");
    execFileSync("mkfifo", [members]);
    const joining = joinGroups([directory], 4711);
    expect(await readFile(members, "utf8")).toBe("4711");
    await joining;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

it("removes a control group as soon as the kernel has cleaned up its processes", async () => {
  const directory = mkdtempSync(join(tmpdir(), "platform-groups-"));
  const busy = join(directory, "busy");
  try {
    // A directory that is not empty cannot be removed, like a group that still counts a process.
    mkdirSync(busy);
    const removing = removeGroups([directory]);
    expect(await removeGroup(directory)).toBe(false);
    rmSync(busy, { recursive: true });
    await removing;
    expect(existsSync(directory)).toBe(false);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
