/**
 * When people and programs last used a session (api.md 3 "Idle"): a request, or bytes on a relayed WebSocket or upload.
 * Kept in the memory of the sandbox's node: after a restart every session counts as active from then on.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";

export class Activity extends Context.Service<
  Activity,
  {
    /** Records a use of the session just now. Called for every request and chunk, so it must be cheap. */
    readonly touch: (sessionId: string) => void;
    /** Records that a request or connection into the sandbox is under way. @returns what to call at its end */
    readonly open: (sessionId: string) => () => void;
    readonly isOpen: (sessionId: string) => boolean;
    /** The last use, ms since the epoch. Without one, the time when this node began to record. */
    readonly last: (sessionId: string) => number;
    /** Forgets all sessions but these. */
    readonly keep: (sessionIds: ReadonlySet<string>) => void;
  }
>()("platform/services/Activity") {}

export const activityLayer = Layer.effect(
  Activity,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const startedAt = clock.currentTimeMillisUnsafe();
    const lastTouches = new Map<string, number>();
    const openCounts = new Map<string, number>();
    const count = (sessionId: string, by: number): void => {
      const now = (openCounts.get(sessionId) ?? 0) + by;
      if (now > 0) openCounts.set(sessionId, now);
      else openCounts.delete(sessionId);
    };
    return {
      touch: (sessionId) => void lastTouches.set(sessionId, clock.currentTimeMillisUnsafe()),
      open: (sessionId) => {
        count(sessionId, 1);
        return () => count(sessionId, -1);
      },
      isOpen: (sessionId) => openCounts.has(sessionId),
      last: (sessionId) => lastTouches.get(sessionId) ?? startedAt,
      keep: (sessionIds) => {
        for (const id of lastTouches.keys()) if (!sessionIds.has(id)) lastTouches.delete(id);
      },
    };
  }),
);
