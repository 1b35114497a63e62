/**
 * When people and programs last reached into a session (api.md 3 "Idle"): a request, or bytes on a relayed WebSocket or
 * upload. In the memory of the node that has the sandbox: after a restart everything counts as active since then.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";

export class Activity extends Context.Service<
  Activity,
  {
    /** Somebody reached into the session just now. Called for every request and chunk: it does next to nothing. */
    readonly touch: (sessionId: string) => void;
    /** When that last was, ms since the epoch; where it never was, when this node began to look. */
    readonly last: (sessionId: string) => number;
    /** Forgets all sessions but these. */
    readonly keep: (sessionIds: ReadonlySet<string>) => void;
  }
>()("platform/actors/Activity") {}

export const activityLayer = Layer.effect(
  Activity,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const begun = clock.currentTimeMillisUnsafe();
    const touched = new Map<string, number>();
    return {
      touch: (sessionId) => void touched.set(sessionId, clock.currentTimeMillisUnsafe()),
      last: (sessionId) => touched.get(sessionId) ?? begun,
      keep: (sessionIds) => {
        for (const id of touched.keys()) if (!sessionIds.has(id)) touched.delete(id);
      },
    };
  }),
);
