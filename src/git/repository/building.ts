/** How a repository comes to be in its directory, and how it goes: whatever has a project's name is whole. */
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { access, rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { GitError, type Repository } from "../port.ts";
import { repositoryPath } from "./repository-path.ts";
import { runGit } from "../run.ts";

/** Work on files beside git's own, its failure told as the port tells failures. */
export const filesystem = <A>(doing: string, work: () => Promise<A>): Effect.Effect<A, GitError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => {
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

/** Builds a repository beside its place and renames it there; where another call was quicker, that one's stands. */
export const builtInPlace = <R>(
  directory: string,
  path: string,
  build: (aside: string) => Effect.Effect<void, GitError, R>,
): Effect.Effect<void, GitError, R> => {
  const aside = join(directory, `.building-${randomUUID()}`);
  return build(aside).pipe(
    Effect.andThen(
      filesystem("Putting the repository in its place", async () => {
        // Its age is counted from here (kept.ts), however long the building took.
        const now = new Date();
        await utimes(aside, now, now);
        await rename(aside, path).catch(async (error: unknown) => {
          // A directory is never renamed over one that has something in it.
          await access(join(path, "HEAD")).catch(() => Promise.reject(error));
        });
      }),
    ),
    Effect.ensuring(Effect.ignore(filesystem("Sweeping", () => rm(aside, { recursive: true, force: true })))),
  );
};

/** Removes a project's repository; one that is not there is no error. */
export const removeRepository = (
  directory: string,
  repository: Repository,
): Effect.Effect<void, GitError> => {
  const path = repositoryPath(directory, repository.projectId);
  if (path === null) return Effect.void;
  const aside = join(directory, `.removing-${randomUUID()}`);
  return filesystem("Removing the repository", async () => {
    const gone = await rename(path, aside).then(
      () => false,
      (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? true : Promise.reject(error)),
    );
    if (!gone) await rm(aside, { recursive: true, force: true });
  });
};
