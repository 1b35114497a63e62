/* oxlint-disable no-await-in-loop -- one git runs at a time */
/** Which commits a repository has that were not pushed, by ref. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ListedCommits } from "../../../src/domain/save/listing.ts";
import type { Left } from "../left.ts";
import { GitFailure, type Repository } from "../repository.ts";
import type { Status } from "./status.ts";

/** The largest history of a nested repository, bytes. */
const HISTORY_BYTES = 100 * 1024 * 1024;

export interface Tip {
  readonly ref: string;
  readonly commit: string;
}

interface Wanted {
  readonly tips: readonly Tip[];
  /** Commits that are elsewhere, with what they reach. */
  readonly without: readonly string[];
  /** The repository's path in the workspace. */
  readonly path: string;
  readonly left: Left;
}

/** HEAD, if it names no branch. */
export const headTip = (status: Pick<Status, "head"> | null): readonly Tip[] => {
  const { ref = null, commit = null } = status?.head ?? {};
  return commit === null || ref !== null ? [] : [{ ref: "HEAD", commit }];
};

/** Branches and stashes. */
export const localTips = async (repository: Repository): Promise<Tip[]> => {
  const refs = await repository.lines([
    "for-each-ref",
    "--format=%(objectname) %(refname)",
    "refs/heads",
    "refs/stash",
  ]);
  return refs.flatMap((line) => {
    const [commit = "", ref = ""] = [line.slice(0, 40), line.slice(41)];
    return ref === "refs/stash" ? stashes(repository, commit) : [{ ref, commit }];
  });
};

/** The newest first, as `git stash list` has them. */
const stashes = ({ directory }: Repository, newest: string): Tip[] => {
  let log = "";
  try {
    log = readFileSync(join(directory, "logs/refs/stash"), "latin1");
  } catch {
    // Only the newest is known then.
  }
  const commits = [...log.matchAll(/^[0-9a-f]{40} ([0-9a-f]{40}) /gm)].map(([, commit = ""]) => commit);
  if (commits.at(-1) !== newest) commits.push(newest);
  return commits.toReversed().map((commit, at) => ({ ref: `refs/stash/${at}`, commit }));
};

type Parents = ReadonlyMap<string, readonly string[]>;

const notThese = (without: readonly string[]): string[] =>
  without.length === 0 ? [] : ["--not", ...without];

/** The commits that these tips reach and `without` does not, with their parents. */
const missing = async (
  repository: Repository,
  tips: readonly Tip[],
  without: readonly string[],
): Promise<Parents> => {
  const commits = [...new Set(tips.map(({ commit }) => commit))];
  if (commits.every((commit) => without.includes(commit))) return new Map();
  const lines = await repository.lines(["rev-list", "--parents", ...commits, ...notThese(without)]);
  return new Map(
    lines.map((line) => {
      const [commit = "", ...parents] = line.split(" ");
      return [commit, parents];
    }),
  );
};

const reachedFrom = (commit: string, parents: Parents): ReadonlySet<string> => {
  const commits = new Set<string>();
  const waiting = [commit];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const before = parents.get(next);
    if (before === undefined || commits.has(next)) continue;
    commits.add(next);
    waiting.push(...before);
  }
  return commits;
};

/** Names for each tip another one that has its commits. The first of several with the same commit has them itself. */
export const withWithin = (
  tips: readonly Tip[],
  parents: Parents,
): readonly (Tip & { readonly within: string | null })[] => {
  const reachByTip = new Map(
    [...new Set(tips.map(({ commit }) => commit))].map((commit) => [commit, reachedFrom(commit, parents)]),
  );
  return tips.map((tip, at) => {
    const other = tips.find(({ commit }, place) =>
      commit === tip.commit ? place < at : reachByTip.get(commit)?.has(tip.commit) === true,
    );
    return { ...tip, within: other?.ref ?? null };
  });
};

/** Tips that git can walk. Another one is left out, and the rest stays. */
const walkable = async (
  repository: Repository,
  { tips, without, path, left }: Wanted,
): Promise<{ readonly tips: readonly Tip[]; readonly parents: Parents }> => {
  try {
    return { tips, parents: await missing(repository, tips, without) };
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error;
  }
  const good: Tip[] = [];
  const parents = new Map<string, readonly string[]>();
  for (const tip of tips) {
    try {
      for (const [commit, before] of await missing(repository, [tip], without)) parents.set(commit, before);
      good.push(tip);
    } catch {
      left.name(path === "" ? tip.ref : `${path}: ${tip.ref}`, "broken_history");
    }
  }
  return { tips: good, parents };
};

const historySize = async (repository: Repository, commit: string, without: readonly string[]) => {
  const args = ["rev-list", "--objects", "--disk-usage", commit, ...notThese(without)];
  const [line = ""] = await repository.lines(args);
  return Number(line);
};

/** The refs whose commits are not elsewhere. */
export const listCommits = async (repository: Repository, request: Wanted): Promise<ListedCommits[]> => {
  const { path, without, left } = request;
  const walk = await walkable(repository, request);
  const unpushedTips = walk.tips.filter(({ commit }) => walk.parents.has(commit));
  const commits: ListedCommits[] = [];
  for (const { ref, commit, within } of withWithin(unpushedTips, walk.parents)) {
    try {
      const size = within === null ? await historySize(repository, commit, without) : 0;
      commits.push({ repository: path, ref, commit, within, size });
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error;
      left.name(path === "" ? ref : `${path}: ${ref}`, "broken_history");
    }
  }
  if (path === "" || commits.reduce((sum, { size }) => sum + size, 0) <= HISTORY_BYTES) return commits;
  left.name(path, "too_large_history");
  return [];
};
