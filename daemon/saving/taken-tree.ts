/**
 * Stores one work tree in a draft: its files, its index, and git's own files of an operation in progress, each as a
 * tree. Indexes are copied, and the agent's stay unchanged.
 */
import * as Effect from "effect/Effect";
import { SaveFailure, type Draft, type DraftScript } from "./draft.ts";
import type { Skipped, SkipReason } from "./skipped.ts";
import {
  LARGE_BYTES,
  LIST_SCRIPT,
  readDifferences,
  readIndex,
  readWorkTree,
  restoration,
  sections,
  type Difference,
  type IndexListing,
  type WorkTree,
} from "./work-tree.ts";

export interface TakenTree extends Pick<IndexListing, "head" | "headRef" | "branch"> {
  /** The tree of the files. */
  readonly files: string;
  /** Whether the files are exactly those of HEAD. */
  readonly isClean: boolean;
  /** The tree of the index, without paths in conflict. Null if it equals HEAD or the files. */
  readonly index: string | null;
  /** Trees of the paths in conflict, by stage. */
  readonly conflicts: readonly (readonly [stage: string, tree: string])[];
  /** Git's own files of an operation in progress, and the commits that they name. Null without an operation. */
  readonly operation: { readonly tree: string; readonly commits: readonly string[] } | null;
}

export interface TreePlace {
  /** The root of the work tree. */
  readonly directory: string;
  /** The name of its indexes in the draft. */
  readonly number: number;
  readonly skipped: Skipped;
}

export const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** Names of a repository's parts in the list of skipped ones. */
export const INDEX = ".git/index";
export const OPERATION = ".git (the operation in progress)";

/** How many attempts to store files if some of them cannot be read. */
const MAX_ADDS = 100;

/**
 * $1 directory for indexes, $2 session branch. Prints HEAD, session branch and HEAD's ref, an empty record, and the
 * index. The copy keeps the index's time, because git checks the content of files that changed in the second in which
 * the index was written.
 */
const OPEN_SCRIPT = `
mkdir "$1"
index=$(git rev-parse --path-format=absolute --git-path index)
for copy in index staged; do
  [ ! -f "$index" ] || { cp "$index" "$1/$copy"; touch -r "$index" "$1/$copy"; }
done
export GIT_INDEX_FILE="$1/index"
git update-index -q --really-refresh > /dev/null || :
printf '%s\\0' "$(git rev-parse --quiet --verify "HEAD^{commit}" || echo none)"
printf '%s\\0' "$(git rev-parse --quiet --verify "refs/heads/$2^{commit}" || echo none)"
printf '%s\\0\\0' "$(git symbolic-ref --quiet HEAD || echo none)"
git ls-files -z -s -t
`;

/** $1 HEAD, $2 the staged index. Prints the trees of files and HEAD, an empty record, and the staged entries. */
const WRITE_SCRIPT = `
files=$(git write-tree)
before=$(git rev-parse "$1^{tree}")
printf '%s\\0%s\\0\\0' "$files" "$before"
[ ! -f "$2" ] || GIT_INDEX_FILE="$2" git diff-index --cached --raw -z --no-renames --abbrev=40 "$1"
`;

/**
 * $1 draft, $2 an index for it. Prints the tree of git's own files and the names of those that are too large. After an
 * empty record it prints the commits that the files name. FETCH_HEAD is not part of an operation.
 */
const OPERATION_SCRIPT = `
directory=$(git rev-parse --absolute-git-dir)
cd "$directory"
found=
for name in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD SQUASH_MSG BISECT_LOG rebase-merge rebase-apply sequencer; do
  [ ! -e "$name" ] || found=yes
done
[ -n "$found" ] || exit 0
files() {
  find . -maxdepth 1 -type f "$@" \\( -name HEAD -o -name '*_HEAD' -o -name 'MERGE_*' -o -name 'BISECT_*' \\
    -o -name AUTO_MERGE -o -name SQUASH_MSG \\) ! -name FETCH_HEAD -printf '%P\\0'
  for name in rebase-merge rebase-apply sequencer; do
    [ ! -d "$name" ] || find "$name" -type f "$@" -print0
  done
}
tree=$(
  unset GIT_OBJECT_DIRECTORY
  export GIT_DIR="$1/git" GIT_WORK_TREE="$directory" GIT_INDEX_FILE="$2" GIT_CONFIG_GLOBAL=/dev/null
  files -readable ! -size +${LARGE_BYTES}c | git -c core.autocrlf=false update-index -z --add --stdin
  git write-tree
)
printf '%s\\0' "$tree"
files -size +${LARGE_BYTES}c
printf '\\0'
files -readable ! -size +${LARGE_BYTES}c | xargs -0 -r grep -ahoE '[0-9a-f]{40}' | sort -u | tr '\\n' '\\0'
`;

