/** The workspace of a benchmark of saves: its tree, git, and the workspace program as a daemon starts it. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import type { WorkspaceCommand } from "../../../daemon/saving/command.ts";
import { programCommand } from "../../../daemon/saving/workspace-program.ts";
import { wholeFrame } from "../../../src/domain/save/frames.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const FILES_A_DIRECTORY = 100;
const OUTPUT_BYTES = 512 * 1024 * 1024;

export const guarded = guardedDirectory("platform-bench-saves-");
export const root = guarded.directory;
export const workspace = join(root, "workspace");
export const program = join(root, "program.cjs");
await build({
  entryPoints: [join(import.meta.dirname, "../../../daemon/saving/program.ts")],
  outfile: program,
  bundle: true,
  minify: true,
  platform: "node",
  format: "cjs",
  logLevel: "error",
});

export const env = {
  PATH: process.env["PATH"],
  HOME: root,
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_OPTIONAL_LOCKS: "0",
};
export const git = (args: readonly string[], more: NodeJS.ProcessEnv = {}): string =>
  execFileSync(
    "git",
    ["-C", workspace, "-c", "gc.auto=0", "-c", "user.name=b", "-c", "user.email=b@localhost", ...args],
    {
      env: { ...env, ...more },
      encoding: "utf8",
      maxBuffer: OUTPUT_BYTES,
      stdio: ["ignore", "pipe", "ignore"],
    },
  );

export const run = (command: WorkspaceCommand): Buffer => {
  const [node, ...args] = programCommand(program);
  const { status, stdout, stderr } = spawnSync(node, args, {
    env: { ...env, GIT_DIR: join(workspace, ".git"), GIT_WORK_TREE: workspace },
    input: wholeFrame(Buffer.from(JSON.stringify(command))),
    maxBuffer: OUTPUT_BYTES,
  });
  if (status !== 0) throw new Error(stderr.toString());
  return stdout;
};

export const path = (at: number): string => `d${Math.floor(at / FILES_A_DIRECTORY)}/file-${at}.txt`;

/** A committed tree of that many files. @returns the commit */
export const makeTree = (files: number): string => {
  rmSync(workspace, { recursive: true, force: true });
  for (let at = 0; at < files; at += 1) {
    if (at % FILES_A_DIRECTORY === 0)
      mkdirSync(join(workspace, `d${at / FILES_A_DIRECTORY}`), { recursive: true });
    writeFileSync(join(workspace, path(at)), `The content of file ${at}.\n`.repeat(20));
  }
  git(["init", "-q", "--initial-branch=main"]);
  git(["add", "-A"]);
  git(["commit", "-q", "-m", "Begin"]);
  git(["update-index", "-q", "--refresh"]);
  return git(["rev-parse", "HEAD"]).trim();
};

export const place = { workspace, branch: "main", repoUrl: "http://platform.invalid/none.git" };
