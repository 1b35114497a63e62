/** `local` on the root of an imported image, with the same cases as on the machine's own root. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { importImage } from "../../src/sandbox/images/import.ts";
import { ImageStore } from "../../src/sandbox/images/store.ts";
import { bundleOf } from "../../src/sandbox/machine/installation.ts";
import { openRunDirectory } from "../../src/sandbox/machine/run-directory.ts";
import { busybox, writeToolImage } from "../support/machine/image-archives.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { sampled } from "../support/vitest/rings.ts";
import { directory, machineSuites } from "./machine-harness.ts";

const lacks = sandboxesStartHere && busybox !== undefined ? null : "not installed: bwrap or busybox-static";
const path = process.env["PATH"] ?? "";

const prepare = async (): Promise<void> => {
  if (lacks !== null) return;
  const scratch = join(directory, "image");
  const runDir = join(directory, "importer");
  const file = join(directory, "tools.tar");
  await mkdir(scratch);
  await openRunDirectory(runDir);
  await writeToolImage(scratch, file);
  const bundle = await bundleOf({ runDir, nodePath: process.execPath, agentBinaries: [], path });
  const store = new ImageStore(join(directory, "images"));
  await importImage({ store, bundle, bwrap: "/usr/bin/bwrap" }, { name: "tools", file });
};

const FORMS = sampled(["bubblewrap", "namespaces"] as const, ["bubblewrap"]);

machineSuites({ image: "tools", prepare, lacks, forms: FORMS, others: FORMS });
