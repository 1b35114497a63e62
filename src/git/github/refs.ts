/**
 * Branches and tags through a code host's API (spec, branch model 3): read conditionally, created create-only. If a
 * call has no answer, its effect is read from the host (threats.md G12).
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { parseBranchName } from "../../domain/repository/git-ref.ts";
import { GitError } from "../port.ts";
import { branchTaken, checkNewBranch, unknownRef } from "../repository/refs.ts";
import type { Access, Api } from "./api.ts";
import type { GithubSource } from "./tokens.ts";

/** One repository at the host, with the access to it. */
export interface Place {
  readonly api: Api;
  readonly access: Access;
  readonly source: GithubSource;
}

const Pointer = Schema.Struct({ type: Schema.String, sha: Schema.String });
const Ref = Schema.Struct({ ref: Schema.String, object: Pointer });
const Tag = Schema.Struct({ object: Pointer });
const Commit = Schema.Struct({
  sha: Schema.String,
  parents: Schema.Array(Schema.Struct({ sha: Schema.String })),
});
const RepositoryAnswer = Schema.Struct({
  default_branch: Schema.String,
  permissions: Schema.optionalKey(Schema.Struct({ push: Schema.Boolean })),
});

/** How many tags that point to tags are followed. Real repositories have fewer. */
const TAGS_DEEP = 8;

/** A path below the repository. Each segment is encoded by itself. */
export const pathIn = ({ source }: Pick<Place, "source">, ...segments: readonly string[]): string =>
  ["", "repos", source.owner, source.name, ...segments].map(encodeURIComponent).join("/");

/** The object to which a full ref without `refs/` points. Null if the ref does not exist. */
const refTarget = Effect.fnUntraced(function* (place: Place, ref: string) {
  const answer = yield* place.api(place.access, {
    method: "GET",
    path: pathIn(place, "git", "ref", ...ref.split("/")),
    answer: Ref,
    known: [404],
  });
  // Old hosts also answered with refs that begin with the requested one.
  return answer.ok && answer.value.ref === `refs/${ref}` ? answer.value.object : null;
});

/** A missing repository answers like a missing ref. This call distinguishes them where it matters. */
export const requireRepository = Effect.fnUntraced(function* (place: Place) {
  const answer = yield* place.api(place.access, {
    method: "GET",
    path: pathIn(place),
    answer: RepositoryAnswer,
  });
  if (answer.ok) return answer.value;
  return yield* new GitError({ code: "git_failed", message: answer.message });
});

/** The branch's tip. Null if the branch does not exist, or the name is not valid. */
export const branchTip = Effect.fnUntraced(function* (place: Place, branch: string) {
  if (Result.isFailure(parseBranchName(branch))) return null;
  const target = yield* refTarget(place, `heads/${branch}`);
  if (target !== null) return target.sha;
  yield* requireRepository(place);
  return null;
});

/**
 * The commit of a branch, otherwise of a tag (peeled). Null if neither exists. `unknown_ref` for a tag that names no
 * commit.
 */
export const namedCommit = Effect.fnUntraced(function* (place: Place, name: string) {
  const branch = yield* refTarget(place, `heads/${name}`);
  if (branch !== null) return branch.sha;
  let target = yield* refTarget(place, `tags/${name}`);
  for (let left = TAGS_DEEP; left > 0 && target?.type === "tag"; left -= 1) {
    const answer = yield* place.api(place.access, {
      method: "GET",
      path: pathIn(place, "git", "tags", target.sha),
      answer: Tag,
      known: [404],
    });
    target = answer.ok ? answer.value.object : null;
  }
  if (target === null || target.type === "commit") return target?.sha ?? null;
  return yield* unknownRef(`The tag ${name} does not point to a commit.`);
});

/** A commit's parents. Null if the commit does not exist. */
export const commitParents = Effect.fnUntraced(function* (place: Place, commit: string) {
  const answer = yield* place.api(place.access, {
    method: "GET",
    path: pathIn(place, "git", "commits", commit),
    answer: Commit,
    known: [404, 422],
  });
  return answer.ok ? answer.value.parents.map(({ sha }) => sha) : null;
});

/** Creates the branch at exactly that commit, create-only (git/port.ts G1). */
export const createBranch = Effect.fnUntraced(function* (
  place: Place,
  { branch, commit }: { readonly branch: string; readonly commit: string },
) {
  yield* checkNewBranch(branch, commit);
  const creation = yield* Effect.result(
    place.api(place.access, {
      method: "POST",
      path: pathIn(place, "git", "refs"),
      body: { ref: `refs/heads/${branch}`, sha: commit },
      answer: Ref,
      known: [422],
      repeatable: true, // a second one finds the first one's branch
    }),
  );
  if (Result.isSuccess(creation) && creation.success.ok) return;
  // The host's answer may differ from the effect, so the branch itself is read.
  const tip = yield* branchTip(place, branch);
  if (tip === commit) return;
  if (tip !== null) return yield* branchTaken(branch, tip);
  if (Result.isFailure(creation)) return yield* creation.failure;
  if ((yield* commitParents(place, commit)) === null) return yield* unknownRef(`Commit ${commit} not found.`);
  const reason = creation.success.ok ? "" : creation.success.message;
  return yield* new GitError({
    code: "refused",
    message: `The code host did not create the branch ${branch}. It says: ${reason}`,
  });
});
