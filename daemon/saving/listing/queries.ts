/** What git says of a repository. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Left } from "../left.ts";
import { GitFailure, type Repository } from "../repository.ts";
import {
  GITLINK,
  readDifferences,
  readStatus,
  unreadableDirectories,
  type Difference,
  type Status,
} from "./status.ts";

const STATUS = [
  "status",
  "--porcelain=v2",
  "-z",
  "--branch",
  "--no-ahead-behind",
  "--untracked-files=all",
  "--ignored=matching",
  "--no-renames",
  "--ignore-submodules=dirty",
];

/** The state of a repository's work tree. Its filters do not run. */
export const workTreeStatus = async (repository: Repository, left: Left): Promise<Status> => {
  await repository.stopFilters();
  const { code, stdout, stderr } = await repository.run(STATUS);
  if (code !== 0) throw new GitFailure(stderr.trim() || "git status failed");
  for (const path of unreadableDirectories(stderr)) left.name(path, "unreadable");
  return readStatus(stdout);
};

/** Paths that differ between two commits or trees. */
export const differ = async (repository: Repository, before: string, after: string): Promise<Difference[]> =>
  readDifferences(
    await repository.records([
      "diff-tree",
      "-r",
      "-z",
      "--raw",
      "--no-renames",
      "--no-abbrev",
      "--ignore-submodules=all",
      before,
      after,
    ]),
  );

/** Paths of the index. */
export const trackedPaths = (repository: Repository): Promise<string[]> =>
  repository.records(["ls-files", "-z"]);

/** Paths of the index that are repositories. */
export const gitlinks = async (repository: Repository): Promise<string[]> =>
  (await repository.records(["ls-files", "-s", "-z"]))
    .filter((entry) => entry.startsWith(GITLINK))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));

/**
 * The pushed commit that the workspace has seen. It is the branch's tip if HEAD ever named it, also before a reset or an amended
 * commit. Of a push by somebody else that was not merged yet, it is the commit before: their changes are no changes of the workspace.
 */
export const lastSeen = async (
  repository: Repository,
  pushedCommit: string,
  commit: string,
): Promise<string> => {
  if (readOrEmpty(join(repository.directory, "logs/HEAD")).includes(pushedCommit)) return pushedCommit;
  const { code, stdout } = await repository.run(["merge-base", pushedCommit, commit]);
  return code === 0 ? stdout.toString("latin1").trim() : pushedCommit;
};

const readOrEmpty = (path: string): string => {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
};

/** Work trees elsewhere that use the same repository. */
export const otherWorktrees = ({ directory }: Repository): string[] => {
  try {
    return readdirSync(join(directory, "worktrees")).map((name) => {
      const file = readFileSync(join(directory, "worktrees", name, "gitdir"), "latin1").trim();
      return file.replace(/\/\.git$/, "");
    });
  } catch {
    return [];
  }
};

/** Those of these commits that the repository has. */
export const existing = async (repository: Repository, commits: readonly string[]): Promise<string[]> => {
  if (commits.length === 0) return [];
  const lines = await repository.lines(["cat-file", "--batch-check"], `${commits.join("\n")}\n`);
  return commits.filter((commit, at) => lines[at]?.startsWith(`${commit} commit `) === true);
};
