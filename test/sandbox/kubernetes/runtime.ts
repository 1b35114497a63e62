/** The content of a runtime image whose daemon is the suite's stand-in. */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeBundle } from "../../../src/sandbox/bundle/bundle.ts";
import { writeRuntime } from "../../../src/sandbox/kubernetes/runtime.ts";
import { findProgram } from "../../../src/sandbox/machine/tools.ts";

export const STAND_IN = fileURLToPath(new URL("../stand-in-daemon.mjs", import.meta.url));

/** @param root becomes the image's root */
export const writeStandInRuntime = async (root: string): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), "platform-runtime-"));
  const path = process.env["PATH"] ?? "";
  try {
    const bundle = await makeBundle({
      directory,
      nodePath: process.execPath,
      agentBinaries: [],
      find: (name) => findProgram(name, path),
      hash: async (file) =>
        createHash("sha256")
          .update(await readFile(file))
          .digest("hex"),
    });
    const commandLine = join(directory, "platform.cjs");
    await writeFile(commandLine, "#!/usr/bin/env node\n", { mode: 0o755 });
    await writeRuntime({ bundle, daemon: STAND_IN, commandLine }, root);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
