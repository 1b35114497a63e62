/**
 * Bounds the git processes that serve clients. Packing costs memory and CPU of the service's own machine, and one
 * sandbox may open hundreds of connections (threats.md T09). Requests beyond the bound wait for a place.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";

export interface PlaceLimits {
  readonly inAll: number;
  readonly perRepository: number;
}

/**
 * More would only take turns on a machine of two cores. The bound for each repository leaves room for clients of
 * others.
 */
export const PLACES: PlaceLimits = { inAll: 32, perRepository: 8 };

/** Takes a place for a repository's git until the scope closes. */
export type TakePlace = (projectId: string) => Effect.Effect<void, never, Scope.Scope>;

export const makePlaces = (limits: PlaceLimits): TakePlace => {
  const all = Semaphore.makeUnsafe(limits.inAll);
  /** Repositories that are being served or waited for now. */
  const repositories = new Map<string, { readonly turns: Semaphore.Semaphore; users: number }>();
  const enter = (projectId: string) =>
    Effect.sync(() => {
      const entry = repositories.get(projectId) ?? {
        turns: Semaphore.makeUnsafe(limits.perRepository),
        users: 0,
      };
      entry.users += 1;
      repositories.set(projectId, entry);
      return entry;
    });
  const leave = (projectId: string, entry: { users: number }) =>
    Effect.sync(() => {
      entry.users -= 1;
      if (entry.users === 0) repositories.delete(projectId);
    });
  return Effect.fnUntraced(function* (projectId) {
    const { turns } = yield* Effect.acquireRelease(enter(projectId), (entry) => leave(projectId, entry));
    yield* Semaphore.takeScoped(turns, 1);
    yield* Semaphore.takeScoped(all, 1);
  });
};
