/** When a sandbox ends itself because its service has left it: on a test clock. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { leftAlone } from "../../daemon/boot/orphan.ts";

const HOUR = 3_600_000;

/** A sandbox, and what it finds at its looks. */
const begin = Effect.fnUntraced(function* (orphanMs: number) {
  const signs = { there: true, heard: false, answering: false, asked: 0 };
  const fiber = yield* Effect.forkChild(
    leftAlone(orphanMs, {
      isThere: () => signs.there,
      wasHeard: () => {
        const { heard } = signs;
        signs.heard = false;
        return heard;
      },
      answers: Effect.sync(() => {
        signs.asked += 1;
        return signs.answering;
      }),
    }),
  );
  // The looks begin when the fiber runs.
  yield* Effect.yieldNow;
  const ended = Effect.sync(() => fiber.pollUnsafe() !== undefined);
  return { signs, ended, reason: Fiber.join(fiber) };
});

describe("a sandbox whose service is gone", () => {
  it.effect("ends after the orphan period without a sign of the service, and not before", () =>
    Effect.gen(function* () {
      const { ended, reason } = yield* begin(HOUR);
      yield* TestClock.adjust(HOUR - 2000);
      expect(yield* ended).toBe(false);
      yield* TestClock.adjust(2000);
      expect(yield* reason).toBe("the service did not respond for 3600000 ms");
    }),
  );

  it.effect("continues while its service accepts connections, even without requests", () =>
    Effect.gen(function* () {
      const { signs, ended } = yield* begin(HOUR);
      signs.answering = true;
      yield* TestClock.adjust(10 * HOUR);
      expect(yield* ended).toBe(false);
      expect(signs.asked).toBe(600);
      signs.answering = false;
      yield* TestClock.adjust(HOUR);
      expect(yield* ended).toBe(true);
    }),
  );

  it.effect("restarts its countdown at each connection to its socket", () =>
    Effect.gen(function* () {
      const { signs, ended } = yield* begin(HOUR);
      yield* TestClock.adjust(HOUR - 2000);
      signs.heard = true;
      yield* TestClock.adjust(HOUR);
      expect(yield* ended).toBe(false);
      yield* TestClock.adjust(2000);
      expect(yield* ended).toBe(true);
    }),
  );

  it.effect("ends within seconds when its run directory is gone, despite connections", () =>
    Effect.gen(function* () {
      const { signs, reason } = yield* begin(HOUR);
      signs.answering = true;
      yield* TestClock.adjust(HOUR);
      signs.there = false;
      yield* TestClock.adjust(2000);
      expect(yield* reason).toContain("was removed");
    }),
  );
});
