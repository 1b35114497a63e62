import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { RestartsExhausted, supervise } from "../../src/actors/supervisor.ts";
import { StoreError } from "../../src/store/ports/journal.ts";

const outage = new StoreError({ operation: "load", cause: new Error("connection refused") });
const options = { work: "work", budget: { restarts: 2, withinMs: 30_000 } };

/** Runs supervised work under a clock that goes on as long as it takes. */
const supervised = Effect.fnUntraced(function* <A, E>(work: Effect.Effect<A, E | StoreError>) {
  const fiber = yield* Effect.forkChild(Effect.result(supervise(work, options)));
  yield* TestClock.adjust("10 minutes");
  return yield* Fiber.join(fiber);
});

describe("supervised work", () => {
  it.effect("waits for the database to return, however long, and does not count the outage as a crash", () =>
    Effect.gen(function* () {
      let tries = 0;
      const work = Effect.suspend(() => {
        tries += 1;
        return tries <= 100 ? Effect.fail(outage) : Effect.succeed("done");
      });
      expect(yield* supervised(work)).toMatchObject({ _tag: "Success", success: "done" });
      expect(tries).toBe(101);
    }),
  );

  it.effect("passes its own errors on at once", () =>
    Effect.gen(function* () {
      let tries = 0;
      const work = Effect.suspend(() => {
        tries += 1;
        return Effect.fail("refused" as const);
      });
      expect(yield* supervised(work)).toMatchObject({ _tag: "Failure", failure: "refused" });
      expect(tries).toBe(1);
    }),
  );

  it.effect("gives up with the last crash's message when its budget is used up", () =>
    Effect.gen(function* () {
      let tries = 0;
      const work = Effect.suspend(() => {
        tries += 1;
        return Effect.die(new Error(`crash ${tries}`));
      });
      const failure = new RestartsExhausted({ work: "work", reason: "crash 3" });
      expect(yield* supervised(work)).toMatchObject({ _tag: "Failure", failure });
    }),
  );
});
