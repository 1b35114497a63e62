/**
 * Saves what the workspace holds and the remote does not as one commit on refs/wip/<session> (api.md 3 "Saving", 7).
 *
 *  V1 The agent's index, HEAD, branches, objects and files stay as they are: index and objects are a draft's, in a
 *     directory of its own, over the agent's objects as alternates. The way to the remote is the draft's own too, so that
 *     nothing the agent wrote into `.git/config` redirects it.
 *  V2 The commit's tree is the work tree; its parents are HEAD, the session branch where it holds more, and the former
 *     wip commit. The same work saved twice is one commit.
 *  V3 What is not stored is named, with the reason.
 *  V4 It always answers: what fails is said, and what hangs is ended.
 */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { cutText, storableText } from "../src/domain/text.ts";
import { agentScript, lastWords, type AgentScript } from "./agent-git.ts";
import { runForBytes, type FinishedBytes } from "./process.ts";
import type { Settings } from "./settings.ts";
import {
  LIST_SCRIPT,
  readIndex,
  readWorkTree,
  restoration,
  type SkipReason,
  type WorkTree,
} from "./work-tree.ts";

/** Answer of `POST /platform/save`; `wip` is null where there was nothing to save. */
export interface Saved {
  readonly wip: string | null;
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly error: string | null;
}

class SaveFailure extends Schema.TaggedError<SaveFailure>()("SaveFailure", { message: Schema.String }) {}

const DEADLINE = "60 seconds";
/** How long the draft's removal may take afterwards. */
const REMOVAL_DEADLINE = "10 seconds";
/** Paths of one work tree that are read; beyond, the save fails rather than leave some out in silence. */
const MAX_LIST_BYTES = 64 * 1024 * 1024;
/** Skipped paths that are named, and how much of each. */
const MAX_SKIPPED = 200;
const MAX_PATH_LENGTH = 512;
/** Attempts to store files among which some cannot be read. */
const MAX_ADDS = 100;

const REASONS: Readonly<Record<SkipReason, string>> = {
  ignored: "ignored by git",
  too_large: "larger than 10 MiB",
  nested_repository: "a git repository of its own",
  unreadable: "cannot be read or stored",
  special: "neither a file nor a link",
};

/** $1 draft, $2 session branch. Prints the commits of HEAD and branch, an empty record, and the index. */
const OPEN_SCRIPT = `
set -e
mkdir -m 700 "$1"
objects=$(git rev-parse --path-format=absolute --git-path objects)
index=$(git rev-parse --path-format=absolute --git-path index)
GIT_CONFIG_GLOBAL=/dev/null git init --quiet --bare --template= "$1/git"
mkdir -p "$1/git/objects/info"
printf '%s\\n' "$objects" > "$1/git/objects/info/alternates"
[ ! -f "$index" ] || cp "$index" "$1/index"
export GIT_INDEX_FILE="$1/index"
git update-index -q --really-refresh > /dev/null || :
printf '%s\\0' "$(git rev-parse --quiet --verify "HEAD^{commit}" || echo none)"
printf '%s\\0\\0' "$(git rev-parse --quiet --verify "refs/heads/$2^{commit}" || echo none)"
git ls-files -z -s -t
`;

/**
 * $1 draft, $2 URL, $3 session, $4 HEAD or none, $5 session branch or none. Prints the wip commit, or nothing.
 * The pattern with \`*\` asks for a ref that need not be there.
 */
