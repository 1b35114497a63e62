/**
 * The pushed work of a session: what its branch adds to the default branch, or to the branch from which it began. And its
 * saved work: what it adds to that branch. The node that has the save compares it (saves/views/view.ts).
 */
import * as Effect from "effect/Effect";
import { GitBackend, type GitError } from "../../../git/port.ts";
import { workSides } from "../../../services/sessions/session-work.ts";
import { Saves, type SavePlace, type WhichSave } from "../../../saves/port.ts";
import { Caller } from "../../api/access.ts";
import { notFound } from "../../api/errors.ts";
import { requirePrivilege } from "../../callers/authorize.ts";
import { projectFor, sessionFor } from "../answers.ts";
import { shownWork } from "./shown-work.ts";
import { refGone } from "../../answers/refusals.ts";
import { comparisonWire, DIFF_LIMIT_BYTES } from "../wire.ts";

export interface SessionPath {
  readonly pid: string;
  readonly sid: string;
}

interface WorkQuery extends WhichSave {
  readonly of?: "branch" | "saved";
}

const savePlace = ({ pid, sid }: SessionPath): SavePlace => ({ projectId: pid, sessionId: sid });

const NO_CHANGES = { commits: [], commitsTotal: 0, filesChanged: [], filesTotal: 0 };

/** The branch's tip, and the sides of the comparison. They are null if there is nothing to compare, or no branch. */
const comparedSides = Effect.fnUntraced(function* (path: SessionPath) {
  const caller = yield* Caller;
  // A session's branch has its id as its name.
  const session = yield* sessionFor(caller, path);
  const { defaultBranch } = yield* projectFor(caller, path.pid);
  const head = yield* (yield* GitBackend).branchTip({ projectId: path.pid }, session.id);
  const sides = head === null ? null : yield* workSides({ session, defaultBranch, head });
  return { baseCommit: session.baseCommit, head, sides };
});

/**
 * The sides with which a workspace is compared, so that the result is what a change request of everything would contain.
 * Null while the branch does not exist.
 */
export const workspaceSides = (path: SessionPath) =>
  comparable(
    Effect.gen(function* () {
      const { baseCommit, head, sides } = yield* comparedSides(path);
      if (baseCommit === null || head === null) return null;
      // Everything pushed is merged. Only newer work is new.
      if (sides === null) return { base: head, pushed: head };
      if (sides.base === baseCommit) return { base: baseCommit, pushed: head };
      const { mergeBase } = yield* (yield* GitBackend).compare({ projectId: path.pid }, sides);
      return { base: mergeBase ?? baseCommit, pushed: head };
    }),
  );

/** Refuses a save that the session does not name: an empty comparison would say that it has nothing. */
const knownSave = Effect.fnUntraced(function* (path: SessionPath, { save }: WhichSave) {
  if (save === undefined) return;
  const { saved } = yield* sessionFor(yield* Caller, path);
  const sandboxIds = [saved?.sandbox, ...(saved?.earlier ?? []).map(({ id }) => id)];
  if (!sandboxIds.includes(save)) return yield* notFound("save");
});

/** No agent reads a save, not even that of its own session (saves.md 3). */
const requireSaved = Effect.flatMap(Caller, (caller) => requirePrivilege(caller, "read_saved_work"));

const comparable = <A, E, R>(read: Effect.Effect<A, E | GitError, R>) =>
  Effect.catchTag(read, "GitError", (error) => Effect.fail(refGone(error as GitError)));

/** `GET …/sessions/{sid}/changes` */
export const sessionChanges = (path: SessionPath, { of, ...which }: WorkQuery) =>
  comparable(
    Effect.gen(function* () {
      if (of === "saved") yield* requireSaved;
      const { baseCommit, head, sides } = yield* comparedSides(path);
      yield* knownSave(path, which);
      const git = yield* GitBackend;
      const comparison =
        of === "saved"
          ? yield* (yield* Saves).compare(savePlace(path), which)
          : sides && (yield* git.compare({ projectId: path.pid }, sides));
      const result = comparison ?? NO_CHANGES;
      const changes = { base_commit: baseCommit, head_commit: head, ...comparisonWire(result) };
      return yield* shownWork(savePlace(path), changes);
    }),
  );

/** `GET …/sessions/{sid}/diff`, of one file if `query` names its path. */
export const sessionDiff = (
  path: SessionPath,
  { of, save, ...query }: WorkQuery & { readonly path?: string },
) =>
  comparable(
    Effect.gen(function* () {
      if (of === "saved") yield* requireSaved;
      const { sides } = yield* comparedSides(path);
      yield* knownSave(path, save === undefined ? {} : { save });
      const git = yield* GitBackend;
      const part = { ...query, maxBytes: DIFF_LIMIT_BYTES };
      if (of === "saved")
        return yield* shownWork(
          savePlace(path),
          yield* (yield* Saves).diff(savePlace(path), { ...part, ...(save !== undefined && { save }) }),
        );
      const diff = sides === null ? "" : yield* git.diff({ projectId: path.pid }, { ...sides, ...part });
      return yield* shownWork(savePlace(path), diff);
    }),
  );
