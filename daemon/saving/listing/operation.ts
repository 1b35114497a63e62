/** The state files of an operation under way in a repository, such as a merge or a rebase. */
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tip } from "./commits.ts";
import { existing } from "./queries.ts";
import type { Repository } from "../repository.ts";

/** Files and directories that exist only while an operation is under way. */
const STATE =
  /^(?:MERGE_[A-Z_]+|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD|SQUASH_MSG|BISECT_[A-Z_]+|rebase-merge|rebase-apply|sequencer)$/;
/** It names where the operation began, and stays when it is over. */
const ORIGIN = "ORIG_HEAD";
/** Larger files name no commits. */
const STATE_BYTES = 1024 * 1024;

/** Whether a path of git's directory may be a state file. */
export const isStatePath = (path: string): boolean => {
  const [first = "", ...rest] = path.split("/");
  if (first === ORIGIN) return rest.length === 0;
  return STATE.test(first) && rest.every((name) => name !== "" && name !== "." && name !== "..");
};

const filesBelow = (directory: string, path: string): string[] => {
  const whole = Buffer.from(join(directory, path), "latin1");
  const stats = lstatSync(whole, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return [path];
  if (stats?.isDirectory() !== true) return [];
  return readdirSync(whole, "latin1").flatMap((name) => filesBelow(directory, `${path}/${name}`));
};

/** Paths of the files, from git's directory on. */
export const stateFiles = ({ directory }: Repository): string[] => {
  const files = readdirSync(directory, "latin1")
    .filter((name) => STATE.test(name))
    .toSorted()
    .flatMap((name) => filesBelow(directory, name));
  return files.length === 0 ? [] : [...files, ...filesBelow(directory, ORIGIN)];
};

/** The commits that the files name, as refs. */
export const stateTips = async (repository: Repository, files: readonly string[]): Promise<Tip[]> => {
  const refs = files.flatMap((path) => {
    const whole = join(repository.directory, path);
    if ((lstatSync(whole, { throwIfNoEntry: false })?.size ?? Infinity) > STATE_BYTES) return [];
    const commits = [...readFileSync(whole, "latin1").matchAll(/\b[0-9a-f]{40}\b/g)].map(
      ([commit]) => commit,
    );
    return [...new Set(commits)].map((commit, at) => ({
      ref: at === 0 ? `state/${path}` : `state/${path}/${at}`,
      commit,
    }));
  });
  const there = new Set(await existing(repository, [...new Set(refs.map(({ commit }) => commit))]));
  return refs.filter(({ commit }) => there.has(commit));
};
