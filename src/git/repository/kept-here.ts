/** Repositories in this node's directories (kept.ts): hosted ones and mirrors, found by their files. */
import * as Effect from "effect/Effect";
import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filesystem, removeRepository } from "./building.ts";
import type { KeptHere } from "../kept.ts";
import type { GitBackend, GitError } from "../port.ts";
import { repositoriesIn, repositoryPath } from "./repository-path.ts";

const MARK = "unclaimed";

/** K1. */
export const markUnclaimed = (path: string): Effect.Effect<void, GitError> =>
  filesystem("Marking the repository", () => writeFile(join(path, MARK), ""));

/** Projects in a directory whose repository, or this file in it, was not written for that long. */
const standing = (directory: string, file: string, ageMs: number): Effect.Effect<readonly string[]> =>
  Effect.flatMap(repositoriesIn(directory), (ids) =>
    Effect.filter(
      ids,
      (id) =>
        Effect.promise(async () => {
          const stats = await stat(join(directory, `${id}.git`, file)).catch(() => null);
          // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
          return stats !== null && Date.now() - stats.mtimeMs >= ageMs;
        }),
      { concurrency: 8 },
    ),
  );

export const keptHosted = (directory: string): KeptHere => ({
  unclaimed: (ageMs) => standing(directory, MARK, ageMs),
  claim: ({ projectId }) => {
    const path = repositoryPath(directory, projectId);
    return path === null
      ? Effect.void
      : filesystem("Claiming the repository", () => rm(join(path, MARK), { force: true }));
  },
  remove: (repository) => removeRepository(directory, repository),
});

/** @param remove also removes the mirror's other files. */
export const keptMirrors = (
  directory: string,
  { remove }: Pick<GitBackend["Service"], "remove">,
): KeptHere => ({
  unclaimed: (ageMs) => standing(directory, "", ageMs),
  claim: () => Effect.void,
  remove,
});
