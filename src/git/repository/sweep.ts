/**
 * Removes leftovers of a crash from the repositories' directory: repositories half built or half removed, lock files of
 * refs, quarantines of pushes, partly fetched packs. It runs at start, before anything else uses the directory. After a
 * quick restart some leftovers are too young, so it checks those again until they are old enough.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** A git that outlived the service holds its locks for milliseconds. Older locks have no owner. */
const lockAgeMs = 10_000;
/** Limits how many directories are open at once at the start. */
const concurrency = 8;

/** `.key-`: files that ssh needs while it runs (remote.ts). `.attributes-`: a merge's (attributes.ts). */
const isAside = (name: string): boolean => /^\.(?:building|removing|key|attributes)-/.test(name);

const removeTree = (path: string): Promise<void> => rm(path, { recursive: true, force: true });

/** Removes leftovers that are old enough. A failed removal is ignored. @returns those that are too young. */
const sweepOld = async (paths: readonly string[]): Promise<readonly string[]> => {
  const young = await Promise.all(
    paths.map(async (path) => {
      const stats = await stat(path).catch(() => null);
      if (stats === null) return [];
      // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
      if (Date.now() - stats.mtimeMs <= lockAgeMs) return [path];
      await removeTree(path).catch(() => undefined);
      return [];
    }),
  );
  return young.flat();
};

const sweepRepository = async (path: string): Promise<readonly string[]> => {
  const namesIn = (...directory: readonly string[]) => readdir(join(path, ...directory)).catch(() => []);
  const [top, refs, objects, packs] = await Promise.all([
    namesIn(),
    readdir(join(path, "refs"), { recursive: true }).catch(() => []),
    namesIn("objects"),
    namesIn("objects", "pack"),
  ]);
  const leftovers = [
    ...top.filter((name) => name.endsWith(".lock")),
    ...refs.filter((name) => name.endsWith(".lock")).map((name) => join("refs", name)),
    ...objects.filter((name) => name.startsWith("tmp_objdir-")).map((name) => join("objects", name)),
    ...packs.filter((name) => name.startsWith("tmp_")).map((name) => join("objects", "pack", name)),
  ];
  return await sweepOld(leftovers.map((name) => join(path, name)));
};

const sweepEntry = async (directory: string, name: string): Promise<readonly string[]> => {
  const path = join(directory, name);
  if (!isAside(name)) return await sweepRepository(path);
  await removeTree(path);
  return [];
};

/**
 * Sweeps `directory` and, in the caller's scope, later sweeps the leftovers that were too young. A leftover that cannot
 * be removed stays until the next start and does no harm.
 */
export const sweepLeftovers = (directory: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const names = yield* Effect.promise(() => readdir(directory).catch((): string[] => []));
    const removable = names.filter((name) => isAside(name) || name.endsWith(".git"));
    const young = yield* Effect.forEach(
      removable,
      (name) =>
        Effect.orElseSucceed(
          Effect.tryPromise(() => sweepEntry(directory, name)),
          () => [],
        ),
      { concurrency },
    );
    // Only leftovers from the start: later files belong to this service.
    const later = Effect.gen(function* () {
      for (let left: readonly string[] = young.flat(); left.length > 0;) {
        yield* Effect.sleep(lockAgeMs);
        const candidates = left;
        left = yield* Effect.promise(() => sweepOld(candidates));
      }
    });
    yield* Effect.forkScoped(later);
  });
