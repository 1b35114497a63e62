/** Timers that elapse together (api.md 4 "Cron"). */
import { assert, describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { Actors } from "../../src/actors/actors.ts";
import { Timers, timersLayer } from "../../src/actors/timers.ts";
import { trigger } from "../../src/machines/trigger.ts";

const MANY = 100;
const SECOND = 1000;

const elsewhere = () => Effect.die(new Error("nobody else is told of timers"));

/** Timers whose messages are answered by `told`. */
const over = (told: (id: string) => Effect.Effect<unknown>) => {
  const { snapshot } = trigger.start({});
  const actors = Layer.succeed(Actors, {
    session: elsewhere,
    sandbox: elsewhere,
    account: elsewhere,
    trigger: (id) => Effect.as(told(id), { accepted: true, snapshot }),
    wake: () => Effect.void,
    load: () => Effect.succeed(false),
  });
  return Effect.provide(timersLayer.pipe(Layer.provide(actors)));
};

const armMany = Effect.fnUntraced(function* (due: number) {
  const timers = yield* Timers;
  for (let number = 0; number < MANY; number += 1)
    yield* timers.arm(`many-${number}`, { due, schedule: "every second" });
});

describe("many timers of one instant", () => {
  it.effect("are told one after another: the first has its answer before the last has its message", () => {
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
      assert.isBelow(seen.indexOf("many-0 answered"), lastTold);
    }).pipe(over(told));
  });

  it.effect("do not delay what falls due while they are told", () => {
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
        yield* armMany(0);
        yield* (yield* Timers).arm("next", { due: 5 * SECOND, schedule: "every five" });
        yield* Deferred.await(isAll);
      });
      yield* test.pipe(over(told), Effect.provideService(Clock.Clock, slow));
      assert.isTrue(seen.has("next"));
    });
  });
});

const disarming = (disarmed: "the former one" | "whatever there is") => {
  const seen: string[] = [];
  const former = { due: SECOND, schedule: "every second" };
  const next = { due: 2 * SECOND, schedule: "every second" };
  return Effect.gen(function* () {
    const timers = yield* Timers;
    yield* timers.arm("one", former);
    yield* timers.arm("one", next);
    yield* disarmed === "the former one" ? timers.disarm("one", former) : timers.disarm("one");
    yield* TestClock.adjust(3 * SECOND);
    return { seen, isArmed: timers.armed("one") === next };
  }).pipe(over((id) => Effect.sync(() => seen.push(id))));
};

describe("a timer that another took the place of", () => {
  it.effect("is disarmed alone: the other elapses", () =>
    Effect.map(disarming("the former one"), (found) =>
      assert.deepStrictEqual(found, { seen: ["one"], isArmed: true }),
    ),
  );

  it.effect("goes with the other where the trigger is revoked", () =>
    Effect.map(disarming("whatever there is"), (found) =>
      assert.deepStrictEqual(found, { seen: [], isArmed: false }),
    ),
  );
});
