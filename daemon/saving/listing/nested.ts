/* oxlint-disable no-await-in-loop -- one git runs at a time */
/** Repositories inside the workspace: they are saved whole, because they are not on the session's branch. */
import type { ListedCommits } from "../../../src/domain/save/listing.ts";
import { headTip, listCommits, localTips } from "./commits.ts";
import { below } from "../content.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Left } from "../left.ts";
import { workTreeStatus } from "./queries.ts";
import { gitDirectory, GitFailure, Repository } from "../repository.ts";
import type { Status } from "./status.ts";

/** Deeper ones are not looked at. */
const DEPTH_MAX = 5;

export interface Nested {
  /** Its path in the workspace. */
  readonly repository: string;
  /** Null if it is another work tree of a repository, of which only the files count. */
  readonly head: Status["head"] | null;
  /** Paths from the workspace on. */
  readonly files: readonly string[];
  readonly commits: readonly ListedCommits[];
}

interface Search {
  readonly workspace: string;
  readonly places: readonly string[];
  /** Places of submodules. `isChanged`: it has another commit than the workspace's index names. */
  readonly links: readonly { readonly path: string; readonly isChanged: boolean }[];
  readonly left: Left;
}

export const nestedRepositories = async ({ workspace, places, links, left }: Search): Promise<Nested[]> => {
  const repositories: Nested[] = [];
  const look = async (path: string, isUnchangedLink: boolean, depth: number): Promise<void> => {
    const tree = join(workspace, Buffer.from(path, "latin1").toString());
    const directory = gitDirectory(tree);
    if (directory === null || depth > DEPTH_MAX) return;
    const repository = new Repository(tree, directory);
    try {
      const status = await workTreeStatus(repository, left);
      if (isUnchangedLink && (await isClone(repository, status))) return;
      const files = await listFiles(repository, status);
      const isWorktree = existsSync(join(directory, "commondir"));
      repositories.push({
        repository: path,
        head: isWorktree ? null : status.head,
        files: files.filter((file) => !file.endsWith("/")).map((file) => below(path, file)),
        commits: isWorktree ? [] : await ownCommits(repository, status, { path, left }),
      });
      for (const file of files)
        if (file.endsWith("/")) await look(below(path, file.slice(0, -1)), false, depth + 1);
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error;
      left.name(path, "broken_repository");
    }
  };
  for (const { path, isChanged } of links) await look(path, !isChanged, 1);
  const linkPaths = new Set(links.map(({ path }) => path));
  for (const path of places) if (!linkPaths.has(path)) await look(path, false, 1);
  return repositories;
};

/** Whether another repository has all of it. */
const isClone = async (repository: Repository, { changes, untracked }: Status): Promise<boolean> => {
  if (changes.length > 0 || untracked.length > 0) return false;
  const own = ["rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stash", "--not", "--remotes"];
  const { code, stdout } = await repository.run(own);
  return code === 0 && stdout.length === 0;
};

const listFiles = async (repository: Repository, { untracked }: Status): Promise<string[]> => [
  ...(await repository.records(["ls-files", "-z"])),
  ...untracked,
];

const ownCommits = async (
  repository: Repository,
  status: Status,
  { path, left }: { readonly path: string; readonly left: Left },
): Promise<readonly ListedCommits[]> => {
  if (existsSync(join(repository.directory, "shallow"))) {
    left.name(path, "shallow_history");
    return [];
  }
  const tips = [...headTip(status), ...(await localTips(repository))];
  return listCommits(repository, { tips, without: [], path, left });
};
