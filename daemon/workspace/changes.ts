/**
 * What the workspace adds to a commit: commits that are pushed or not, and uncommitted files. Git runs as the agent
 * (agent-git.ts), on a copy of the agent's index, and writes neither objects nor the index itself.
 *
 * Ignored files and nested repositories do not count. A renamed file counts as a removed and a new one: looking for
 * renames among very many files takes too long.
 */
import type { AgentScript } from "../git/agent-git.ts";
import type {
  WorkspaceChangedFile as ChangedFile,
  WorkspaceChanges,
  WorkspaceSides as Sides,
} from "../../src/domain/session/workspace.ts";
import { patternOfBrokenName } from "../../src/domain/repository/broken-name.ts";
import { sections } from "./sections.ts";

/** How many files are listed. As many as of a change request (git/repository/compare.ts). */
export const FILES_MAX = 3000;
/** The listing of some 300,000 files. */
export const LIST_MAX_BYTES = 32 * 1024 * 1024;
/** A diff for reading, in bytes. */
export const DIFF_MAX_BYTES = 1024 * 1024;
/** Counting stops here. */
const COMMITS_MAX = 1000;

/** Larger files have no lines, in the notation of git. */
const LARGE = "10m";

/**
 * Applies to every comparison with the work tree. External diffs and textconv are off. A filter runs, as in every git of the
 * agent: without it, files of Git LFS would seem changed.
 */
const COMPARE = `git -c core.bigFileThreshold=${LARGE} -c diff.suppressBlankEmpty=false diff-index --no-renames --no-ext-diff --no-textconv --no-color --ignore-submodules=all`;

/**
 * $1 directory for the copy of the index, $2 base, $3 pushed commit, $4 default branch. Afterwards $base, $pushed and $head
 * are commits that exist here.
 *
 * The service's base is right unless the agent has merged the default branch since its last push. Then the newer merge base is.
 *
 * New files, and files in conflict, enter the copy as empty ones, so that a comparison with the work tree finds them. The copy keeps the index's
 * time, because git checks the content of files that changed in the second in which the index was written.
 */
const OPEN = `
rm -rf -- "$1"
trap 'rm -rf -- "$1"' EXIT
trap 'exit 1' TERM
mkdir -m 700 -- "$1" || exit
known() { git rev-parse --quiet --verify "$1^{commit}"; }
empty=$(git hash-object -t tree /dev/null) || exit
head=$(known HEAD || echo "$empty")
pushed=$(known "$3" || known "$2" || echo "$empty")
base=$(known "$2" || git merge-base "$head" "refs/remotes/origin/$4" 2>/dev/null || echo "$pushed")
newer=$(git merge-base "$head" "refs/remotes/origin/$4" 2>/dev/null) &&
  git merge-base --is-ancestor "$base" "$newer" 2>/dev/null && base=$newer
index=$(git rev-parse --path-format=absolute --git-path index) || exit
[ ! -f "$index" ] || { cp -- "$index" "$1/index" && touch -r "$index" -- "$1/index"; } || exit
export GIT_INDEX_FILE="$1/index"
git update-index -q --really-refresh >/dev/null 2>&1
new=$(printf '' | git hash-object --stdin)
{ git ls-files -z --others --exclude-standard && git ls-files -z --unmerged; } >"$1/new" || exit
sed -z -e '/\\/$/d' -e 's/^[0-7]\\{6\\} [0-9a-f]\\{40\\} [123]\\t//' -e "s/^/100644 $new 0\\t/" "$1/new" |
  git update-index -z --replace --index-info || exit
`;

/** Prints commits and their number, changed files with their status, files that are not pushed, not committed, and lines. */
const CHANGES_SCRIPT = `${OPEN}
printf '%s\\0' "$base" "$pushed" "$head" \\
  "$(git rev-list --count --max-count=${COMMITS_MAX} "$head" --not "$pushed" 2>/dev/null || echo 0)"
printf '\\0'
${COMPARE} -z --name-status "$base" >"$1/list" || exit
cat "$1/list"
printf '\\0'
${COMPARE} -z --name-only "$pushed" || exit
printf '\\0'
${COMPARE} -z --name-only "$head" || exit
printf '\\0'
sed -z -n -e '2~2p' -e '${2 * FILES_MAX}q' "$1/list" | xargs -0 -r ${COMPARE} -z --numstat "$base" --
`;

