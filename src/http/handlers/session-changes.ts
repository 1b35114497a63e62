/** The pushed work of a session: its branch, compared with the commit at which it began. */
import * as Effect from "effect/Effect";
import { GitBackend, type GitError } from "../../git/port.ts";
import { Caller } from "../api/access.ts";
import { sessionFor } from "./answers.ts";
import { refGone } from "./merging.ts";
import { comparisonWire, DIFF_LIMIT_BYTES } from "./wire.ts";

interface SessionPath {
  readonly pid: string;
  readonly sid: string;
}

const NO_CHANGES = { commits: [], commitsTotal: 0, filesChanged: [], filesTotal: 0 };

/** The sides of the comparison. Null while the branch does not exist. */
const sidesOf = Effect.fnUntraced(function* (path: SessionPath) {
  // A session's branch has its id as its name.
  const { baseCommit, id } = yield* sessionFor(yield* Caller, path);
  const git = yield* GitBackend;
  const head = yield* git.branchTip({ projectId: path.pid }, id);
  return { baseCommit, sides: baseCommit === null || head === null ? null : { base: baseCommit, head } };
});

const comparable = <A, E, R>(read: Effect.Effect<A, E | GitError, R>) =>
  Effect.catchTag(read, "GitError", (error) => Effect.fail(refGone(error as GitError)));

/** `GET …/sessions/{sid}/changes` */
export const changesOf = (path: SessionPath) =>
  comparable(
    Effect.gen(function* () {
      const { baseCommit, sides } = yield* sidesOf(path);
      const git = yield* GitBackend;
      const found = sides === null ? NO_CHANGES : yield* git.compare({ projectId: path.pid }, sides);
      return { base_commit: baseCommit, head_commit: sides?.head ?? null, ...comparisonWire(found) };
    }),
  );

/** `GET …/sessions/{sid}/diff` */
export const diffOf = (path: SessionPath) =>
  comparable(
    Effect.gen(function* () {
      const { sides } = yield* sidesOf(path);
      const git = yield* GitBackend;
      return sides === null
        ? ""
        : yield* git.diff({ projectId: path.pid }, { ...sides, maxBytes: DIFF_LIMIT_BYTES });
    }),
  );
