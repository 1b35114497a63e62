import { existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { prepareRoot } from "../../../src/sandbox/images/unpack/mount-points.ts";

let directory = "";
let root = "";
/** Beside the root: nothing may be written here. */
let outside = "";

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mount-points-"));
  root = join(directory, "root");
  outside = join(directory, "outside");
  await mkdir(root);
  await mkdir(outside);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it("makes every place in an empty root, once and again", async () => {
  await prepareRoot(root);
  await prepareRoot(root);
  expect(lstatSync(join(root, "usr/local/bin/platform-agent")).isFile()).toBe(true);
  expect(readlinkSync(join(root, "bin/sh"))).toBe("/opt/platform/lib/tools/sh");
  expect(readlinkSync(join(root, "usr/bin/env"))).toBe("/opt/platform/lib/tools/env");
});

it("offers a shell where /bin is a link to usr/bin, as in most images", async () => {
  await symlink("usr/bin", join(root, "bin"));
  await prepareRoot(root);
  expect(readlinkSync(join(root, "usr/bin/sh"))).toBe("/opt/platform/lib/tools/sh");
});

it.each(["bin", "tmp", "run", "var/tmp", "etc/passwd", "usr/local/bin/platform"])(
  "writes nothing outside if /%s leads there [E05]",
  async (place) => {
    await mkdir(join(root, place, ".."), { recursive: true });
    await symlink(outside, join(root, place));
    await prepareRoot(root);
    expect(readdirSync(outside)).toEqual([]);
    expect(existsSync(join(root, "workspace"))).toBe(true);
  },
);

it.each(["etc", "usr", "usr/local", "opt", "dev", "proc", "workspace"])(
  "refuses an image whose /%s leads elsewhere [E05]",
  async (place) => {
    await mkdir(join(root, place, ".."), { recursive: true });
    await symlink(outside, join(root, place));
    await expect(prepareRoot(root)).rejects.toThrow(`the image's /${place} is not a directory`);
    expect(readdirSync(outside)).toEqual([]);
  },
);