/** $5 the longest answer in bytes, $6 a path or nothing. */
const DIFF_SCRIPT = `${OPEN}
${COMPARE} -p --full-index --src-prefix=a/ --dst-prefix=b/ "$base" -- \${6:+"$6"} | head -c "$5"
`;

export interface Place {
  /** A directory that only this reader uses. It is removed. */
  readonly directory: string;
  readonly defaultBranch: string;
}

const GIT_ENV = {
  GIT_LITERAL_PATHSPECS: "1",
  GIT_NO_LAZY_FETCH: "1",
};

export const changesScript = ({ base, pushed }: Sides, { directory, defaultBranch }: Place): AgentScript => ({
  name: "workspace-changes",
  script: CHANGES_SCRIPT,
  parameters: [directory, base, pushed, defaultBranch],
  env: GIT_ENV,
});

/** @param part `maxBytes`: where the diff ends; `path`: null for all files */
export const diffScript = (
  { base, pushed }: Sides,
  part: { readonly maxBytes: number; readonly path: string | null },
  { directory, defaultBranch }: Place,
): AgentScript => {
  const pattern = patternOfBrokenName(part.path ?? "");
  return {
    name: "workspace-diff",
    script: DIFF_SCRIPT,
    parameters: [directory, base, pushed, defaultBranch, String(part.maxBytes), pattern ?? part.path ?? ""],
    env: pattern === null ? GIT_ENV : { ...GIT_ENV, GIT_LITERAL_PATHSPECS: "0" },
  };
};

const toUtf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");

const STATUSES: Readonly<Record<string, ChangedFile["status"]>> = { A: "added", D: "removed" };

/** `numstat -z` without renames: `added TAB deleted TAB path`. A binary file has `-`. */
const linesIn = (records: readonly string[]) =>
  new Map(
    records.map((record) => {
      const [additions = "", deletions = "", ...path] = record.split("\t");
      return [path.join("\t"), { additions: Number(additions) || 0, deletions: Number(deletions) || 0 }];
    }),
  );

const changeState = (
  path: string,
  unpushedPaths: ReadonlySet<string>,
  uncommittedPaths: ReadonlySet<string>,
): ChangedFile["state"] => {
  if (uncommittedPaths.has(path)) return "uncommitted";
  return unpushedPaths.has(path) ? "committed" : "pushed";
};

/** Reads the output of the script for changes. @param displayPath makes a path fit to leave the sandbox */
export const readChanges = (listing: Buffer, displayPath: (path: string) => string): WorkspaceChanges => {
  const [[base = "", pushed = "", head = "", commits = ""] = [], list = [], ...rest] = sections(listing);
  const [notPushed = [], notCommitted = [], counted = []] = rest;
  const [unpushed, uncommitted] = [new Set(notPushed), new Set(notCommitted)];
  const lines = linesIn(counted);
  const files: ChangedFile[] = [];
  for (let at = 0; at + 1 < list.length && files.length < FILES_MAX; at += 2) {
    const path = list[at + 1] ?? "";
    files.push({
      path: displayPath(toUtf8(path)),
      status: STATUSES[list[at] ?? ""] ?? "modified",
      state: changeState(path, unpushed, uncommitted),
      ...(lines.get(path) ?? { additions: 0, deletions: 0 }),
    });
  }
  return {
    base_commit: base,
    pushed_commit: pushed,
    head_commit: head,
    unpushed_commits: Number(commits) || 0,
    files_changed_total: Math.floor(list.length / 2),
    uncommitted_total: uncommitted.size,
    unpushed_total: unpushed.size,
    files_changed: files,
  };
};
