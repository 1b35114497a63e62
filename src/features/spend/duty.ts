/** Counts calls whose node died: the reservations that were not renewed (ports/spend.ts S5). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { DUTIES } from "../../services/duties.ts";
import { runDuty } from "../../services/duty.ts";
import { LAPSES_MAX, Spend } from "./ports/spend.ts";

/** One round. */
export const countLapsed = Effect.gen(function* () {
  const { lapse } = yield* Spend;
  for (let count = LAPSES_MAX; count === LAPSES_MAX;) {
    count = yield* lapse(yield* Clock.currentTimeMillis);
    if (count > 0)
      yield* Effect.annotateLogs(
        Effect.logWarning("calls of models were cut off, and are counted as estimates"),
        {
          count,
        },
      );
  }
});

export const spendLayer = Layer.effectDiscard(
  runDuty("spend", { round: countLapsed, periodMs: DUTIES.spend.periodMs }),
);
