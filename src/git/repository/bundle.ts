/**
 * A hosted repository as one file of git's own, and back. Git reads its refs first and then what they lead to, so a bundle is
 * whole whatever is pushed meanwhile.
 */
import * as Effect from "effect/Effect";
import { isCommitId } from "../../domain/git-ref.ts";
import type { GitError } from "../port.ts";
import { runGit } from "../run.ts";

/** Milliseconds that packing or unpacking one repository may take. */
const DEADLINE_MS = 30 * 60_000;

/** The ref that HEAD leads to, e.g. `refs/heads/main`. */
export const headOf = (repository: string): Effect.Effect<string, GitError> =>
  Effect.map(runGit({ repository, args: ["symbolic-ref", "HEAD"] }), ({ stdout }) =>
    stdout.toString("utf8").trim(),
  );

/** Writes all refs and what they lead to into `file`. False where there is no ref, which makes no bundle. */
export const bundleInto = Effect.fnUntraced(function* (repository: string, file: string) {
  const any = yield* runGit({ repository, args: ["for-each-ref", "--count=1", "--format=%(objectname)"] });
  if (!isCommitId(any.stdout.toString("utf8").trim())) return false;
  yield* runGit({
    repository,
    args: ["bundle", "create", "--quiet", file, "--all"],
    deadlineMs: DEADLINE_MS,
  });
  return true;
});

/** Makes the bare repository `repository` with HEAD as it was, and all that is in the bundle, where there is one. */
export const unbundleInto = Effect.fnUntraced(function* (
  repository: string,
  { head, bundle }: { readonly head: string; readonly bundle: string | null },
) {
  const args = ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", repository];
  yield* runGit({ repository: null, args });
  yield* runGit({ repository, args: ["symbolic-ref", "HEAD", head] });
  if (bundle === null) return;
  yield* runGit({
    repository,
    args: [
      "fetch",
      "--quiet",
      "--no-write-fetch-head",
      "--no-auto-maintenance",
      "--no-tags",
      "--update-head-ok",
      bundle,
      "+refs/*:refs/*",
    ],
    environment: { GIT_ALLOW_PROTOCOL: "file" },
    // What was taken once is taken again, whatever this git thinks of its history.
    config: { "transfer.fsckObjects": "false" },
    deadlineMs: DEADLINE_MS,
  });
});
