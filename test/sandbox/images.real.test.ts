/**
 * Imports of images: every form of archive, and hostile ones. Each is unpacked by the real program in a real sandbox.
 * Canaries beside the image's directory show that nothing else was written.
 */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unpackingProgram } from "../../src/assembly/sandbox-programs.ts";
import { importImage } from "../../src/sandbox/images/import.ts";
import { ImageStore } from "../../src/sandbox/images/store.ts";
import { makeRuntimeBundle } from "../../src/sandbox/machine/installation.ts";
import { openRunDirectory } from "../../src/sandbox/machine/disk/run-directory.ts";
import { findTools } from "../../src/sandbox/machine/tools.ts";
import {
  dockerArchive,
  FILE_CAPABILITY,
  ociArchive,
  sha256,
  type TarEntry,
  tarOf,
  writeArchive,
} from "../support/machine/image-archives.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { deepTest, onlyDeep } from "../support/vitest/rings.ts";

const path = process.env["PATH"] ?? "";
const bwrap = findTools(path).bwrap ?? "bwrap";
let directory = "";
let bundle = "";
let store = new ImageStore("");

beforeAll(async () => {
  if (!sandboxesStartHere) return;
  directory = await mkdtemp("/tmp/platform-images-");
  await chmod(directory, 0o755);
  const runDir = join(directory, "run");
  await openRunDirectory(runDir);
  bundle = await makeRuntimeBundle({ runDir, nodePath: process.execPath, agentBinaries: [], path });
  store = new ImageStore(join(directory, "images"));
  await mkdir(join(directory, "canary"));
  await writeFile(join(directory, "canary/file"), "untouched");
});

afterAll(() => rm(directory, { recursive: true, force: true }));

const imported = async (archive: Uint8Array, limits?: { readonly bytes: number; readonly files: number }) => {
  const file = await writeArchive(directory, "archive", archive);
  return importImage(
    { store, bundle, bwrap, unpacker: await unpackingProgram(), ...(limits !== undefined && { limits }) },
    { name: "x", file },
  );
};

/** Long after each import, ms since the epoch. */
const LATER = 8e15;

/** Nothing may change it. */
const canary = (): string => join(directory, "canary");

/** Every file that an import may have left besides images. */
const leftovers = (): readonly string[] =>
  readdirSync(store.directory).filter((name) => !/^(?:sha256-[0-9a-f]{64}|names)$/.test(name));

const base: readonly TarEntry[] = [
  { name: "usr/" },
  { name: "usr/lib/" },
  { name: "lib", type: "symlink", linkname: "usr/lib" },
  { name: "etc/" },
  { name: "etc/motd", content: "first" },
  { name: "data/" },
  { name: "data/a", content: "a" },
  { name: "data/b", content: "b" },
];

