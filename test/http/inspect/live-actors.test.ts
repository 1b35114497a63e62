import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { expect } from "vitest";
import { accountActors } from "../../../src/actors/account.ts";
import { Actors } from "../../../src/services/actors.ts";
import { actorsLayer, singleRunner } from "../../../src/actors/cluster.ts";
import { Inspector, type InspectedStep } from "../../../src/actors/inspector.ts";
import { Admissions } from "../../../src/store/ports/triggers/admissions.ts";
import { answered, opened, until } from "../../support/world/actors.ts";

it.effect("an inspector given with the ports sees the service's actors", () =>
  Effect.gen(function* () {
    const steps: InspectedStep[] = [];
    const ports = Layer.mergeAll(
      Layer.succeed(Inspector, (step) => Effect.sync(() => void steps.push(step))),
      Layer.mock(Admissions, { drain: () => Effect.succeed({ admitted: [], more: false }) }),
      singleRunner,
    );
    const layer = accountActors({ maxIdleMs: 60_000, bootTimeoutMs: 120_000 }).pipe(
      Layer.provideMerge(actorsLayer),
      Layer.provideMerge(ports),
    );
    const { context } = yield* opened(layer);
    yield* answered(Context.get(context, Actors).account("a", { type: "fire.queued" }));
    yield* until(Effect.sync(() => steps.length === 3));
    expect(steps.map(({ machine, event }) => [machine, event?.type])).toEqual([
      ["account", undefined],
      ["account", "fire.queued"],
      ["account", "drain.finished"],
    ]);
  }),
);
