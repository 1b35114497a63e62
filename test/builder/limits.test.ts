/** The watch over a build where no control group enforces a limit. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LimitWatch, measureSize, type WatchedBuild } from "../../src/builder/buildah/limits.ts";

const MIB = 1024 * 1024;
const LIMITS = {
  seconds: 100,
  memoryBytes: 512 * MIB,
  diskBytes: 10 * MIB,
  processes: 100,
  logBytes: 1,
  imageBytes: 1,
  imageFiles: 10,
};

describe("the watch over a build without control groups", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "limits-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const watch = (changes: Partial<WatchedBuild> = {}): LimitWatch =>
    new LimitWatch({
      limits: LIMITS,
      groups: [],
      unenforced: new Set(["memory", "processes"]),
      directories: [directory],
      before: { bytes: 0, files: 0 },
      startedMs: 0,
      launcher: () => process.pid,
      ...changes,
    });

  it("counts processes and memory below the outermost one", async () => {
    const child = spawn("sleep", ["1000"]);
    await once(child, "spawn");
    expect(await watch().look(1)).toBeNull();
    expect(await watch({ limits: { ...LIMITS, processes: 0 } }).look(1)).toEqual({
      code: "too_large",
      what: "processes",
      limit: 0,
    });
    expect(await watch({ limits: { ...LIMITS, memoryBytes: 1 } }).look(1)).toEqual({
      code: "out_of_memory",
      limit: 1,
    });
    expect(await watch({ limits: { ...LIMITS, processes: 0 }, unenforced: new Set() }).look(1)).toBeNull();
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it("ends a build at its deadline, and not before", async () => {
    expect(await watch().look(99_999)).toBeNull();
    expect(await watch().look(100_000)).toEqual({ code: "timeout", seconds: 100 });
  });

  it("counts only the growth of the disk", async () => {
    await writeFile(join(directory, "file"), Buffer.alloc(12 * MIB, 1));
    const before = await measureSize([directory]);
    expect(await watch().look(1)).toEqual({ code: "too_large", what: "disk", limit: 10 * MIB });
    expect(await watch({ before }).look(1)).toBeNull();
    for (let index = 0; index < 50; index += 1) await writeFile(join(directory, `${index}`), "");
    expect(await watch({ before }).look(1)).toEqual({ code: "too_large", what: "files", limit: 10 });
  });
});
