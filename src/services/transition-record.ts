/**
 * Keeps the history of actors without a stored snapshot: triggers and accounts.
 *
 *  V1 An actor never waits for its history.
 *  V2 Memory is bounded: if the database is away for long, the oldest rows are dropped and counted in the log.
 *  V3 At most one batch a second is written. After a crash, up to one second of this history is missing. The actors
 *     themselves begin anew.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { DUTIES } from "./duties.ts";
import { runDuty } from "./duty.ts";
import type { Named, Snapshot } from "../machines/step.ts";
import type { Change } from "../store/ports/journal.ts";
import { Transitions, type VolatileKind } from "../store/ports/transitions.ts";
import type { NewTransition } from "../machines/transition.ts";
import { transitionRow } from "../machines/transition.ts";

/** How many rows wait at most, and how many one statement writes. */
const WAITING_MAX = 10_000;
const TOGETHER = 1_000;

interface VolatileKey {
  readonly kind: VolatileKind;
  readonly id: string;
}
type Row = NewTransition & { readonly actor: VolatileKey };
type Step = Change<Snapshot<string, object>, Named, Named>;

/** Silent unless a layer provides it. */
export const TransitionRecord = Context.Reference<{
  readonly keep: (actor: VolatileKey, step: Step) => void;
}>("platform/services/TransitionRecord", { defaultValue: () => ({ keep: () => undefined }) });

export const transitionRecordLayer: Layer.Layer<never, never, Transitions> = Layer.effect(
  TransitionRecord,
  Effect.gen(function* () {
    const transitions = yield* Transitions;
    let waiting: Row[] = [];
    let droppedCount = 0;
    const trim = () => {
      const surplus = waiting.length - WAITING_MAX;
      if (surplus <= 0) return;
      waiting.splice(0, surplus);
      droppedCount += surplus;
    };
    const batch = Effect.suspend(() => {
      const rows = waiting.splice(0, TOGETHER);
      const back = Effect.sync(() => {
        waiting = [...rows, ...waiting];
        trim();
      });
      return Effect.tapError(transitions.add(rows), () => back);
    });
    const warn = Effect.suspend(() => {
      const lostCount = droppedCount;
      droppedCount = 0;
      return lostCount === 0
        ? Effect.void
        : Effect.logWarning("a part of the history was dropped", { rows: lostCount });
    });
    const write = Effect.andThen(
      warn,
      Effect.whileLoop({ while: () => waiting.length > 0, body: () => batch, step: () => undefined }),
    );
    const { periodMs } = DUTIES.transition_record;
    yield* runDuty("transition_record", { round: write, first: "a period", periodMs });
    // At the service's shutdown the waiting rows are written, if the database is available.
    yield* Effect.addFinalizer(() => Effect.ignore(write));
    return {
      keep: (actor, step) => {
        const row = transitionRow(step);
        if (row === null) return;
        waiting.push({ ...row, actor });
        trim();
      },
    };
  }),
);