const CLOSE_SCRIPT = `
set -e
tree=$(GIT_OBJECT_DIRECTORY="$1/git/objects" GIT_INDEX_FILE="$1/index" git write-tree)
export GIT_DIR="$1/git" GIT_CONFIG_GLOBAL=/dev/null
git fetch --quiet --no-tags --no-write-fetch-head "$2" "+refs/heads/$3*:refs/got/tip*" "+refs/wip/$3*:refs/got/wip*"
tip=$(git rev-parse --quiet --verify refs/got/tip) || tip=
wip=$(git rev-parse --quiet --verify refs/got/wip) || wip=
within() { [ "$1" = none ] || { [ -n "$2" ] && git merge-base --is-ancestor "$1" "$2"; }; }
treeof() { if [ "$1" = none ]; then git hash-object -t tree /dev/null; else git rev-parse "$1^{tree}"; fi; }
if [ "$tree" = "$(treeof "$4")" ] && within "$4" "$tip" && within "$5" "$tip"; then exit 0; fi
if [ -n "$wip" ] && [ "$tree" = "$(treeof "$wip")" ] && within "$4" "$wip"; then
  if within "$5" "$wip" || within "$5" "$tip"; then printf '%s\\n' "$wip"; exit 0; fi
fi
saving=$3 draft=$2 head=$4 branch=$5
set --
[ "$head" = none ] || set -- "$@" -p "$head"
if ! within "$branch" "$head" && ! within "$branch" "$tip"; then set -- "$@" -p "$branch"; fi
[ -z "$wip" ] || set -- "$@" -p "$wip"
commit=$(git commit-tree "$tree" "$@" -m "Work in progress of session $saving")
git push --quiet --no-verify "$draft" "$commit:refs/wip/$saving"
printf '%s\\n' "$commit"
`;

/** Stores what there is to store. Never fails, and is over soon after its deadline. */
export const save = (settings: Settings): Effect.Effect<Saved> => {
  const draft = `${settings.launch.commonEnv["TMPDIR"] ?? "/tmp"}/platform-save-${randomUUID()}`;
  const saving = new Saving(settings, draft);
  return saving.run.pipe(
    Effect.timeoutOrElse({
      duration: DEADLINE,
      orElse: () => Effect.fail(new SaveFailure({ message: `it was not done within ${DEADLINE}` })),
    }),
    Effect.match({
      onSuccess: (wip) => ({ wip, skipped: saving.skipped, error: null }),
      onFailure: ({ message }) => ({ wip: null, skipped: saving.skipped, error: message }),
    }),
    Effect.ensuring(saving.removal),
  );
};

class Saving {
  readonly #settings: Settings;
  readonly #draft: string;
  readonly #skipped = new Map<string, SkipReason>();
  #adds = 0;

  constructor(settings: Settings, draft: string) {
    this.#settings = settings;
    this.#draft = draft;
  }

