/** The image that the cases use: busybox, and no file of the machine. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { unpackingProgram } from "../../../src/assembly/sandbox-programs.ts";
import { importImage } from "../../../src/sandbox/images/import.ts";
import { ImageStore } from "../../../src/sandbox/images/store.ts";
import { makeRuntimeBundle } from "../../../src/sandbox/machine/installation.ts";
import { openRunDirectory } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { busybox, writeToolImage } from "../../support/machine/image-archives.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { directory } from "./machine-harness.ts";

export const lacksImage =
  sandboxesStartHere && busybox !== undefined ? null : "not installed: bwrap or busybox-static";

/** Imports it as `tools`. */
export const prepareImage = async (): Promise<void> => {
  if (lacksImage !== null) return;
  const scratch = join(directory, "image");
  const runDir = join(directory, "importer");
  const file = join(directory, "tools.tar");
  await mkdir(scratch);
  await openRunDirectory(runDir);
  await writeToolImage(scratch, file);
  const path = process.env["PATH"] ?? "";
  const bundle = await makeRuntimeBundle({ runDir, nodePath: process.execPath, agentBinaries: [], path });
  const store = new ImageStore(join(directory, "images"));
  await importImage(
    { store, bundle, bwrap: "/usr/bin/bwrap", unpacker: await unpackingProgram() },
    { name: "tools", file },
  );
};
