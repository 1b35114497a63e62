/**
 * When mirrors are fetched (mirror.ts, B2 and B3): one fetch of a mirror at a time, shared by all who waited for it, and
 * never a ref that is just being pushed.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import type { GitError } from "../port.ts";

/** Of one mirror; instants are ms since the epoch. */
interface State {
  readonly turn: Semaphore.Semaphore;
  /** Fetches that have begun so far. */
  begun: number;
  /** When the last fetch that succeeded began. */
  fetchedFrom: number;
  /** The last fetch that failed, by its number. */
  failed: { readonly number: number; readonly error: GitError } | null;
  /** A fetch that began no later may lack what a push has moved. */
  doubtedAt: number;
  /** Refs that are being pushed, and by how many. */
  readonly pushed: Map<string, number>;
}

export interface Freshness {
  /** Ends when a fetch has succeeded that began after the instant; what has been fetched since is not fetched again. */
  readonly after: (projectId: string, instant: number) => Effect.Effect<void, GitError>;
  /** Notes a fetch that was made otherwise. */
  readonly note: (projectId: string, began: number) => void;
  /** What was fetched is not here any more: the next one fetches all of it, and the others wait for that. */
  readonly lose: (projectId: string) => void;
  /** There is no such repository any more. */
  readonly forget: (projectId: string) => void;
  /** Keeps fetches away from these refs until the scope closes; ends when none runs that does not know of it. */
  readonly reserve: (projectId: string, refs: readonly string[]) => Effect.Effect<void, never, Scope.Scope>;
}

const never = Number.NEGATIVE_INFINITY;

const isFresh = ({ fetchedFrom, doubtedAt }: State, instant: number): Effect.Effect<boolean> =>
  Effect.map(
    Clock.currentTimeMillis,
    // What was fetched in an hour that is still to come was fetched before the clock was set back.
    (now) => fetchedFrom <= now && fetchedFrom > Math.max(instant, doubtedAt),
  );

/** @param fetch fetches everything but `except`. It goes on when nobody waits for it any more, until the scope closes. */
export const makeFreshness = Effect.fnUntraced(function* (
  fetch: (projectId: string, except: Iterable<string>) => Effect.Effect<void, GitError>,
): Effect.fn.Return<Freshness, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  const states = new Map<string, State>();
  const stateOf = (projectId: string): State => {
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
    const state = stateOf(projectId);
    const before = state.begun;
    return state.turn.withPermit(
      Effect.gen(function* () {
        if (yield* isFresh(state, instant)) return;
        // However old what it wants may be, a failure from before it asked is not its own: the credential may be another.
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
        Effect.flatMap(isFresh(stateOf(projectId), instant), (fresh) =>
          fresh ? Effect.void : Effect.flatMap(Effect.forkIn(inTurn(projectId, instant), scope), Fiber.join),
        ),
      ),
    note: (projectId, began) => {
      stateOf(projectId).fetchedFrom = began;
    },
    lose: (projectId) => {
      stateOf(projectId).fetchedFrom = never;
    },
    forget: (projectId) => void states.delete(projectId),
    reserve: (projectId, refs) => {
      const state = stateOf(projectId);
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
