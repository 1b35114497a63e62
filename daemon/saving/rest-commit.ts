/**
 * Writes the rest of a save (rest.ts) as one commit: other commits become its parents, trees and files become entries
 * of its tree. The same contents make the same commit, because its author and date are fixed.
 */
import * as Effect from "effect/Effect";
import type { Draft, SaveFailure } from "./draft.ts";
import type { LocalRef } from "./local-refs.ts";
import { restReadme } from "./rest-readme.ts";

/** The contents of the rest. */
export interface Contents {
  readonly refs: readonly LocalRef[];
  readonly parents: readonly string[];
  /** Objects that no commit leads to, and the tags that lead to them. */
  readonly tags: readonly string[];
  readonly entries: readonly TreeEntry[];
  /** Lines of number and path. */
  readonly worktrees: readonly string[];
}

export interface TreeEntry {
  readonly name: string;
  readonly type: "tree" | "blob";
  readonly object: string;
}

/** @returns the commit. */
export const writeRest = (draft: Draft, contents: Contents): Effect.Effect<string, SaveFailure> => {
  const { branch } = draft.settings;
  const { refs, parents, tags, entries, worktrees } = contents;
  const listed = entries.map(({ name, type, object }) => `${MODES[type]} ${type} ${object}\t${name}\n`);
  const has = (name: string): boolean => entries.some((entry) => entry.name.startsWith(name));
  const readme = restReadme(branch, {
    refs: refs.some(({ ref }) => !ref.startsWith("refs/stash/")),
    stashes: refs.some(({ ref }) => ref.startsWith("refs/stash/")),
    index: has("index"),
    conflicts: has("conflicts-"),
    operation: has("state"),
    worktrees: worktrees.length > 0,
  });
  const script = {
    name: "rest",
    script: WRITE_SCRIPT,
    parameters: [
      draft.directory,
      branch,
      readme,
      worktrees.map((line) => `${Buffer.from(line, "latin1").toString()}\n`).join(""),
      listed.join(""),
      tags.join(" "),
      parents.join(" "),
    ],
    input: Buffer.from(refs.map(({ ref, object }) => `${object} ${ref}\n`).join(""), "latin1"),
    env: FIXED_IDENTITY,
  };
  return Effect.map(draft.inDraft(script), (commit) => commit.toString().trim());
};

const MODES = { tree: "040000", blob: "100644" } as const;

const FIXED_IDENTITY: Readonly<Record<string, string>> = Object.fromEntries(
  ["AUTHOR", "COMMITTER"].flatMap((who) => [
    [`GIT_${who}_NAME`, "platform"],
    [`GIT_${who}_EMAIL`, "save@platform.internal"],
    [`GIT_${who}_DATE`, "@0 +0000"],
  ]),
);

/**
 * $1 draft, $2 session, $3 README, $4 worktrees, $5 entries, $6 tags, $7 parents. The refs come on standard input. A
 * tag that cannot be a tree entry becomes a file with its contents, from which git can create it again.
 */
const WRITE_SCRIPT = `
set -e
blob() {
  object=$(git hash-object -w --stdin)
  printf '100644 blob %s\\t%s\\n' "$object" "$1"
}
tag() {
  git cat-file tag "$1" > "$draft/tag"
  blob "tag-$1" < "$draft/tag"
  case $(sed -n 2p "$draft/tag") in "type tag") tag "$(sed -n '1s/^object //p' "$draft/tag")" ;; esac
}
draft=$1
{
  blob refs
  printf '%s' "$3" | blob README
  [ -z "$4" ] || printf '%s' "$4" | blob worktrees
  printf '%s' "$5"
  for object in $6; do tag "$object"; done
} > "$draft/entries"
tree=$(sort -u "$draft/entries" | git mktree)
session=$2 parents=$7
set --
for parent in $parents; do set -- "$@" -p "$parent"; done
git commit-tree "$tree" "$@" -m "The rest of session $session: see the file README"
`;
