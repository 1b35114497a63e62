/**
 * The pushed work of a session: what its branch adds to the default branch, or to the branch from which it began. And its
 * saved work: what the saved commit adds to its branch.
 */
import * as Effect from "effect/Effect";
import { GitBackend, type GitError } from "../../git/port.ts";
import { Caller } from "../api/access.ts";
import { projectFor, sessionFor } from "./answers.ts";
import { shownWork } from "./shown-work.ts";
import { refGone } from "../refusals.ts";
import { comparisonWire, DIFF_LIMIT_BYTES } from "./wire.ts";

export interface SessionPath {
  readonly pid: string;
  readonly sid: string;
}

interface WorkQuery {
  readonly of?: "branch" | "saved";
}

const NO_CHANGES = { commits: [], commitsTotal: 0, filesChanged: [], filesTotal: 0 };

/**
 * The branch's tip, and the sides of the comparison. They are null if there is nothing to compare: the branch does not
 * exist, or the default branch has every commit of it.
 *
 * Work is new against the default branch. So the list leaves out what was merged into that branch, and what the agent
 * merged from it. A session that began from another branch is compared with the commit at which it began: the other
 * branch's commits are not its work.
 */
const sidesOf = Effect.fnUntraced(function* (path: SessionPath, { of = "branch" }: WorkQuery) {
  const caller = yield* Caller;
  // A session's branch has its id as its name.
  const { baseCommit, baseRef, id, saved } = yield* sessionFor(caller, path);
  const { defaultBranch } = yield* projectFor(caller, path.pid);
  const git = yield* GitBackend;
  const repository = { projectId: path.pid };
  const head = yield* git.branchTip(repository, id);
  const found = { baseCommit, head };
  if (baseCommit === null || head === null) return { ...found, sides: null };
  if (of === "saved") {
    const wip = saved?.wip ?? null;
    return { ...found, sides: wip === null ? null : { base: head, head: wip } };
  }
  const merged = { base: defaultBranch, head };
  if (baseRef === defaultBranch) return { ...found, sides: merged };
  const { commitsTotal } = yield* git.compare(repository, merged);
  return { ...found, sides: commitsTotal === 0 ? null : { base: baseCommit, head } };
});

/**
 * The sides with which a workspace is compared, so that the result is what a change request of everything would contain.
 * Null while the branch does not exist.
 */
export const workspaceSidesOf = (path: SessionPath) =>
  comparable(
    Effect.gen(function* () {
      const { baseCommit, head, sides } = yield* sidesOf(path, {});
      if (baseCommit === null || head === null) return null;
      // Everything pushed is merged. Only newer work is new.
      if (sides === null) return { base: head, pushed: head };
      if (sides.base === baseCommit) return { base: baseCommit, pushed: head };
      const { mergeBase } = yield* (yield* GitBackend).compare({ projectId: path.pid }, sides);
      return { base: mergeBase ?? baseCommit, pushed: head };
    }),
  );

const comparable = <A, E, R>(read: Effect.Effect<A, E | GitError, R>) =>
  Effect.catchTag(read, "GitError", (error) => Effect.fail(refGone(error as GitError)));

/** `GET …/sessions/{sid}/changes` */
export const changesOf = (path: SessionPath, query: WorkQuery) =>
  comparable(
    Effect.gen(function* () {
      const { baseCommit, head, sides } = yield* sidesOf(path, query);
      const git = yield* GitBackend;
      const found = sides === null ? NO_CHANGES : yield* git.compare({ projectId: path.pid }, sides);
      const changes = { base_commit: baseCommit, head_commit: head, ...comparisonWire(found) };
      return yield* shownWork(path.pid, changes);
    }),
  );

/** `GET …/sessions/{sid}/diff`, of one file if `query` names its path. */
export const diffOf = (path: SessionPath, { of, ...query }: WorkQuery & { readonly path?: string }) =>
  comparable(
    Effect.gen(function* () {
      const { sides } = yield* sidesOf(path, of === undefined ? {} : { of });
      const git = yield* GitBackend;
      const part = { ...query, maxBytes: DIFF_LIMIT_BYTES };
      const diff = sides === null ? "" : yield* git.diff({ projectId: path.pid }, { ...sides, ...part });
      return yield* shownWork(path.pid, diff);
    }),
  );
