/** The content of the workspace's git other than HEAD and the files: branches, tags, stashes, other worktrees. */
import * as Effect from "effect/Effect";
import type { Draft, SaveFailure } from "./draft.ts";

/** A name that leads to an object. Names are bytes, held as latin1 text. */
export interface LocalRef {
  /** The name that people use. */
  readonly name: string;
  /** The name in the saved list. */
  readonly ref: string;
  readonly object: string;
}

export interface OtherWorktree {
  readonly path: string;
  /** The commit of its HEAD. Null: it has none. */
  readonly head: string | null;
  readonly isDetached: boolean;
  readonly isBare: boolean;
}

const hasFiles = ({ isBare }: OtherWorktree): boolean => !isBare;

export interface LocalRefs {
  /** Stashes first, oldest first, then the others by name. */
  readonly refs: readonly LocalRef[];
  /** Refs of remotes other than the platform's, by the remote's name. */
  readonly foreign: ReadonlyMap<string, readonly string[]>;
  readonly worktrees: readonly OtherWorktree[];
}

/**
 * Lists refs, stashes from the newest on, whether the workspace is the repository's main work tree, and all worktrees,
 * the main one first. For git, the main one is the directory of the repository, which need not be the workspace.
 */
const SCRIPT = `
git for-each-ref --format='%(objectname) %(refname)'
printf '\\0'
git rev-list --walk-reflogs refs/stash -- 2> /dev/null || :
printf '\\0'
common=$(git rev-parse --path-format=absolute --git-common-dir)
[ "$(git rev-parse --absolute-git-dir)" = "$common" ] && printf 'main\\0' || printf 'linked\\0'
git worktree list --porcelain -z
`;

/** The refs and worktrees of the agent's repository. */
export const listLocalRefs = (draft: Draft): Effect.Effect<LocalRefs, SaveFailure> => {
  const { workspace } = draft.settings.layout;
  return Effect.map(draft.inTree(workspace, { name: "refs", script: SCRIPT }), (printed) => {
    const [refs = "", stashes = "", kind, ...records] = printed.toString("latin1").split("\0");
    const worktrees = readWorktrees(records);
    const isOther = ({ path }: OtherWorktree, at: number): boolean =>
      kind === "main" ? at > 0 : path !== workspace;
    return { ...readRefs(refs, stashes), worktrees: worktrees.filter(isOther).filter(hasFiles) };
  });
};

const readRefs = (listing: string, stashes: string): Pick<LocalRefs, "refs" | "foreign"> => {
  const refs: LocalRef[] = [];
  const foreign = new Map<string, string[]>();
  let newestStash: string | null = null;
  for (const line of listing.split("\n")) {
    const [, object, ref] = /^([0-9a-f]{40}) (refs\/.+)$/.exec(line) ?? [];
    if (object === undefined || ref === undefined) continue;
    const [, remote] = /^refs\/remotes\/([^/]+)/.exec(ref) ?? [];
    if (ref === "refs/stash") newestStash = object;
    else if (remote === undefined) refs.push({ name: ref, ref, object });
    else if (remote !== "origin") foreign.set(remote, [...(foreign.get(remote) ?? []), object]);
  }
  return { refs: [...readStashes(stashes, newestStash), ...refs], foreign };
};

/** Without a log of earlier stashes, there is only one. */
const readStashes = (listing: string, newest: string | null): LocalRef[] => {
  const logged = listing.split("\n").filter((line) => /^[0-9a-f]{40}$/.test(line));
  const stashes = logged.length > 0 || newest === null ? logged : [newest];
  return stashes
    .map((object, at) => ({ name: `stash@{${at}}`, ref: `refs/stash/${at}`, object }))
    .toReversed();
};

/** Records of attributes, with an empty one after each worktree. */
const readWorktrees = (records: readonly string[]): OtherWorktree[] => {
  const worktrees: OtherWorktree[] = [];
  let attributes: string[] = [];
  for (const record of records) {
    if (record !== "") {
      attributes.push(record);
      continue;
    }
    const valueOf = (name: string): string | undefined =>
      attributes.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
    const [path, head] = [valueOf("worktree"), valueOf("HEAD")];
    if (path !== undefined)
      worktrees.push({
        path,
        head: head === undefined || /^0+$/.test(head) ? null : head,
        isDetached: attributes.includes("detached"),
        isBare: attributes.includes("bare"),
      });
    attributes = [];
  }
  return worktrees;
};
