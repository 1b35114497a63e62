/** What a hosted repository holds, asked of git itself. */
import { git, gitOk } from "../git/git-client.ts";

export interface Refs {
  readonly directory: string;
  /** Commits by full ref name. */
  readonly tips: ReadonlyMap<string, string>;
}

export const readRefs = async (directory: string): Promise<Refs> => {
  const listing = await gitOk(directory, "for-each-ref", "--format=%(refname) %(objectname)");
  const tips = listing
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "))
    .map(([name = "", commit = ""]) => [name, commit] as const);
  return { directory, tips: new Map(tips) };
};

/** Whether `commit` is `tip` or before it. */
export const isWithin = async (refs: Refs, commit: string, tip: string): Promise<boolean> =>
  commit === tip || (await git(refs.directory, "merge-base", "--is-ancestor", commit, tip)).code === 0;

interface Commit {
  readonly commit: string;
  readonly parents: readonly string[];
}

interface Commit {
  readonly commit: string;
  readonly parents: readonly string[];
}

/** The commits that came to a branch from one tip to another, without those that `heads` brought, and their parents. */
export const ownCommits = async (
  refs: Refs,
  range: { readonly from: string; readonly to: string; readonly heads: readonly string[] },
): Promise<readonly Commit[]> => {
  const without = [range.from, ...range.heads].map((commit) => `^${commit}`);
  const listing = await gitOk(refs.directory, "rev-list", "--parents", range.to, ...without);
  return listing
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "))
    .map(([commit = "", ...parents]) => ({ commit, parents }));
};