  get run(): Effect.Effect<string | null, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const { head, branch, hidden } = readIndex(yield* this.#output(this.#opening));
      if (hidden.length > 0) yield* this.#updateIndex("--no-skip-worktree", hidden);
      const tree = readWorkTree(yield* this.#output(this.#inDraft("list", LIST_SCRIPT)), { hidden });
      for (const [path, reason] of tree.skipped) this.#skipped.set(path, reason);
      yield* this.#takeIn(tree);
      yield* this.#restore(tree, head);
      const { repoUrl, branch: session } = this.#settings;
      const parameters = [this.#draft, repoUrl, session, head ?? "none", branch ?? "none"];
      const closing = { name: "save", script: CLOSE_SCRIPT, parameters, env: this.#identity };
      const wip = (yield* this.#output(closing)).toString("latin1").trim();
      return /^[0-9a-f]{40}$/.test(wip) ? wip : null;
    });
  }

  /** Those that matter most first; the last entry says how many there are beyond. */
  get skipped(): Saved["skipped"] {
    const named = [...this.#skipped]
      .toSorted(([, a], [, b]) => Number(a === "ignored") - Number(b === "ignored"))
      .slice(0, MAX_SKIPPED)
      .map(([path, reason]) => ({ path: textOf(path), reason: REASONS[reason] }));
    const rest = this.#skipped.size - named.length;
    return rest === 0 ? named : [...named, { path: "…", reason: `${rest} more were skipped` }];
  }

  /** The draft goes, however far it came. */
  get removal(): Effect.Effect<void> {
    const removal = { name: "save-removal", script: 'rm -rf -- "$1"', parameters: [this.#draft] };
    return Effect.ignore(Effect.timeoutOption(this.#finished(removal), REMOVAL_DEADLINE));
  }

  /** Every change of the work tree, into the draft's index. */
  #takeIn({ removed, added }: WorkTree): Effect.Effect<void, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      if (removed.length > 0) yield* this.#updateIndex("--force-remove", removed);
      yield* this.#add(added);
    });
  }

  /** Halves what cannot be stored together until the file stands alone that cannot be stored at all. */
  #add(paths: readonly string[]): Effect.Effect<void, SaveFailure> {
    if (paths.length === 0) return Effect.void;
    return Effect.gen({ self: this }, function* () {
      this.#adds += 1;
      if (this.#adds > MAX_ADDS) return yield* new SaveFailure({ message: "too many files cannot be read" });
      const { code } = yield* this.#finished(this.#indexUpdate("--add --remove --replace", paths));
      if (code === 0) return;
      const [first] = paths;
      if (paths.length === 1 && first !== undefined) return void this.#skipped.set(first, "unreadable");
      const half = Math.ceil(paths.length / 2);
      yield* this.#add(paths.slice(0, half));
      yield* this.#add(paths.slice(half));
    });
  }

  /** What is not stored is in the commit as HEAD has it, also where the agent had staged it. */
  #restore(tree: WorkTree, head: string | null): Effect.Effect<void, SaveFailure> {
    if (tree.left.size === 0) return Effect.void;
    const script = 'git diff-index --cached --raw -z --no-renames --abbrev=40 "$1"';
    return Effect.gen({ self: this }, function* () {
      const differing = yield* this.#output(this.#inDraft("compare", script, [head ?? EMPTY_TREE]));
      const { paths, input } = restoration(differing, tree);
      if (paths.length === 0) return;
      for (const path of paths) this.#skipped.set(path, tree.left.get(path) ?? "unreadable");
      yield* this.#output({ ...this.#inDraft("restore", "git update-index -z --index-info"), input });
    });
  }

  #updateIndex(options: string, paths: readonly string[]): Effect.Effect<void, SaveFailure> {
    return Effect.asVoid(this.#output(this.#indexUpdate(options, paths)));
  }

  #indexUpdate(options: string, paths: readonly string[]): AgentScript {
    const input = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
    return { ...this.#inDraft("index", `git update-index -z ${options} --stdin`), input };
  }

  get #opening(): AgentScript {
    return { name: "save-draft", script: OPEN_SCRIPT, parameters: [this.#draft, this.#settings.branch] };
  }

  #inDraft(name: string, script: string, parameters: readonly string[] = []): AgentScript {
    const env = {
      GIT_INDEX_FILE: `${this.#draft}/index`,
      GIT_OBJECT_DIRECTORY: `${this.#draft}/git/objects`,
    };
    return { name: `save-${name}`, script: `set -e\n${script}`, parameters, env };
  }

  get #identity(): Record<string, string> {
    const { agentName, sessionId } = this.#settings;
    const email = `${agentName}@${sessionId}.platform.internal`;
    return {
      GIT_AUTHOR_NAME: agentName,
      GIT_AUTHOR_EMAIL: email,
      GIT_COMMITTER_NAME: agentName,
      GIT_COMMITTER_EMAIL: email,
    };
  }

  #output(script: AgentScript): Effect.Effect<Buffer, SaveFailure> {
    return Effect.flatMap(this.#finished(script), (finished) => {
      if (finished.code !== 0) return Effect.fail(new SaveFailure({ message: lastWords(finished) }));
      return finished.isWhole
        ? Effect.succeed(finished.stdout)
        : Effect.fail(new SaveFailure({ message: "the work tree has too many files" }));
    });
  }

  #finished(script: AgentScript): Effect.Effect<FinishedBytes, SaveFailure> {
    return Effect.mapError(
      runForBytes(agentScript(this.#settings, script), MAX_LIST_BYTES),
      ({ message }) => new SaveFailure({ message: `git cannot be started: ${message}` }),
    );
  }
}

const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** A path as people read it: bytes that are no UTF-8 are replaced. */
const textOf = (path: string): string =>
  cutText(storableText(Buffer.from(path, "latin1").toString("utf8")), MAX_PATH_LENGTH);
