/**
 * Brings saved work back into a fresh checkout of the session branch (docs/decisions/0082). It runs before the agent and the
 * setup command, so nothing else changes the workspace meanwhile. Git runs as the agent.
 *
 *  N1 It overwrites no part of the branch. A path that the branch has changed since the save stays as it is, and is listed.
 *  N2 The commits of the session branch come back by a fast-forward, or not at all.
 *  N3 All or nothing: if a step fails, the workspace is as the checkout left it, and the answer says why.
 *  N4 It only reads refs/wip: the saved commit stays where it is.
 *  N5 It always answers in time. The saved commit is untrusted: the agent can push to refs/wip.
 */
import * as Effect from "effect/Effect";
import type { Restored } from "../../src/domain/saved.ts";
import { agentScript, lastWords, type AgentScript } from "../git/agent-git.ts";
import { runForBytes } from "../process.ts";
import type { Settings } from "../settings.ts";
import { SaveFailure } from "./draft.ts";
import { Skipped } from "./skipped.ts";
import { readDifferences, sections, type Difference } from "./work-tree.ts";

/** The longest restoration, ms, and the largest part of a boot that it may take. */
const DEADLINE_MS = 30_000;
const BOOT_SHARE = 0.5;
/** For the way back after a failure. */
const UNDO_MS = 10_000;
/** More changed files are not restored. */
export const FILES_MAX = 20_000;
/** The lists of the changed paths. */
const MAX_LIST_BYTES = 32 * 1024 * 1024;

const SUBMODULE = "160000";
const ABSENT = "000000";

/**
 * $1 URL, $2 session, $3 the saved commit. Prints the checked out commit, the commit to move the session branch to, and how
 * many commits do not fit on the branch. After an empty record it prints what the saved tree changes, and after another
 * one what the branch has changed since.
 *
 * The parents of a saved commit (save.ts V2): HEAD; the session branch if HEAD does not have all of it; the rest, which the
 * message names; the former saved commit.
 */
const PLAN_SCRIPT = `
set -e
url=$1 session=$2 wip=$3 subject="Work in progress of session $2"
within() { git merge-base --is-ancestor "$1" "$2"; }
fail() { printf '%s\\n' "$1" >&2; exit 1; }
tip=$(git rev-parse --verify HEAD)
git fetch --quiet --no-tags --no-write-fetch-head --no-recurse-submodules "$url" "refs/wip/$session"
[ "$(git cat-file -t "$wip" 2>/dev/null)" = commit ] || fail "refs/wip/$session does not have the commit any more"
message=$(git show -s --format=%B "$wip" | tr -d '\\0')
rest=$(printf '%s\\n' "$message" | sed -n 's/^ *rest=\\([0-9a-f]\\{40\\}\\)$/\\1/p' | head -n 1)
head= branch=
for parent in $(git rev-parse "$wip^@"); do
  [ "$parent" != "$rest" ] && [ "$(git show -s --format=%s "$parent")" != "$subject" ] || continue
  if [ -z "$head" ]; then head=$parent; elif [ -z "$branch" ]; then branch=$parent; fi
done
[ -n "$head" ] || fail "the saved files belong to no commit"
if [ -z "$branch" ]; then
  case $message in *"HEAD names refs/"*) branch=$tip ;; *) branch=$head ;; esac
fi
target=$tip stuck=0
if ! within "$branch" "$tip"; then
  if within "$tip" "$branch"; then target=$branch; else stuck=$(git rev-list --count "$branch" "^$tip"); fi
fi
base=$(git merge-base "$head" "$target") || fail "the saved work and the session branch have no commit in common"
printf '%s\\0%s\\0%s\\0%s\\0\\0' "$tip" "$target" "$(git rev-list --count "$target" "^$tip")" "$stuck"
git diff-tree -r -z --raw --no-renames --abbrev=40 "$base" "$wip"
printf '\\0'
git diff-tree -r -z --raw --no-renames --abbrev=40 "$base" "$target"
`;

/**
 * $1 commit to move the session branch to. The input changes the index to that of the restored files. Git writes the files
 * over an unchanged index of the commit, so it refuses paths into .git, follows no link, and overwrites no other file.
 */
const APPLY_SCRIPT = `
set -e
git merge --quiet --ff-only --no-overwrite-ignore "$1"
index=$(git rev-parse --path-format=absolute --git-path index)
mine=$index.restored
trap 'rm -f "$mine" "$mine.lock"' EXIT
cp -p "$index" "$mine"
export GIT_INDEX_FILE="$mine"
git update-index -z --index-info
tree=$(git write-tree)
cp -p "$index" "$mine"
git read-tree -m -u "$1" "$tree"
`;

/** $1 the commit of the checkout. */
const UNDO_SCRIPT = 'git reset --quiet --hard "$1" && git clean -ffdxq';

interface Plan {
  readonly tip: string;
  readonly target: string;
  readonly commits: number;
  /** Unpushed commits that the branch cannot take any more. */
  readonly stuck: number;
  readonly wanted: readonly Difference[];
  readonly meanwhile: readonly Difference[];
}

