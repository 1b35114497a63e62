/**
 * A program in git's place that does what git does too seldom: it fails, it is late, or it does not report its work.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";

const realGit = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

/** From here to `vi.unstubAllEnvs()` the service finds this script, kept below `root`, for git; `$REAL` is git. */
export const gitStandIn = (root: string, script: string): void => {
  const bin = mkdtempSync(join(root, "bin-"));
  writeFileSync(join(bin, "git"), `#!/bin/sh\nREAL='${realGit}'\n${script}\n`);
  chmodSync(join(bin, "git"), 0o755);
  vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
};
