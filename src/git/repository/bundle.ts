/**
 * Packs a hosted repository into one git bundle file, and unpacks it. Git reads the refs first and then their objects,
 * so a bundle is complete even if pushes come meanwhile.
 */
import * as Effect from "effect/Effect";
import { isCommitId } from "../../domain/repository/git-ref.ts";
import type { GitError } from "../port.ts";
import { runGit } from "../run.ts";

/** How long packing or unpacking one repository may take, in milliseconds. */
const DEADLINE_MS = 30 * 60_000;

/** The ref that HEAD points to, e.g. `refs/heads/main`. */
export const headRef = (repository: string): Effect.Effect<string, GitError> =>
  Effect.map(runGit({ repository, args: ["symbolic-ref", "HEAD"] }), ({ stdout }) =>
    stdout.toString("utf8").trim(),
  );

/** Writes all refs and their objects into `file`. False if the repository has no ref, so that no bundle is possible. */
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

/**
 * Creates the bare repository `repository` with its former HEAD, and with the content of the bundle, if there is one.
 */
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
    // The repository was accepted once, so it is accepted again even if this git version would object.
    config: { "transfer.fsckObjects": "false" },
    deadlineMs: DEADLINE_MS,
  });
});