/** Restores the saved commit. Never fails. @returns the restored part; texts of git in it are not yet redacted */
export const restore = (settings: Settings, wip: string): Effect.Effect<Restored> => {
  const restoring = new Restoring(settings, wip);
  const limitMs = Math.min(DEADLINE_MS, settings.launch.bootDeadlineMs * BOOT_SHARE);
  return restoring.run.pipe(
    Effect.timeoutOrElse({
      duration: limitMs,
      orElse: () => Effect.fail(new SaveFailure({ message: `it did not finish within ${limitMs} ms` })),
    }),
    Effect.catch(({ message }) =>
      Effect.as(restoring.undo, { wip, commits: 0, files: 0, skipped: [], error: message }),
    ),
  );
};

class Restoring {
  readonly #settings: Settings;
  readonly #wip: string;
  readonly #skipped = new Skipped();
  /** The commit of the checkout, once something may have changed. */
  #tip: string | null = null;

  constructor(settings: Settings, wip: string) {
    this.#settings = settings;
    this.#wip = wip;
  }

  get run(): Effect.Effect<Restored, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const plan = yield* this.#plan;
      const chosen = chooseFiles(plan, this.#skipped);
      this.#tip = plan.tip;
      if (chosen.length > 0 || plan.target !== plan.tip) {
        const input = indexInput(chosen);
        yield* this.#git({ name: "restore", script: APPLY_SCRIPT, parameters: [plan.target], input });
      }
      return {
        wip: this.#wip,
        commits: plan.commits,
        files: chosen.length,
        skipped: this.#skipped.named,
        error: plan.stuck === 0 ? null : stuckWords(plan.stuck),
      };
    });
  }

  /** N3. */
  get undo(): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.#tip === null
        ? Effect.void
        : Effect.ignore(
            Effect.timeoutOption(
              this.#git({ name: "undo", script: UNDO_SCRIPT, parameters: [this.#tip] }),
              UNDO_MS,
            ),
          ),
    );
  }

  get #plan(): Effect.Effect<Plan, SaveFailure> {
    const { repoUrl, branch } = this.#settings;
    const script = { name: "plan", script: PLAN_SCRIPT, parameters: [repoUrl, branch, this.#wip] };
    return Effect.flatMap(this.#git(script), (listing) => {
      const [[tip = "", target = "", commits, stuck] = [], wanted = [], meanwhile = []] = sections(listing);
      if (wanted.length > 2 * FILES_MAX)
        return Effect.fail(new SaveFailure({ message: `it has more than ${FILES_MAX} changed files` }));
      return Effect.succeed({
        tip,
        target,
        commits: Number(commits),
        stuck: Number(stuck),
        wanted: readDifferences(wanted),
        meanwhile: readDifferences(meanwhile),
      });
    });
  }

  #git(script: AgentScript): Effect.Effect<Buffer, SaveFailure> {
    return runForBytes(agentScript(this.#settings, script), MAX_LIST_BYTES).pipe(
      Effect.mapError(({ message }) => new SaveFailure({ message: `git cannot be started: ${message}` })),
      Effect.flatMap((finished) => {
        if (finished.code !== 0) return Effect.fail(new SaveFailure({ message: lastWords(finished) }));
        return finished.isWhole
          ? Effect.succeed(finished.stdout)
          : Effect.fail(new SaveFailure({ message: "it has too many changed files" }));
      }),
    );
  }
}

const stuckWords = (commits: number): string =>
  `${commits === 1 ? "1 commit is" : `${commits} commits are`} not on the session branch, because the branch has other commits ` +
  "since. The saved commit has them.";

/** N1. Entries that the branch has already are left out too, without a word. */
export const chooseFiles = (
  { wanted, meanwhile }: Pick<Plan, "wanted" | "meanwhile">,
  skipped: Pick<Skipped, "add">,
): readonly Difference[] => {
  const there = new Map(meanwhile.map(({ path, after }) => [path, after]));
  return wanted.filter(({ path, before, after }) => {
    const now = there.get(path);
    if (now !== undefined && now.mode === after.mode && now.object === after.object) return false;
    const isSubmodule = [before.mode, after.mode, now?.mode].includes(SUBMODULE);
    if (isSubmodule) skipped.add(path, "submodule");
    else if (path.split("/").some((name) => name.toLowerCase() === ".git"))
      skipped.add(path, "git_directory");
    else if (now !== undefined) skipped.add(path, "changed_since");
    else return true;
    return false;
  });
};

/** For `git update-index --index-info`. Removals come first: a directory may take the place of a file. */
const indexInput = (chosen: readonly Difference[]): Buffer => {
  const removals = chosen.filter(({ after }) => after.mode === ABSENT);
  const others = chosen.filter(({ after }) => after.mode !== ABSENT);
  const lines = [
    ...removals.map(({ path, before }) => `0 ${before.object} 0\t${path}\0`),
    ...others.map(({ path, after }) => `${after.mode} ${after.object} 0\t${path}\0`),
  ];
  return Buffer.from(lines.join(""), "latin1");
};
