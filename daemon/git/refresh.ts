/**
 * Fast-forwards the session branch to its remote (api.md 7 "refresh"). Work in the workspace that the remote lacks is
 * never touched: in that case nothing moves, and the answer says why.
 */
import * as Effect from "effect/Effect";
import { agentScript, lastWords } from "./agent-git.ts";
import { readConfigDir, type ConfigDir } from "../boot/config-dir.ts";
import { runToEnd } from "../agent/process.ts";
import type { Settings } from "../settings.ts";

/** `failed`: git failed. `message` is its own, not yet redacted. */
export type Pulled =
  | {
      readonly outcome: "pulled";
      /** Null if there was no commit. */
      readonly before: string | null;
      readonly after: string;
      readonly configDir: ConfigDir;
    }
  | { readonly outcome: "diverged" | "uncommitted_changes" }
  | { readonly outcome: "failed"; readonly message: string };

/** A pull that takes longer is given up. Its processes are ended, and it can be requested again. */
const DEADLINE = "60 seconds";

const UNCOMMITTED = 11;
const DIVERGED = 12;

/**
 * $1 URL, $2 session branch, $3 the runtime's own addition to files (RuntimeAdapter.ownEdit) or nothing. Prints the
 * commit before and after, and the manifest.
 *
 * The checks run before the first ref moves. Git's own checks, in checkout and merge, cover the agent's changes
 * meanwhile.
 */
const SCRIPT = `
set -e
own="refs/heads/$2" remote="refs/remotes/origin/$2" edit=$3
for state in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG rebase-merge rebase-apply; do
  [ ! -e "$(git rev-parse --git-path "$state")" ] || exit ${UNCOMMITTED}
done
changes=$(git status --porcelain --untracked-files=normal --ignore-submodules=dirty)
is_edited() {
  [ -n "$edit" ] || return 1
  case $1 in " M "*.json | " M "*.jsonc) ;; *) return 1 ;; esac
  [ "$(sed -z "s|$edit||" "\${1#" M "}" | git hash-object --stdin)" = "$(git rev-parse "HEAD:\${1#" M "}")" ]
}
printf '%s\\n' "$changes" | while IFS= read -r change; do
  [ -z "$change" ] || is_edited "$change" || exit ${UNCOMMITTED}
done || exit ${UNCOMMITTED}
git fetch --quiet --no-tags --no-write-fetch-head --no-recurse-submodules "$1" "+$own:$remote"
before=$(git rev-parse --quiet --verify "HEAD^{commit}") || before=
mine=$(git rev-parse --quiet --verify "$own^{commit}") || mine=
for commit in $before $mine; do
  git merge-base --is-ancestor "$commit" "$remote" || { [ $? -ne 1 ] || exit ${DIVERGED}; exit 1; }
done
careful() {
  said=$(git "$@" 2>&1) && return 0
  printf '%s\\n' "$said" >&2
  case $said in *"would be overwritten"*) exit ${UNCOMMITTED} ;; esac
  exit 1
}
printf '%s\\n' "$changes" | while IFS= read -r change; do
  [ -z "$change" ] || git checkout --quiet -- "\${change#" M "}"
done
if [ "$(git symbolic-ref --quiet HEAD)" != "$own" ]; then
  [ -n "$mine" ] || git branch --quiet --no-track "$2" "$remote"
  careful checkout --quiet --no-overwrite-ignore "$2" --
fi
careful merge --quiet --ff-only --no-overwrite-ignore "$remote"
printf '%s\\n' "$before"
git rev-parse --verify HEAD
git show HEAD:platform.toml 2>/dev/null || :
`;

const failedPull = (message: string): Pulled => ({ outcome: "failed", message });

/** Fast-forwards. Never fails and never hangs. */
export const pull = (settings: Settings, ownEdit: string | null): Effect.Effect<Pulled> => {
  const launch = agentScript(settings, {
    name: "refresh",
    script: SCRIPT,
    parameters: [settings.repoUrl, settings.branch, ownEdit ?? ""],
  });
  return runToEnd(launch).pipe(
    Effect.flatMap((output): Effect.Effect<Pulled> => {
      const { code, stdout } = output;
      if (code === UNCOMMITTED) return Effect.succeed({ outcome: "uncommitted_changes" });
      if (code === DIVERGED) return Effect.succeed({ outcome: "diverged" });
      const [, before = "", after, manifest = ""] = PRINTED.exec(stdout) ?? [];
      if (code !== 0 || after === undefined) return Effect.succeed(failedPull(lastWords(output)));
      return Effect.map(
        Effect.promise(() => readConfigDir(manifest, settings.layout.workspace)),
        (configDir) => ({ outcome: "pulled", before: before === "" ? null : before, after, configDir }),
      );
    }),
    Effect.catchTag("LaunchFailure", ({ message }) =>
      Effect.succeed(failedPull(`git cannot be started: ${message}`)),
    ),
    Effect.timeoutOrElse({
      duration: DEADLINE,
      orElse: () => Effect.succeed(failedPull(`git did not finish within ${DEADLINE}`)),
    }),
  );
};

const PRINTED = /^([0-9a-f]{40}|)\n([0-9a-f]{40})\n([^]*)$/;
