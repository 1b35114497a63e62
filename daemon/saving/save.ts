/**
 * Saves the workspace's content that the remote lacks as one commit on refs/wip/<session> (api.md 3 "Saving", 7).
 *
 *  V1 The agent's index, HEAD, branches, objects and files stay unchanged: a save writes only to its draft, in a
 *     directory of its own (draft.ts). The draft also has its own connection to the remote, so that nothing in the
 *     agent's `.git/config` can redirect it.
 *  V2 The work tree is the workspace, whatever the agent's configuration says. The commit's tree is the work tree. Its
 *     parents are HEAD, the session branch if it has more commits, the rest (rest.ts) if there is one, and the former
 *     wip commit. Saving the same work twice gives the same commit.
 *  V3 Everything that is not stored is listed, with the reason.
 *  V4 It always answers: failures are reported, and hanging steps are ended. The files never depend on the rest: if it
 *     cannot be gathered, or the remote refuses it, they are stored without it.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { Draft, SaveFailure } from "./draft.ts";
import { listLocalRefs, type LocalRefs } from "./local-refs.ts";
import { askRemote, type RemoteRefs } from "./remote-refs.ts";
import { gatherRest, type Rest } from "./rest.ts";
import type { Settings } from "../settings.ts";
import { Skipped } from "./skipped.ts";
import { takeTree, type TakenTree } from "./taken-tree.ts";

/** The answer to `POST /platform/save`. `wip` is null if there was nothing to save. */
export interface Saved {
  readonly wip: string | null;
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly error: string | null;
}

const DEADLINE = "60 seconds";

const NO_REFS: LocalRefs = { refs: [], foreign: new Map(), worktrees: [] };
/** Listed as skipped if it could not be read at all. */
const REST = ".git (branches, tags, stashes and worktrees)";

/**
 * $1 draft, $2 URL, $3 session, $4 tree, then commits or nothing: $5 HEAD, $6 session branch, $7 the remote's session
 * branch, $8 the former wip, $9 the rest, $10 the ref that HEAD names. Prints the wip commit, or nothing.
 */
const CLOSE_SCRIPT = `
set -e
draft=$1 url=$2 session=$3 tree=$4 head=$5 branch=$6 tip=$7 wip=$8 rest=$9 ref=\${10}
within() { [ "$1" = none ] || { [ "$2" != none ] && git merge-base --is-ancestor "$1" "$2"; }; }
treeof() { if [ "$1" = none ]; then git hash-object -t tree /dev/null; else git rev-parse "$1^{tree}"; fi; }
hangs_on() { [ "$1" = none ] || git rev-list --parents --max-count=1 "$2" | grep -q "$1"; }
if [ "$rest" = none ] && [ "$tree" = "$(treeof "$head")" ] && within "$head" "$tip" && within "$branch" "$tip"; then
  exit 0
fi
if [ "$wip" != none ] && [ "$tree" = "$(treeof "$wip")" ] && within "$head" "$wip" && hangs_on "$rest" "$wip"; then
  if within "$branch" "$wip" || within "$branch" "$tip"; then printf '%s\\n' "$wip"; exit 0; fi
fi
set -- -m "Work in progress of session $session"
[ "$ref" = none ] || [ "$ref" = "refs/heads/$session" ] || set -- "$@" -m "HEAD names $ref."
if [ "$rest" != none ]; then
  set -- "$@" -m "Another commit has branches, tags, stashes, the index and other git state. To see how to restore them, run:" \\
    -m "    rest=$rest
    git show $rest:README"
fi
[ "$head" = none ] || set -- "$@" -p "$head"
if ! within "$branch" "$head" && ! within "$branch" "$tip"; then set -- "$@" -p "$branch"; fi
[ "$rest" = none ] || set -- "$@" -p "$rest"
[ "$wip" = none ] || set -- "$@" -p "$wip"
commit=$(git commit-tree "$tree" "$@")
git push --quiet --no-verify "$url" "$commit:refs/wip/$session"
printf '%s\\n' "$commit"
`;

/** Saves the workspace. Never fails, and ends soon after its deadline. */
export const save = (settings: Settings): Effect.Effect<Saved> =>
  Effect.suspend(() => {
    const saving = new Saving(settings);
    return saving.run.pipe(
      Effect.timeoutOrElse({
        duration: DEADLINE,
        orElse: () => Effect.fail(new SaveFailure({ message: `it did not finish within ${DEADLINE}` })),
      }),
      Effect.match({
        onSuccess: (wip) => ({ wip, skipped: saving.skipped.named, error: null }),
        onFailure: ({ message }) => ({ wip: null, skipped: saving.skipped.named, error: message }),
      }),
      Effect.ensuring(saving.draft.removal),
    );
  });

class Saving {
  readonly draft: Draft;
  readonly skipped = new Skipped();

  constructor(settings: Settings) {
    this.draft = new Draft(settings);
  }

  get run(): Effect.Effect<string | null, SaveFailure> {
    return Effect.gen({ self: this }, function* () {
      const { draft, skipped } = this;
      yield* draft.open;
      const directory = draft.settings.layout.workspace;
      const main = yield* takeTree(draft, { directory, number: 0, skipped });
      const listed = yield* Effect.result(listLocalRefs(draft));
      const local = Result.isSuccess(listed) ? listed.success : NO_REFS;
      const branches = local.refs.map(({ ref }) => ref).filter((ref) => ref.startsWith("refs/heads/"));
      const remote = yield* askRemote(draft, branches);
      const gathered = yield* Effect.result(gatherRest({ draft, skipped, main, remote, local }));
      if (Result.isFailure(listed) || Result.isFailure(gathered)) skipped.add(REST, "unreadable");
      const rest = Result.isSuccess(gathered) ? gathered.success : null;
      return rest === null
        ? yield* this.#close(main, remote)
        : yield* this.#closeWith(rest, { main, remote });
    });
  }

  /** Stores the files alone if the remote refuses the rest. */
  #closeWith(
    rest: Rest,
    { main, remote }: { readonly main: TakenTree; readonly remote: RemoteRefs },
  ): Effect.Effect<string | null, SaveFailure> {
    return Effect.catch(this.#close(main, remote, rest), () =>
      Effect.tap(this.#close(main, remote), () =>
        Effect.sync(() => {
          for (const part of rest.parts) this.skipped.add(part, "refused");
        }),
      ),
    );
  }

  #close(
    main: TakenTree,
    remote: RemoteRefs,
    rest: Rest | null = null,
  ): Effect.Effect<string | null, SaveFailure> {
    const { repoUrl, branch } = this.draft.settings;
    const commits = [main.head, main.branch, remote.tip, remote.wip, rest?.commit ?? null];
    const ref = main.headRef === null ? null : Buffer.from(main.headRef, "latin1").toString();
    const optional = [...commits, ref].map((one) => one ?? "none");
    const parameters = [this.draft.directory, repoUrl, branch, main.files, ...optional];
    const closing = { name: "close", script: CLOSE_SCRIPT, parameters, env: this.#identity };
    return Effect.map(this.draft.inDraft(closing), (printed) => {
      const wip = printed.toString("latin1").trim();
      return /^[0-9a-f]{40}$/.test(wip) ? wip : null;
    });
  }

  get #identity(): Record<string, string> {
    const { agentName, sessionId } = this.draft.settings;
    const email = `${agentName}@${sessionId}.platform.internal`;
    return {
      GIT_AUTHOR_NAME: agentName,
      GIT_AUTHOR_EMAIL: email,
      GIT_COMMITTER_NAME: agentName,
      GIT_COMMITTER_EMAIL: email,
    };
  }
}
