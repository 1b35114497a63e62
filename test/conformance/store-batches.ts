/** Conformance: what wishes of one batch see of each other. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions, Fires } from "../../src/store/port.ts";
import type { FirePrompt, NewFire } from "../../src/store/records.ts";
import { fired, makeWorld, type Check, type World } from "./store-fixture.ts";

const admit = Effect.fnUntraced(function* (world: World, fires: readonly Partial<NewFire>[]) {
  const { admit: decide } = yield* Admissions;
  return yield* decide(
    world.accountId,
    fires.map((fire) => fired(world, fire)),
  );
});

const rowsOf = Effect.fnUntraced(function* (world: World) {
  const { list } = yield* Fires;
  return (yield* list(world.projectId, { limit: 50, cursor: null, slug: null, status: null })).items;
});

const tooLarge: FirePrompt = { is: "too_large" };

export const checkBatches = (check: Check): void => {
  describe("deliveries of one id in one batch", () => {
    check(
      "that fail leave one row, which counts them [I4]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const failing = { deliveryId: "d-1", prompt: tooLarge };
        const answers = yield* admit(world, [failing, failing]);
        expect(answers.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
        expect(yield* rowsOf(world)).toMatchObject([{ status: "failed", attempts: 2 }]);
        expect(yield* admit(world, [{ deliveryId: "d-1" }])).toMatchObject([{ outcome: "admitted" }]);
        expect(yield* rowsOf(world)).toMatchObject([{ status: "fired", attempts: 3 }]);
      }),
    );
  });
};
