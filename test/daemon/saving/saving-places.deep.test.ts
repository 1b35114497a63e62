/** The workspace program as another user, and with each shell as the machine's own. Neither makes a difference. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe } from "vitest";
import { savingConformance } from "../../conformance/sandboxes/saving.ts";
import { workspaceRunner } from "../support/workspace-program.ts";

const PATH = process.env["PATH"] ?? "";
const SHELLS = ["dash", "bash", "busybox"].flatMap((name) => {
  const file = PATH.split(delimiter)
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path));
  return file === undefined ? [] : [{ name, file }];
});

describe.each(SHELLS)("the workspace program where sh is $name", ({ file }) => {
  const bin = mkdtempSync(join(tmpdir(), "shell-"));
  symlinkSync(file, join(bin, "sh"));
  afterAll(() => rmSync(bin, { recursive: true }));
  savingConformance({
    run: workspaceRunner({ env: { PATH: `${bin}${delimiter}${PATH}` } }),
    root: tmpdir(),
  });
});

/** A user without any files. */
const USER = "65534";

describe.skipIf(process.getuid?.() !== 0)("the workspace program as another user", () => {
  const directory = mkdtempSync(join(tmpdir(), "program-"));
  chmodSync(directory, 0o755);
  afterAll(() => rmSync(directory, { recursive: true }));
  savingConformance({
    run: workspaceRunner({
      directory,
      prefix: ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs", "--"],
      env: { HOME: "/nonexistent" },
    }),
    own: (path, owner) => void execFileSync("chown", ["-hR", owner === "agent" ? USER : "0", path]),
    root: tmpdir(),
  });
});
