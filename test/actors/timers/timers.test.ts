/** Timers that elapse together (api.md 4 "Cron"). */
import { assert, describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { Actors, ActorUnavailable, Placement } from "../../../src/services/actors.ts";
import { Timers, timersLayer } from "../../../src/actors/timers.ts";
import { triggerActorId } from "../../../src/actors/schedules.ts";
import { trigger } from "../../../src/machines/trigger.ts";

const MANY = 100;
const SECOND = 1000;

const elsewhere = () => Effect.die(new Error("no other actor gets timers"));

/** Timers whose messages are answered by `told`, on a node where the actors of these triggers live. */
const over = (
  told: (id: string) => Effect.Effect<unknown, ActorUnavailable>,
  isHere: (id: string) => boolean = () => true,
) => {
  const { snapshot } = trigger.start({});
  const actors = Layer.succeed(Actors, {
    session: elsewhere,
    sandbox: elsewhere,
    account: elsewhere,
    changeRequest: elsewhere,
    conversation: elsewhere,
    environmentBuild: elsewhere,
    trigger: (id) => Effect.as(told(id), { accepted: true, snapshot }),
    wake: () => Effect.void,
    load: () => Effect.succeed(false),
  });
  const placement = Layer.succeed(Placement, { isHere, moves: Effect.never });
  return Effect.provide(timersLayer.pipe(Layer.provide([actors, placement])));
};

const SCHEDULE = "every second";
const idOf = (number: number): string => triggerActorId("p", `many-${number}`);

const armMany = Effect.fnUntraced(function* (due: number, more: readonly (readonly [string, number])[] = []) {
  const timers = yield* Timers;
  const wanted = new Map(
    Array.from({ length: MANY }, (_, number) => [idOf(number), { due, schedule: SCHEDULE, from: 0 }]),
  );
  for (const [id, at] of more) wanted.set(id, { due: at, schedule: SCHEDULE, from: 0 });
  timers.schedules.keep("p", wanted);
  yield* timers.changed;
});

describe("many timers of one instant", () => {
  it.effect(
    "are delivered one after another: the first has its answer before the last has its message",
    () => {
      const seen: string[] = [];
      const told = (id: string) =>
        Effect.gen(function* () {
          seen.push(`${id} told`);
          yield* Effect.yieldNow;
          seen.push(`${id} answered`);
        });
      return Effect.gen(function* () {
        yield* armMany(SECOND);
        yield* TestClock.adjust(SECOND);
        assert.strictEqual(seen.filter((text) => text.endsWith("answered")).length, MANY);
        const lastTold = seen.findLastIndex((text) => text.endsWith("told"));
        assert.isBelow(seen.indexOf(`${idOf(0)} answered`), lastTold);
      }).pipe(over(told));
    },
  );

  it.effect("do not delay timers that fall due during the delivery", () => {
    const seen = new Set<string>();
    const isAll = Deferred.makeUnsafe<void>();
    let spent = 0;
    const nanos = () => BigInt(spent) * 1_000_000n;
    const told = (id: string) =>
      Effect.suspend(() => {
        seen.add(id);
        // Telling the first takes ten seconds; the clock that wakes who sleeps stands still.
        spent = 10 * SECOND;
        return seen.size === MANY + 1 ? Deferred.succeed(isAll, undefined) : Effect.void;
      });
    return Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const slow: Clock.Clock = {
        currentTimeMillisUnsafe: () => spent,
        currentTimeMillis: Effect.sync(() => spent),
        currentTimeNanosUnsafe: nanos,
        currentTimeNanos: Effect.sync(nanos),
        monotonicTimeNanosUnsafe: nanos,
        monotonicTimeNanos: Effect.sync(nanos),
        sleep: (duration) => clock.sleep(duration),
      };
      const test = Effect.gen(function* () {
        // The timers wait by now, and hear of the many once.
        yield* Effect.repeat(Effect.yieldNow, { times: 10 });
        yield* armMany(0, [[triggerActorId("p", "next"), 5 * SECOND]]);
        yield* Deferred.await(isAll);
      });
      yield* test.pipe(over(told), Effect.provideService(Clock.Clock, slow));
      assert.isTrue(seen.has(triggerActorId("p", "next")));
    });
  });
});

const ONE = triggerActorId("p", "one");

/** Messages of one timer that is due after a second, and what a test does meanwhile. */
const oneTimer = <E>(
  test: (timers: Timers["Service"], seen: readonly string[]) => Effect.Effect<void, E>,
  told: (nth: number) => Effect.Effect<unknown, ActorUnavailable> = () => Effect.void,
  isHere: (id: string) => boolean = () => true,
) => {
  const seen: string[] = [];
  return Effect.gen(function* () {
    const timers = yield* Timers;
    timers.schedules.keep("p", new Map([[ONE, { due: SECOND, schedule: SCHEDULE, from: 0 }]]));
    yield* timers.changed;
    yield* test(timers, seen);
  }).pipe(
    over(
      (id) =>
        Effect.suspend(() => {
          seen.push(id);
          return told(seen.length);
        }),
      isHere,
    ),
  );
};

const unavailable = Effect.fail(new ActorUnavailable({ actorId: ONE, reason: "its runner is away" }));

describe("a timer", () => {
  it.effect("is delivered once when its instant has come", () =>
    oneTimer((_, seen) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(SECOND - 1);
        assert.deepStrictEqual(seen, []);
        yield* TestClock.adjust(1);
        assert.deepStrictEqual(seen, [ONE]);
        yield* TestClock.adjust(600 * SECOND);
        assert.deepStrictEqual(seen, [ONE]);
      }),
    ),
  );

  it.effect("is delivered again and again while the message fails, until its trigger arms it again", () =>
    oneTimer(
      (timers, seen) =>
        Effect.gen(function* () {
          yield* TestClock.adjust(60 * SECOND);
          assert.isAbove(seen.length, 5);
          yield* timers.arm(ONE, { due: 3600 * SECOND, schedule: SCHEDULE });
          yield* TestClock.adjust(10 * SECOND);
          const before = seen.length;
          yield* TestClock.adjust(600 * SECOND);
          assert.strictEqual(seen.length, before);
        }),
      () => unavailable,
    ),
  );

  it.effect("whose message was lost is delivered again at the next poll", () =>
    oneTimer(
      (timers, seen) =>
        Effect.gen(function* () {
          yield* TestClock.adjust(10 * SECOND);
          assert.strictEqual(seen.length, 1);
          yield* timers.tellAgain(SECOND - 1);
          yield* TestClock.adjust(1);
          assert.strictEqual(seen.length, 1);
          yield* timers.tellAgain(SECOND);
          yield* TestClock.adjust(1);
          assert.strictEqual(seen.length, 2);
        }),
      (nth) => (nth === 1 ? Effect.die(new Error("a message was lost")) : Effect.void),
    ),
  );

  it.effect("is silent once its actor has moved to another node", () =>
    oneTimer(
      (_, seen) =>
        Effect.gen(function* () {
          yield* TestClock.adjust(60 * SECOND);
          assert.deepStrictEqual(seen, []);
        }),
      () => Effect.void,
      () => false,
    ),
  );

  it.effect("that is armed for an earlier instant than the others is delivered in time", () =>
    oneTimer((timers, seen) =>
      Effect.gen(function* () {
        yield* timers.arm(ONE, { due: 500, schedule: SCHEDULE });
        yield* TestClock.adjust(500);
        assert.deepStrictEqual(seen, [ONE]);
      }),
    ),
  );
});
