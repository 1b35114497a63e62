/** Queries on a bare repository's refs and objects. The caller has checked the path. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { parseBranchName } from "../../domain/git-ref.ts";
import { GitError } from "../port.ts";
import { runGit } from "../run.ts";

export const unknownRef = (message: string): GitError => new GitError({ code: "unknown_ref", message });

/** The object to which a full ref name points, tags peeled. Null if the ref does not exist. */
export const refTarget = (path: string, ref: string): Effect.Effect<string | null, GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["show-ref", "--verify", "--dereference", "--", ref],
      expect: [0, 1, 128],
    }),
    ({ exitCode, stdout }) =>
      exitCode === 0 ? (stdout.toString("utf8").trimEnd().split("\n").at(-1)?.slice(0, 40) ?? null) : null,
  );

export const isCommit = (path: string, object: string): Effect.Effect<boolean, GitError> =>
  Effect.map(
    runGit({ repository: path, args: ["cat-file", "-t", object], expect: [0, 128] }),
    ({ stdout }) => stdout.toString("utf8").trim() === "commit",
  );

/** The branch's tip. Null if the branch does not exist, or the name is not valid. */
export const branchTip = (path: string, branch: string): Effect.Effect<string | null, GitError> =>
  Result.isFailure(parseBranchName(branch)) ? Effect.succeed(null) : refTarget(path, `refs/heads/${branch}`);
