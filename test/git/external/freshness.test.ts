/** When a mirror is fetched (src/git/upstream/mirror.ts, B2), on a clock of the test's. */
import { expect, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { makeFreshness } from "../../../src/git/upstream/freshness.ts";
import { GitError } from "../../../src/git/port.ts";

const HOUR = 3_600_000;
const refused = new GitError({ code: "refused", message: "no" });

/** A mirror whose fetches are counted, and answered as a test says. */
const mirror = Effect.gen(function* () {
  let count = 0;
  let answer: Effect.Effect<void, GitError> = Effect.void;
  const freshness = yield* makeFreshness(() =>
    Effect.suspend(() => {
      count += 1;
      return answer;
    }),
  );
  yield* TestClock.setTime(12 * HOUR);
  return {
    asked: (ageMs: number) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => freshness.after("a project", now - ageMs)),
    count: () => count,
    answers: (next: Effect.Effect<void, GitError>) => {
      answer = next;
    },
  };
});

it.effect("a fetch within the wanted age is not repeated", () =>
  Effect.gen(function* () {
    const { asked, count } = yield* mirror;
    yield* asked(2000);
    yield* TestClock.adjust(1999);
    yield* asked(2000);
    expect(count()).toBe(1);
    yield* TestClock.adjust(1);
    yield* asked(2000);
    expect(count()).toBe(2);
    yield* asked(0);
    expect(count()).toBe(3);
  }),
);

it.effect(
  "a fetch with a later time than the clock's, which was set back, is not fresh until that time comes again",
  () =>
    Effect.gen(function* () {
      const { asked, count } = yield* mirror;
      yield* asked(0);
      yield* TestClock.setTime(11 * HOUR);
      yield* asked(0);
      expect(count()).toBe(2);
      yield* TestClock.adjust(1);
      yield* asked(2000);
      expect(count()).toBe(2);
    }),
);

it.effect("a failure reaches only the callers that asked before it began", () =>
  Effect.gen(function* () {
    const { asked, count, answers } = yield* mirror;
    const [begun, going] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
    answers(
      Deferred.succeed(begun, undefined).pipe(
        Effect.andThen(Deferred.await(going)),
        Effect.andThen(Effect.fail(refused)),
      ),
    );
    const first = yield* Effect.forkChild(Effect.flip(asked(HOUR)), { startImmediately: true });
    yield* Deferred.await(begun);
    const waiting = yield* Effect.forEach([1, 2, 3], () =>
      Effect.forkChild(Effect.flip(asked(HOUR)), { startImmediately: true }),
    );
    expect(count()).toBe(1);
    yield* Deferred.succeed(going, undefined);
    expect(yield* Fiber.join(first)).toBe(refused);
    // They share the next one.
    for (const fiber of waiting) expect(yield* Fiber.join(fiber)).toBe(refused);
    expect(count()).toBe(2);
    answers(Effect.void);
    yield* asked(HOUR);
    expect(count()).toBe(3);
  }),
);