describe.skipIf(!sandboxesStartHere)("an import (needs bubblewrap)", () => {
  it("takes the tar of a root file system, compressed or not", async () => {
    const tar = await tarOf(base);
    for (const archive of [tar, gzipSync(tar), zstdCompressSync(tar)]) {
      // eslint-disable-next-line no-await-in-loop -- one name
      const { root, digest } = await imported(archive);
      expect(digest).toBe(sha256(tar));
      expect(readFileSync(join(root, "etc/motd"), "utf8")).toBe("first");
      expect(readlinkSync(join(root, "lib"))).toBe("usr/lib");
    }
    expect(leftovers()).toEqual([]);
  });

  deepTest("lays layers over each other: changes, removals, and a directory by its old path", async () => {
    const first = await tarOf(base);
    const second = await tarOf([
      { name: "etc/motd", content: "second" },
      { name: "data/.wh.a", content: "" },
      { name: "lib/x.so", content: "library" },
    ]);
    const third = await tarOf([
      { name: "data/c", content: "c" },
      { name: "data/.wh..wh..opq", content: "" },
    ]);
    const config = { Env: ["PATH=/opt/go/bin:/usr/bin", "GOPATH=/go"], User: "root", WorkingDir: "/src" };
    for (const archiveOf of [ociArchive, dockerArchive]) {
      // eslint-disable-next-line no-await-in-loop -- one name
      const image = await imported(await archiveOf([first, second, third], { config }));
      expect(image.env).toEqual({ PATH: "/opt/go/bin:/usr/bin", GOPATH: "/go" });
      expect([image.user, image.workdir]).toEqual(["root", "/src"]);
      expect(readFileSync(join(image.root, "etc/motd"), "utf8")).toBe("second");
      expect(readFileSync(join(image.root, "usr/lib/x.so"), "utf8")).toBe("library");
      expect(readdirSync(join(image.root, "data"))).toEqual(["c"]);
    }
  });

  deepTest("takes an archive in which a layer is a link to another one", async () => {
    const layer = await tarOf([{ name: "f", content: "f" }]);
    const { root } = await imported(
      await dockerArchive([layer, await tarOf([{ name: ".wh.f", content: "" }]), layer]),
    );
    expect(readFileSync(join(root, "f"), "utf8")).toBe("f");
  });

  it("prepares the places of the sandbox's own mounts, whatever the image has there [E05]", async () => {
    const { root } = await imported(
      await tarOf([
        { name: "etc/" },
        { name: "etc/resolv.conf", type: "symlink", linkname: "/run/systemd/resolve/stub-resolv.conf" },
        { name: "etc/passwd", type: "symlink", linkname: join(directory, "canary/file") },
        { name: "var/" },
        { name: "var/tmp", type: "symlink", linkname: "/tmp" },
        { name: "workspace/" },
      ]),
    );
    for (const file of ["etc/resolv.conf", "etc/passwd", "usr/local/bin/platform-agent"])
      expect(lstatSync(join(root, file)).isFile(), file).toBe(true);
    for (const place of ["var/tmp", "proc", "dev", "workspace", "opt/platform", "run/platform"])
      expect(lstatSync(join(root, place)).isDirectory(), place).toBe(true);
    expect(readlinkSync(join(root, "bin/sh"))).toBe("/opt/platform/lib/tools/sh");
    expect(readFileSync(join(directory, "canary/file"), "utf8")).toBe("untouched");
  });

  it("keeps no set-uid bit and no file capability, and makes no device and no pipe [E02]", async () => {
    const archive = await tarOf([
      { name: "su", content: "x", mode: 0o6755 },
      { name: "capable", content: "x", mode: 0o755, attributes: FILE_CAPABILITY },
      { name: "disk", type: "character-device" },
      { name: "pipe", type: "fifo" },
    ]);
    expect(archive.includes("security.capability")).toBe(true);
    const { root } = await imported(archive);
    const attributes = execFileSync("tar", ["--xattrs", "--xattrs-include=*", "-C", root, "-c", "capable"]);
    expect(attributes.includes("security.capability")).toBe(false);
    expect(statSync(join(root, "su")).mode & 0o7777).toBe(0o755);
    expect([existsSync(join(root, "disk")), existsSync(join(root, "pipe"))]).toEqual([false, false]);
  });

  const hostile: readonly (readonly [
    what: string,
    layers: () => readonly (readonly TarEntry[])[],
    refusal: RegExp | null,
  ])[] = [
    ["leads out by ..", () => [[{ name: "../../canary/file", content: "hostile" }]], /with \.\. in its path/],
    [
      "writes through a link to a directory of the host",
      () => [
        [{ name: "out", type: "symlink", linkname: canary() }],
        [{ name: "out/file", content: "hostile" }],
      ],
      /cannot be written/,
    ],
    [
      "writes over a link to a file of the host",
      () => [
        [{ name: "f", type: "symlink", linkname: join(canary(), "file") }],
        [{ name: "f", content: "hostile" }],
      ],
      null,
    ],
    [
      "links to a file of the host",
      () => [[{ name: "f", type: "link", linkname: join(canary(), "file") }]],
      /cannot be written/,
    ],
    [
      "removes through a link to a directory of the host",
      () => [[{ name: "out", type: "symlink", linkname: canary() }], [{ name: "out/.wh.file", content: "" }]],
      null,
    ],
    ["removes its root", () => [[{ name: ".wh..", content: "" }]], /removes/],
    [
      "has files in our directory",
      () => [[{ name: "opt/platform/lib/node", content: "x" }]],
      /belongs to the platform/,
    ],
    [
      "has our directory as a link",
      () => [
        [{ name: "opt/" }, { name: "x", type: "symlink", linkname: "/opt/platform/lib" }],
        [{ name: "x/node", content: "x" }],
      ],
      /cannot be written/,
    ],
    [
      "has /etc as a link",
      () => [[{ name: "etc", type: "symlink", linkname: "/tmp" }]],
      /\/etc is not a directory/,
    ],
    [
      "has /dev as a link",
      () => [[{ name: "dev", type: "symlink", linkname: "/dev" }]],
      /\/dev is not a directory/,
    ],
    ["is deeper than any path", () => [[{ name: `${"d/".repeat(4096)}f`, content: "x" }]], /too long/],
  ];

  onlyDeep(() => {
    it.each(hostile)("is safe from an image that %s [E01]", async (_what, layersOf, refusal) => {
      const layers = await Promise.all(layersOf().map((entries) => tarOf(entries)));
      const done = imported(await ociArchive(layers));
      if (refusal === null) await done;
      else await expect(done).rejects.toThrow(refusal);
      expect(readFileSync(join(directory, "canary/file"), "utf8")).toBe("untouched");
      expect(readdirSync(join(directory, "canary"))).toEqual(["file"]);
      expect(leftovers()).toEqual([]);
    });
  });

  deepTest("stops at its limits of bytes and files [E03]", async () => {
    const large = await tarOf([{ name: "zeros", content: Buffer.alloc(2_000_000) }]);
    await expect(imported(gzipSync(large), { bytes: 1_000_000, files: 10 })).rejects.toThrow(
      "more than 1000000 bytes",
    );
    const many = await tarOf(Array.from({ length: 50 }, (_, at) => ({ name: `f${at}`, content: "" })));
    await expect(imported(many, { bytes: 1_000_000, files: 10 })).rejects.toThrow("more than 10 files");
    expect(leftovers()).toEqual([]);
  });

  onlyDeep(() => {
    it.each([
      ["nothing", async () => Buffer.alloc(0), /empty/],
      ["no tar", async () => Buffer.alloc(100_000, "x"), /damaged/],
      ["half of a tar", async () => (await tarOf(base)).subarray(0, 1700), /damaged/],
      [
        "half of a compressed tar",
        async () => gzipSync(await tarOf(base)).subarray(0, 60),
        /damaged|cannot be written/,
      ],
      [
        "an image for another machine",
        async () => ociArchive([await tarOf(base)], { architecture: "s390x" }),
        /linux\/s390x/,
      ],
      [
        "a description that is no JSON",
        async () => tarOf([{ name: "manifest.json", content: "{" }]),
        /not JSON/,
      ],
      [
        "a description of the wrong shape",
        async () => tarOf([{ name: "manifest.json", content: '[{"Config": 1}]' }]),
        /\[0\]\.Config is not a text/,
      ],
    ] as const)("refuses %s with a reason [E03]", async (_what, archiveOf, reason) => {
      await expect(imported(await archiveOf())).rejects.toThrow(reason);
      expect(leftovers()).toEqual([]);
    });
  });

  it("refuses a layer with another content than its digest [E04]", async () => {
    const archive = await ociArchive([await tarOf(base)]);
    // The last blob is the manifest; the one before it is the layer.
    const at = archive.lastIndexOf(Buffer.from([0x1f, 0x8b]));
    archive[at + 12] = (archive[at + 12] ?? 0) ^ 1;
    await expect(imported(archive)).rejects.toThrow(/another content/);
    expect(leftovers()).toEqual([]);
  });

  deepTest("keeps an image as long as a name or a sandbox uses it", async () => {
    const [one, other] = await Promise.all([
      tarOf([{ name: "1", content: "1" }]),
      tarOf([{ name: "2", content: "2" }]),
    ]);
    const first = await imported(one);
    const second = await imported(other);
    // An import under way names its image last, so a young image stays.
    await store.prune(new Set(), 0);
    await store.prune(new Set([first.digest]), LATER);
    expect([existsSync(first.root), existsSync(second.root)]).toEqual([true, true]);
    await store.prune(new Set(), LATER);
    expect([existsSync(first.root), existsSync(second.root)]).toEqual([false, true]);
    expect(await store.remove("x")).toBe(true);
    expect(await store.remove("x")).toBe(false);
    expect(await store.find("x")).toBeNull();
  });
});
