import { tmpdir } from "node:os";
import * as Effect from "effect/Effect";
import { expect, it } from "vitest";
import { freeBytes, spaceOn } from "../../../src/store/data-directory.ts";

it("has no space where a disk has no room for files, and knows disks without a limit of files", () => {
  const disk = { bavail: 1000, bsize: 4096 };
  expect(spaceOn({ ...disk, files: 5000, ffree: 4000 })).toBe(4_096_000);
  expect(spaceOn({ ...disk, files: 5000, ffree: 999 })).toBe(0);
  expect(spaceOn({ ...disk, files: 0, ffree: 0 })).toBe(4_096_000);
});

it("asks the directory's own disk, and does not know a missing one", async () => {
  expect(await Effect.runPromise(freeBytes(tmpdir()))).toBeGreaterThan(0);
  expect(await Effect.runPromise(freeBytes("/nowhere/at-all"))).toBeNull();
});
