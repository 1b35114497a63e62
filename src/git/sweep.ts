/**
 * What a service or a machine that died may leave in the repositories' directory: repositories half built or half
 * removed, lock files of refs, quarantines of pushes. Run at start, before anything else uses the directory.
 */
import * as Effect from "effect/Effect";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** A git that outlived the service holds its locks for milliseconds: older ones are nobody's. */
const lockAgeMs = 10_000;
/** A start must not open ten thousand directories at once. */
const concurrency = 8;

const isAside = (name: string): boolean => name.startsWith(".building-") || name.startsWith(".removing-");

const removeTree = (path: string): Promise<void> => rm(path, { recursive: true, force: true });

const sweepRepository = async (path: string): Promise<void> => {
  const [top, refs, objects] = await Promise.all([
    readdir(path).catch(() => []),
    readdir(join(path, "refs"), { recursive: true }).catch(() => []),
    readdir(join(path, "objects")).catch(() => []),
  ]);
  const leftovers = [
    ...top.filter((name) => name.endsWith(".lock")),
    ...refs.filter((name) => name.endsWith(".lock")).map((name) => join("refs", name)),
    ...objects.filter((name) => name.startsWith("tmp_objdir-")).map((name) => join("objects", name)),
  ];
  await Promise.all(
    leftovers.map(async (name) => {
      const file = join(path, name);
      const found = await stat(file).catch(() => null);
      // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
      if (found !== null && Date.now() - found.mtimeMs > lockAgeMs) await removeTree(file);
    }),
  );
};

const sweepEntry = (directory: string, name: string): Promise<void> => {
  const path = join(directory, name);
  return isAside(name) ? removeTree(path) : sweepRepository(path);
};

/** Sweeps `directory`; what cannot be removed stays until the next start and is in nobody's way. */
export const sweepLeftovers = (directory: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const names = yield* Effect.promise(() => readdir(directory).catch((): string[] => []));
    const swept = names.filter((name) => isAside(name) || name.endsWith(".git"));
    yield* Effect.forEach(
      swept,
      (name) => Effect.ignore(Effect.tryPromise(() => sweepEntry(directory, name))),
      {
        concurrency,
        discard: true,
      },
    );
  });