/** Stores a work tree in the draft. */
export const takeTree = (draft: Draft, place: TreePlace): Effect.Effect<TakenTree, SaveFailure> =>
  new Taking(draft, place).run;

class Taking {
  readonly #draft: Draft;
  readonly #place: TreePlace;
  readonly #indexes: string;
  #adds = 0;

  constructor(draft: Draft, place: TreePlace) {
    this.#draft = draft;
    this.#place = place;
    this.#indexes = `${draft.directory}/${place.number}`;
  }

  get run(): Effect.Effect<TakenTree, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const listing = readIndex(yield* this.#inTree(this.#opening));
      const { head, headRef, branch, hidden } = listing;
      if (hidden.length > 0) yield* this.#updateIndex("--no-skip-worktree", hidden);
      const tree = readWorkTree(yield* this.#onIndex({ name: "list", script: LIST_SCRIPT }), { hidden });
      for (const [path, reason] of tree.skipped) this.#place.skipped.add(path, reason);
      yield* this.#takeIn(tree);
      yield* this.#restore(tree, head);
      const parameters = [head ?? EMPTY_TREE, `${this.#indexes}/staged`];
      const written = yield* this.#onIndex({ name: "write", script: WRITE_SCRIPT, parameters });
      const [[files = "", before = ""] = [], ...differing] = sections(written);
      const staged = readDifferences(differing.flat());
      const stage = staged.length === 0 ? Effect.succeed(null) : this.#stage(staged, listing);
      const index = yield* this.#orLeftOut(stage, INDEX);
      return {
        head,
        headRef,
        branch,
        files,
        isClean: files === before,
        index: listing.unmerged.length === 0 && (index === before || index === files) ? null : index,
        conflicts: (yield* this.#orLeftOut(this.#conflicts(listing), INDEX)) ?? [],
        operation: yield* this.#orLeftOut(this.#operation, OPERATION),
      };
    });
  }

