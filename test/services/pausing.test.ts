import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { Pause } from "../../src/ground/pause.ts";
import { pausingLayer } from "../../src/services/pausing.ts";
import { Pauses } from "../../src/store/ports/pauses.ts";

/** A store's pause, and how often it was asked. */
const storedPause = (since: number | null) => {
  const store = { since, looks: 0 };
  const pauses = Layer.succeed(Pauses)({
    since: Effect.sync(() => {
      store.looks += 1;
      return store.since;
    }),
    begin: () => Effect.void,
    end: Effect.succeed(false),
  });
  return { store, build: Effect.map(Layer.build(Layer.provide(pausingLayer, pauses)), Context.get(Pause)) };
};

describe("the pause of a restored copy", () => {
  it.effect("ends within a second of its end in the store", () =>
    Effect.gen(function* () {
      const { store, build } = storedPause(7);
      const pause = yield* build;
      yield* TestClock.adjust("10 seconds");
      expect([pause.isOn, pause.since]).toEqual([true, 7]);
      store.since = null;
      yield* TestClock.adjust("1 second");
      expect(pause.isOn).toBe(false);
      const { looks } = store;
      yield* TestClock.adjust("1 hour");
      expect(store.looks).toBe(looks);
    }).pipe(Effect.scoped),
  );

  it.effect("costs an installation at work one look at the start", () =>
    Effect.gen(function* () {
      const { store, build } = storedPause(null);
      expect((yield* build).isOn).toBe(false);
      yield* TestClock.adjust("1 hour");
      expect(store.looks).toBe(1);
    }).pipe(Effect.scoped),
  );
});
