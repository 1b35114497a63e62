/** `GET /v1/projects/{pid}/paths`: the names of all files of the repository, for people who search them. */
import * as Effect from "effect/Effect";
import { GitBackend } from "../../../git/port.ts";
import { Caller } from "../../api/access.ts";
import { notFound } from "../../api/errors.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { projectFor } from "../answers.ts";
import { shownWork } from "../sessions/shown-work.ts";

/** How many paths an answer names. */
export const PATHS_MAX = 20_000;

/** @param query `ref` as `base_ref` of a session. Absent: the default branch */
export const projectPaths = Effect.fnUntraced(function* (pid: string, { ref }: { readonly ref?: string }) {
  const project = yield* projectFor(yield* Caller, pid);
  const repository = { projectId: project.id };
  const git = yield* GitBackend;
  const read = Effect.gen(function* () {
    const commit = yield* git.resolveBase(repository, ref ?? project.defaultBranch);
    const { paths, total } = yield* git.paths(repository, { commit, limit: PATHS_MAX });
    return { commit, paths, total };
  });
  const listing = yield* Effect.catchTag(read, "GitError", (error) =>
    Effect.fail(error.code === "unknown_ref" ? notFound("branch or commit") : gitFailed(error)),
  );
  return yield* shownWork({ projectId: project.id, sessionId: null }, listing);
});
