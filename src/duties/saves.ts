/** Removes replaced objects of saved work from this node's disk within a day, and unused views (saves/collect.ts). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { SaveCollection } from "../saves/port.ts";
import { DUTIES } from "../services/duties.ts";
import { runDuty } from "../services/duty.ts";

export const savesLayer = Layer.effectDiscard(
  Effect.flatMap(SaveCollection, ({ round }) =>
    runDuty("saves", { round, first: "a period", periodMs: DUTIES.saves.periodMs }),
  ),
);
