import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { joinGroups } from "../../src/sandbox/machine/cgroup.ts";

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
