/** The pause in memory: see postgres/pauses.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Pauses } from "../../../../src/store/ports/pauses.ts";

export const layer = Layer.sync(Pauses, () => {
  let since: number | null = null;
  return {
    since: Effect.sync(() => since),
    begin: (now: number) => Effect.sync(() => void (since ??= now)),
    end: Effect.sync(() => {
      const wasPaused = since !== null;
      since = null;
      return wasPaused;
    }),
  };
});
