/**
 * The hooks that git runs in a push. They decide nothing: they ask the service over descriptor 3, which only this
 * push's `receive-pack` and its children hold, and obey its answer. Any doubt is a refusal.
 *
 * `pre-receive` runs while the pushed objects are in git's quarantine. A refusal there leaves nothing behind, but
 * refuses all refs together. So it refuses only if no ref may be written. If some may, `update` refuses the others one
 * by one. `post-receive` runs after git has written the refs and reported it. It prints the service's messages about
 * them.
 */
import * as Effect from "effect/Effect";
import { access, chmod, constants, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isOutOfSpace } from "../../domain/repository/file-fault.ts";
import { diskFull } from "../failure.ts";
import { GitError } from "../port.ts";
import type { WritePolicy } from "./ref-policy.ts";

const listen = `hear() {
  while IFS= read -r word <&3; do
    case "$word" in
      accept) exit 0 ;;
      "say "*) printf '%s\\n' "\${word#say }" >&2 ;;
      *) exit 1 ;;
    esac
  done
  echo "The service did not respond." >&2
  exit 1
}
`;

/**
 * Names the texts in the new objects that have the form of a token. Only branches are searched: `refs/wip/` saves everything,
 * and what a save brought is new to a branch.
 */
const search = `search() {
  [ -n "$PLATFORM_SEARCH" ] && [ -n "$branches" ] || return 0
  git rev-list --objects $branches --not --branches 2>/dev/null | cut -c 1-40 |
    git cat-file --batch --buffer 2>/dev/null |
    LC_ALL=C grep -a -o -E 'platform_(pat|sbx)_[A-Za-z0-9_-]+' | sort -u | head -n 1000 |
    while read -r token; do printf 'token %s\\n' "$token" >&3; done
}
`;

// Old and new come from the client, so they are checked to be plain hex before git sees them.
const preReceive = `#!/bin/sh
${listen}${search}branches=
printf 'quarantine %s\\n' "\${GIT_QUARANTINE_PATH##*/}" >&3 || exit 1
while read -r old new ref; do
  course=other
  case "$old$new" in
    *[!0-9a-f]*) ;;
    *0000000000000000000000000000000000000000*) ;;
    *) git merge-base --is-ancestor "$old" "$new" 2>/dev/null && course=forward ;;
  esac
  case "$new" in
    *[!0-9a-f]*|0000000000000000000000000000000000000000) ;;
    *) case "$ref" in refs/heads/*) branches="$branches $new" ;; esac ;;
  esac
  printf 'ref %s %s %s %s\\n' "$old" "$new" "$course" "$ref" >&3 || exit 1
done
search
printf 'end\\n' >&3 || exit 1
hear
`;

const update = `#!/bin/sh
${listen}printf 'update %s %s other %s\\n' "$2" "$3" "$1" >&3 || exit 1
hear
`;

const postReceive = `#!/bin/sh
while read -r old new ref; do
  printf 'written %s %s %s\\n' "$old" "$new" "$ref" >&3 || exit 0
done
printf 'over\\n' >&3 || exit 0
while IFS= read -r word <&3; do
  case "$word" in
    "say "*) printf '%s\\n' "\${word#say }" >&2 ;;
    *) exit 0 ;;
  esac
done
`;

const hooks = { "pre-receive": preReceive, update, "post-receive": postReceive };

/** Whether the hooks of a push search for tokens, as git's environment tells them. */
export const searchVariables = ({ ownTokens = [] }: Pick<WritePolicy, "ownTokens">) => ({
  PLATFORM_SEARCH: ownTokens.length > 0 ? "tokens" : "",
});

const toGitError = (cause: unknown): GitError =>
  isOutOfSpace(cause)
    ? diskFull()
    : new GitError({ code: "git_failed", message: `The push hooks cannot be set up: ${String(cause)}.` });

/** Writes the hooks into `directory`. Each is complete before it gets its name. */
export const installHooks = (directory: string): Effect.Effect<void, GitError> =>
  Effect.tryPromise({
    try: async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const write = async (name: string, text: string): Promise<void> => {
        const aside = join(directory, `.${name}.${process.pid}`);
        await writeFile(aside, text);
        await chmod(aside, 0o755);
        await rename(aside, join(directory, name));
      };
      await Promise.all(Object.entries(hooks).map(([name, text]) => write(name, text)));
    },
    catch: toGitError,
  }).pipe(Effect.andThen(checkHooks(directory)));

/**
 * Git ignores a hook that it may not execute (lost mode bits, a `noexec` mount) and accepts the push. So this is
 * checked before every push, with the same system call as git's.
 */
export const checkHooks = (directory: string): Effect.Effect<void, GitError> =>
  Effect.tryPromise({
    try: () => Promise.all(Object.keys(hooks).map((name) => access(join(directory, name), constants.X_OK))),
    catch: toGitError,
  }).pipe(Effect.asVoid);
