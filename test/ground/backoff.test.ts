import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { tryAgain } from "../../src/ground/backoff.ts";

describe("work that is tried again", () => {
  it.effect("runs once and so many times more, and ends with its last failure", () =>
    Effect.gen(function* () {
      let tries = 0;
      const work = Effect.suspend(() => {
        tries += 1;
        return Effect.fail(`failure ${tries}`);
      });
      expect(yield* Effect.flip(tryAgain(work, { times: 2 }))).toBe("failure 3");
      expect(tries).toBe(3);
    }),
  );
});
