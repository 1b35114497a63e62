/**
 * A program in git's place that does what git does too seldom: it fails, it is late, or it does not report its work.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";

const realGit = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

/**
 * From here to `vi.unstubAllEnvs()` this process finds the script, kept below `root`, for git; `$REAL` is git. For a repository outside
 * of `repositories` it is git itself: a service that other files left running in this process may start it too.
 */
export const gitStandIn = (root: string, script: string, repositories = root): void => {
  const bin = mkdtempSync(join(root, "bin-"));
  const others = `case "\${GIT_DIR:-${repositories}/}" in '${repositories}'/*) ;; *) exec "$REAL" "$@" ;; esac`;
  writeFileSync(join(bin, "git"), `#!/bin/sh\nREAL='${realGit}'\n${others}\n${script}\n`);
  chmodSync(join(bin, "git"), 0o755);
  vi.stubEnv("PATH", `${bin}:${process.env["PATH"]}`);
};
