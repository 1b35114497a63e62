/**
 * Paths of hosted repositories: `<directory>/<project id>.git`. Beside them are the hooks, and repositories that are
 * being built or removed. Names that begin with a dot never belong to a project.
 */
import * as Effect from "effect/Effect";
import { access, readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseUuid } from "../../domain/ids.ts";
import { GitError, type Repository } from "../port.ts";

export const hooksDirectory = (directory: string): string => join(directory, ".hooks");

/**
 * The repository's path, whether or not it exists. Null for text that is not a project id, because it could name any
 * path.
 */
export const repositoryPath = (directory: string, projectId: string): string | null =>
  parseUuid(projectId) === null ? null : join(directory, `${projectId}.git`);

export const unknownRepository = (): GitError =>
  new GitError({
    code: "unknown_repository",
    message: "This service does not host a repository for the project.",
  });

/** The path of an existing repository, otherwise `unknown_repository`. */
export const existingRepository = (
  directory: string,
  repository: Repository,
): Effect.Effect<string, GitError> => {
  const path = repositoryPath(directory, repository.projectId);
  return path === null
    ? Effect.fail(unknownRepository())
    : Effect.tryPromise({ try: () => access(join(path, "HEAD")), catch: unknownRepository }).pipe(
        Effect.as(path),
      );
};

/** The projects whose repositories are here. */
export const repositoriesIn = (directory: string): Effect.Effect<readonly string[]> =>
  Effect.map(
    Effect.promise(() => readdir(directory)),
    (names) =>
      names.flatMap((name) => {
        const id = name.endsWith(".git") ? parseUuid(name.slice(0, -".git".length)) : null;
        return id === null ? [] : [id];
      }),
  );
