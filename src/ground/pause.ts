/**
 * Whether this installation holds back what would act outside by itself. A restored copy begins so, because its original
 * may still run: both would fire the same schedules, tell the same receivers and push to the same servers.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

export class PauseSwitch {
  /** Since when, in ms since the epoch. Null if nothing is held back. */
  since: number | null = null;

  get isOn(): boolean {
    return this.since !== null;
  }
}

/** One for each service. */
export const Pause = Context.Reference<PauseSwitch>("platform/ground/Pause", {
  defaultValue: () => new PauseSwitch(),
});

/** Whether the installation is paused, and this was ordered before. The original does it, or did. @param orderedAt ms since the epoch */
export const isOfOriginal = (orderedAt: number): Effect.Effect<boolean> =>
  Effect.map(Pause, ({ since }) => since !== null && orderedAt < since);

/** The reason, for people. */
export const PAUSED =
  "This installation is a restored copy and is paused, so that it does not repeat what its original does. `platform admin resume` lets it go.";
