/** Reads the pause of a restored copy at the start, and follows it until it ends. An installation at work asks nothing. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { Pause, PAUSED, PauseSwitch } from "../ground/pause.ts";
import { withAudit } from "./audit.ts";
import { Pauses } from "../store/ports/pauses.ts";

/** Holds the installation back from its next start on. A node that runs has read already that it is not paused. */
export const beginPause = Effect.gen(function* () {
  const { begin } = yield* Pauses;
  yield* begin(yield* Clock.currentTimeMillis);
}).pipe(withAudit(() => ({ action: "installation.paused", changes: {} })));

/** Lets the installation go. @returns whether it was paused */
export const endPause = Effect.flatMap(Pauses, ({ end }) => end).pipe(
  withAudit((wasPaused) => (wasPaused ? { action: "installation.resumed", changes: {} } : null)),
);

/** How long a node may take to notice that the pause ended. */
const LOOK_MS = 1_000;

export const pausingLayer = Layer.effect(
  Pause,
  Effect.gen(function* () {
    const { since } = yield* Pauses;
    const pause = new PauseSwitch();
    pause.since = yield* Effect.orDie(since);
    if (!pause.isOn) return pause;
    yield* Effect.logWarning(PAUSED);
    const look = Effect.map(since, (at) => (pause.since = at));
    yield* look.pipe(
      Effect.retry(Schedule.spaced(LOOK_MS)),
      Effect.repeat({ until: (at) => at === null, schedule: Schedule.spaced(LOOK_MS) }),
      Effect.andThen(Effect.logInfo("the pause has ended")),
      Effect.forkScoped,
    );
    return pause;
  }),
);
