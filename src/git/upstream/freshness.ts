/**
 * Decides when mirrors are fetched (mirror.ts, B2 and B3): one fetch of a mirror at a time, shared by all callers that
 * waited for it, and never for a ref that is being pushed.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import type { GitError } from "../port.ts";

/** The state of one mirror. Instants are ms since the epoch. */
interface State {
  readonly turn: Semaphore.Semaphore;
  /** How many fetches have begun so far. */
  begun: number;
  /** When the last successful fetch began. */
  fetchedFrom: number;
  /** The last failed fetch, by its number. */
  failed: { readonly number: number; readonly error: GitError } | null;
  /** A fetch that began no later than this may miss a push's change. */
  doubtedAt: number;
  /** Refs that are being pushed, each with the number of pushes. */
  readonly pushed: Map<string, number>;
}

export interface Freshness {
  /** Completes after a successful fetch that began after the instant. An existing fetch counts. */
  readonly after: (projectId: string, instant: number) => Effect.Effect<void, GitError>;
  /** Records a fetch that was made elsewhere. */
  readonly note: (projectId: string, began: number) => void;
  /** The mirror is gone: the next caller fetches everything, and the others wait for that. */
  readonly lose: (projectId: string) => void;
  /** The repository no longer exists. */
  readonly forget: (projectId: string) => void;
  /** Protects these refs from fetches until the scope closes. Completes when no older fetch is running. */
  readonly reserve: (projectId: string, refs: readonly string[]) => Effect.Effect<void, never, Scope.Scope>;
}

const never = Number.NEGATIVE_INFINITY;

const isFresh = ({ fetchedFrom, doubtedAt }: State, instant: number): Effect.Effect<boolean> =>
  Effect.map(
    Clock.currentTimeMillis,
    // A fetch time in the future was recorded before the clock was set back.
    (now) => fetchedFrom <= now && fetchedFrom > Math.max(instant, doubtedAt),
  );

/** @param fetch fetches everything except `except`. It continues without waiting callers, until the scope closes. */
export const makeFreshness = Effect.fnUntraced(function* (
  fetch: (projectId: string, except: Iterable<string>) => Effect.Effect<void, GitError>,
): Effect.fn.Return<Freshness, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  const states = new Map<string, State>();
  const projectState = (projectId: string): State => {
    const state = states.get(projectId) ?? {
      turn: Semaphore.makeUnsafe(1),
      begun: 0,
      fetchedFrom: never,
      failed: null,
      doubtedAt: never,
      pushed: new Map<string, number>(),
    };
    states.set(projectId, state);
    return state;
  };
  const inTurn = (projectId: string, instant: number): Effect.Effect<void, GitError> => {
    const state = projectState(projectId);
    const before = state.begun;
    return state.turn.withPermit(
      Effect.gen(function* () {
        if (yield* isFresh(state, instant)) return;
        // A failure from before this call does not count, whatever age the caller accepts: the credential may have
        // changed since.
        if (state.failed !== null && state.failed.number > before) return yield* state.failed.error;
        const began = yield* Clock.currentTimeMillis;
        const number = (state.begun += 1);
        yield* Effect.tapError(fetch(projectId, state.pushed.keys()), (error) =>
          Effect.sync(() => {
            state.failed = { number, error };
          }),
        );
        state.fetchedFrom = began;
      }),
    );
  };

  const count = (state: State, refs: readonly string[], by: 1 | -1): void => {
    for (const ref of refs) {
      const left = (state.pushed.get(ref) ?? 0) + by;
      if (left === 0) state.pushed.delete(ref);
      else state.pushed.set(ref, left);
    }
  };

  return {
    after: (projectId, instant) =>
      Effect.suspend(() =>
        Effect.flatMap(isFresh(projectState(projectId), instant), (fresh) =>
          fresh ? Effect.void : Effect.flatMap(Effect.forkIn(inTurn(projectId, instant), scope), Fiber.join),
        ),
      ),
    note: (projectId, began) => {
      projectState(projectId).fetchedFrom = began;
    },
    lose: (projectId) => {
      projectState(projectId).fetchedFrom = never;
    },
    forget: (projectId) => void states.delete(projectId),
    reserve: (projectId, refs) => {
      const state = projectState(projectId);
      return Effect.acquireRelease(
        Effect.sync(() => count(state, refs, 1)),
        () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            count(state, refs, -1);
            state.doubtedAt = now;
          }),
      ).pipe(Effect.andThen(state.turn.withPermit(Effect.void)));
    },
  };
});
