/* oxlint-disable no-await-in-loop -- one git runs at a time */
/** A repository outside the workspace, for commits that the workspace's own does not have. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { existing } from "./listing/queries.ts";
import { Repository } from "./repository.ts";

const PLACES = [tmpdir(), "/dev/shm"];

/** Git's connection has no traffic for at most this long: agent-git.ts. */
const FETCH = [
  "fetch",
  "--quiet",
  "--no-tags",
  "--no-write-fetch-head",
  "--no-recurse-submodules",
  "--no-auto-maintenance",
];

export class Scratch {
  readonly #tree: string;
  #repository: Repository | null = null;

  /** @param tree the work tree with which its commits are compared */
  constructor(tree: string) {
    this.#tree = tree;
  }

  /** An empty repository. @throws if there is no room for one */
  async open(): Promise<Repository> {
    if (this.#repository !== null) return this.#repository;
    let failure: unknown;
    for (const place of PLACES) {
      try {
        const directory = mkdtempSync(join(place, "pushed-"));
        const repository = new Repository(this.#tree, join(directory, ".git"));
        this.#repository = repository;
        await repository.read(["init", "--quiet", "--template="]);
        return repository;
      } catch (error) {
        failure = error;
        this.remove();
      }
    }
    throw failure;
  }

  /**
   * Fetches a pushed commit.
   *
   * @param like a repository that has an older commit of the same history. Null if only the commit itself is fetched
   */
  async fetch(
    commit: string,
    { repoUrl, branch }: { readonly repoUrl: string; readonly branch: string },
    like: Repository | null,
  ): Promise<boolean> {
    const repository = await this.open();
    if (like !== null) repository.borrow(like);
    const depth = like === null ? ["--depth=1"] : [];
    for (const ref of [commit, `refs/heads/${branch}`]) {
      await repository.run([...FETCH, ...depth, repoUrl, ref]);
      if ((await existing(repository, [commit])).length > 0) return true;
    }
    return false;
  }

  remove(): void {
    if (this.#repository === null) return;
    rmSync(join(this.#repository.directory, ".."), { recursive: true, force: true });
    this.#repository = null;
  }
}
