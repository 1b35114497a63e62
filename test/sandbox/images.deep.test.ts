/** Imports of images with a million files, and with directories that are as deep as paths can be. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { unpackingProgram } from "../../src/assembly/sandbox-programs.ts";
import { importImage } from "../../src/sandbox/images/import.ts";
import { ImageStore } from "../../src/sandbox/images/store.ts";
import { makeRuntimeBundle } from "../../src/sandbox/machine/installation.ts";
import { openRunDirectory, removeTree } from "../../src/sandbox/machine/disk/run-directory.ts";
import { findTools } from "../../src/sandbox/machine/tools.ts";
import { tarOf, writeArchive } from "../support/machine/image-archives.ts";
import { manyEmptyFiles } from "../support/machine/tars.ts";
import { sandboxesStartHere } from "../support/requirements.ts";

const MILLION = 1_000_000;
const FEWER = 50_000;
const GIB = 1024 ** 3;
const path = process.env["PATH"] ?? "";

describe.skipIf(!sandboxesStartHere)("an import of a large image (needs bubblewrap)", () => {
  let directory = "";
  let bundle = "";
  let store = new ImageStore("");
  beforeAll(async () => {
    // On disk: a million files in memory would take a gigabyte of it.
    directory = await mkdtemp("/var/tmp/platform-images-");
    await chmod(directory, 0o755);
    const runDir = join(directory, "run");
    await openRunDirectory(runDir);
    bundle = await makeRuntimeBundle({ runDir, nodePath: process.execPath, agentBinaries: [], path });
    store = new ImageStore(join(directory, "images"));
    await mkdir(join(directory, "canary"));
    await writeFile(join(directory, "canary/file"), "untouched");
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const imported = async (
    archive: Uint8Array,
    limits?: { readonly bytes: number; readonly files: number },
  ) => {
    const file = await writeArchive(directory, "archive", archive);
    const bwrap = findTools(path).bwrap ?? "bwrap";
    return importImage(
      { store, bundle, bwrap, unpacker: await unpackingProgram(), ...(limits !== undefined && { limits }) },
      { name: "x", file },
    );
  };
  const unharmed = () => {
    expect(readFileSync(join(directory, "canary/file"), "utf8")).toBe("untouched");
    expect(
      readdirSync(store.directory).filter((name) => !/^(?:sha256-[0-9a-f]{64}|names)$/.test(name)),
    ).toEqual([]);
  };

  it("takes a million files, and refuses them where fewer are allowed [E03]", async () => {
    const archive = await manyEmptyFiles(MILLION);
    await expect(imported(archive, { bytes: GIB, files: FEWER })).rejects.toThrow(`more than ${FEWER} files`);
    unharmed();
    // The limits of the product.
    const { root } = await imported(archive);
    expect(readdirSync(join(root, "many")).length).toBe(MILLION);
    unharmed();
    await removeTree(root);
  });

  it("takes directories as deep as a path can be, and refuses 4,096 levels [E01] [E03]", async () => {
    const { root } = await imported(await tarOf([{ name: `${"d/".repeat(2000)}f`, content: "bottom" }]));
    await removeTree(root);
    expect(existsSync(root)).toBe(false);
    // One entry for each level, so that no directory is missing on the way.
    const levels = Array.from({ length: 4096 }, (_, level) => ({ name: "d/".repeat(level + 1) }));
    await expect(imported(await tarOf(levels))).rejects.toThrow(/too long/);
    unharmed();
  });
});
