/** Creates and removes repositories in their directory: a repository with a project's name is always complete. */
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { access, rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { isOutOfSpace } from "../../domain/repository/file-fault.ts";
import { diskFull } from "../failure.ts";
import { GitError, type Repository } from "../port.ts";
import { repositoryPath } from "./repository-path.ts";
import { runGit } from "../run.ts";

/** Work on files other than git's own. A failure becomes one of the port's. */
export const filesystem = <A>(doing: string, work: () => Promise<A>): Effect.Effect<A, GitError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => {
      if (isOutOfSpace(cause)) return diskFull();
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown reason";
      return new GitError({ code: "git_failed", message: `${doing} failed (${code}).` });
    },
  });

/** Makes an empty bare repository. */
export const initBare = (path: string): Effect.Effect<void, GitError> =>
  Effect.asVoid(
    runGit({
      repository: null,
      args: [
        "init",
        "--quiet",
        "--bare",
        "--template=",
        "--object-format=sha1",
        "--initial-branch=main",
        path,
      ],
    }),
  );

/**
 * Builds a repository beside its place and renames it there. If a concurrent call finished first, its repository stays.
 */
export const builtInPlace = <R>(
  directory: string,
  path: string,
  build: (aside: string) => Effect.Effect<void, GitError, R>,
): Effect.Effect<void, GitError, R> => {
  const aside = join(directory, `.building-${randomUUID()}`);
  return build(aside).pipe(
    Effect.andThen(
      filesystem("Putting the repository in its place", async () => {
        // The repository's age counts from here (kept.ts), however long building it took.
        const now = new Date();
        await utimes(aside, now, now);
        await rename(aside, path).catch(async (error: unknown) => {
          // A rename never replaces a directory that has content.
          await access(join(path, "HEAD")).catch(() => Promise.reject(error));
        });
      }),
    ),
    Effect.ensuring(Effect.ignore(filesystem("Sweeping", () => rm(aside, { recursive: true, force: true })))),
  );
};

/** Removes a project's repository. Idempotent. */
export const removeRepository = (
  directory: string,
  repository: Repository,
): Effect.Effect<void, GitError> => {
  const path = repositoryPath(directory, repository.projectId);
  if (path === null) return Effect.void;
  const aside = join(directory, `.removing-${randomUUID()}`);
  return filesystem("Removing the repository", async () => {
    const isAbsent = await rename(path, aside).then(
      () => false,
      (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? true : Promise.reject(error)),
    );
    if (!isAbsent) await rm(aside, { recursive: true, force: true });
  });
};