  /** If one of the other parts cannot be read, only that part is left out. */
  #orLeftOut<A>(part: Effect.Effect<A, SaveFailure>, name: string): Effect.Effect<A | null> {
    return Effect.catch(part, () =>
      Effect.sync(() => {
        this.#place.skipped.add(name, "unreadable");
        return null;
      }),
    );
  }

  /** Adds every change of the work tree to the index of the files. */
  #takeIn({ removed, added }: WorkTree): Effect.Effect<void, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      if (removed.length > 0) yield* this.#updateIndex("--force-remove", removed);
      yield* this.#add(added);
    });
  }

  /** Splits paths that cannot be stored together, until it finds the single files that cannot be stored. */
  #add(paths: readonly string[]): Effect.Effect<void, SaveFailure> {
    if (paths.length === 0) return Effect.void;
    return Effect.gen({ self: this }, function* () {
      this.#adds += 1;
      if (this.#adds > MAX_ADDS) return yield* new SaveFailure({ message: "too many files cannot be read" });
      const { directory, skipped } = this.#place;
      const adding = this.#withIndex("index", indexUpdate("--add --remove --replace", paths));
      const { code } = yield* this.#draft.tryInTree(directory, adding);
      if (code === 0) return;
      const [first] = paths;
      if (paths.length === 1 && first !== undefined) return skipped.add(first, "unreadable");
      const half = Math.ceil(paths.length / 2);
      yield* this.#add(paths.slice(0, half));
      yield* this.#add(paths.slice(half));
    });
  }

  /** A file that is not stored gets HEAD's version, even if the agent had staged another. */
  #restore({ left }: WorkTree, head: string | null): Effect.Effect<void, SaveFailure> {
    if (left.size === 0) return Effect.void;
    const script = 'git diff-index --cached --raw -z --no-renames --abbrev=40 "$1"';
    return Effect.gen({ self: this }, function* () {
      const parameters = [head ?? EMPTY_TREE];
      const differing = yield* this.#onIndex({ name: "compare", script, parameters });
      const { paths, input } = restoration(readDifferences(recordsOf(differing)), left);
      if (paths.length === 0) return;
      for (const path of paths) this.#place.skipped.add(path, left.get(path) ?? "unreadable");
      yield* this.#onIndex({ name: "restore", script: "git update-index -z --index-info", input });
    });
  }

  /** The index as a tree. Large files in it are left out. Paths in conflict have trees of their own. */
  #stage(staged: readonly Difference[], { unmerged }: IndexListing): Effect.Effect<string, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const left = yield* this.#unstorable(staged.map(({ path, after }) => ({ path, ...after })));
      const { input } = restoration(staged, left);
      const removals = [...new Set(unmerged.map(({ path }) => path))].map(
        (path) => `0 ${NO_OBJECT} 0\t${path}\0`,
      );
      const script = { name: "stage", script: "git update-index -z --index-info\ngit write-tree" };
      const whole = Buffer.concat([input, Buffer.from(removals.join(""), "latin1")]);
      return (yield* this.#inTree(this.#withIndex("staged", { ...script, input: whole }))).toString().trim();
    });
  }

  #conflicts({ unmerged }: IndexListing): Effect.Effect<TakenTree["conflicts"], SaveFailure> {
    if (unmerged.length === 0) return Effect.succeed([]);
    return Effect.gen({ self: this }, function* () {
      const left = yield* this.#unstorable(unmerged);
      const trees: (readonly [string, string])[] = [];
      for (const stage of ["1", "2", "3"]) {
        const lines = unmerged
          .filter((entry) => entry.stage === stage && !left.has(entry.path))
          .map(({ mode, object, path }) => `${mode} ${object} 0\t${path}\0`);
        if (lines.length === 0) continue;
        const script = { name: "conflict", script: "git update-index -z --index-info\ngit write-tree" };
        const input = Buffer.from(lines.join(""), "latin1");
        const tree = yield* this.#inTree(this.#withIndex(`conflicts-${stage}`, { ...script, input }));
        trees.push([stage, tree.toString().trim()]);
      }
      return trees;
    });
  }

  /** Entries of an index whose content is too large or missing. They are listed as skipped. */
  #unstorable(
    entries: readonly { readonly mode: string; readonly object: string; readonly path: string }[],
  ): Effect.Effect<ReadonlyMap<string, SkipReason>, SaveFailure> {
    const files = entries.filter(({ mode, object }) => /^1[02]/.test(mode) && object !== NO_OBJECT);
    return Effect.gen({ self: this }, function* () {
      const input = Buffer.from(files.map(({ object }) => `${object}\n`).join(""));
      const script = 'git cat-file --batch-check="%(objecttype) %(objectsize)"';
      const sizes = (yield* this.#inTree({ name: "sizes", script, input })).toString("latin1").split("\n");
      const left = new Map<string, SkipReason>();
      for (const [at, { path }] of files.entries()) {
        const [, size] = /^blob (\d+)$/.exec(sizes[at] ?? "") ?? [];
        if (size === undefined) left.set(path, "unreadable");
        else if (Number(size) > LARGE_BYTES) left.set(path, "too_large");
      }
      for (const [path, reason] of left) this.#place.skipped.add(path, reason);
      return left;
    });
  }

  get #operation(): Effect.Effect<TakenTree["operation"], SaveFailure> {
    const parameters = [this.#draft.directory, `${this.#indexes}/operation`];
    const script = { name: "operation", script: OPERATION_SCRIPT, parameters };
    return Effect.map(this.#inTree(script), (printed) => {
      const [[tree, ...large] = [], commits = []] = sections(printed);
      if (tree === undefined) return null;
      for (const name of large) this.#place.skipped.add(`.git/${name}`, "too_large");
      return { tree, commits };
    });
  }

  #updateIndex(options: string, paths: readonly string[]): Effect.Effect<void, SaveFailure> {
    return Effect.asVoid(this.#onIndex(indexUpdate(options, paths)));
  }

  #onIndex(script: DraftScript): Effect.Effect<Buffer, SaveFailure> {
    return this.#inTree(this.#withIndex("index", script));
  }

  #withIndex(name: string, script: DraftScript): DraftScript {
    return { ...script, env: { ...script.env, GIT_INDEX_FILE: `${this.#indexes}/${name}` } };
  }

  #inTree(script: DraftScript): Effect.Effect<Buffer, SaveFailure> {
    return this.#draft.inTree(this.#place.directory, script);
  }

  get #opening(): DraftScript {
    const parameters = [this.#indexes, this.#draft.settings.branch];
    return { name: "open", script: OPEN_SCRIPT, parameters };
  }
}

const NO_OBJECT = "0".repeat(40);

const recordsOf = (output: Buffer): string[] => output.toString("latin1").split("\0");

const indexUpdate = (options: string, paths: readonly string[]): DraftScript => ({
  name: "index",
  script: `git update-index -z ${options} --stdin`,
  input: Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1"),
});
