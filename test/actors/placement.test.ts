/** Cron triggers whose actors move between nodes, and what a node holds of them. */
import { assert, describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { triggerActorId } from "../../src/actors/schedules.ts";
import { Timers } from "../../src/actors/timers.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import {
  begin,
  isTimer,
  ledger,
  over,
  Places,
  PROJECT,
  push,
  seconds,
  trigger,
} from "../support/world/scheduler.ts";
import { advance } from "../support/world/clock.ts";

describe("a trigger that moves to another node", () => {
  it.effect("gets no more messages on its former node, which forgets it", () =>
    Effect.suspend(() => {
      let told = 0;
      const test = Effect.gen(function* () {
        yield* begin(trigger("tick", "*/10 * * * * *"), 100);
        yield* advance(15);
        const { schedules } = yield* Timers;
        assert.deepStrictEqual([yield* seconds, schedules.size], [[10], 1]);
        yield* (yield* Places).move(false);
        yield* advance(1);
        assert.strictEqual(schedules.size, 0);
        const before = told;
        yield* advance(200);
        assert.strictEqual(told, before);
      });
      return over(test, (event) => {
        if (isTimer(event)) told += 1;
        return "arrives";
      });
    }),
  );

  it.effect("and back continues from its cursor at once: each instant of the last minute fires", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "*/10 * * * * *"), 100);
      yield* advance(15);
      yield* (yield* Places).move(false);
      yield* advance(30);
      assert.deepStrictEqual(yield* seconds, [10]);
      yield* (yield* Places).move(true);
      yield* advance(4);
      assert.deepStrictEqual(
        (yield* ledger).map(({ second, status }) => [second, status]),
        [10, 20, 30, 40].map((second) => [second, "fired"]),
      );
      yield* advance(10);
      assert.deepStrictEqual(yield* seconds, [10, 20, 30, 40, 50]);
    }).pipe((test) => over(test)),
  );

  it.effect("while its schedule changes uses the new one", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "*/10 * * * * *"), 100);
      yield* advance(15);
      yield* (yield* Places).move(false);
      yield* push(trigger("tick", "0 * * * * *"));
      yield* advance(5);
      yield* (yield* Places).move(true);
      yield* advance(60);
      assert.deepStrictEqual(yield* seconds, [10, 60]);
      assert.strictEqual((yield* Timers).schedules.get(triggerActorId(PROJECT, "tick"))?.due, 120_000);
    }).pipe((test) => over(test)),
  );
});

describe("an instant that already has its row", () => {
  it.effect("moves the cursor, and the trigger continues from there", () =>
    Effect.suspend(() => {
      let told = 0;
      const test = Effect.gen(function* () {
        const text = "*/20 * * * * *";
        yield* begin(trigger("tick", text), 100);
        yield* advance(65);
        // A node whose clock is behind takes the schedule up again.
        const projects = yield* Projects;
        const { version = 0 } = (yield* projects.get(PROJECT)) ?? {};
        const keep = (schedule: string) =>
          projects.keepCursors({
            projectId: PROJECT,
            projectVersion: version,
            schedules: new Map([["tick", schedule]]),
            now: 25_000,
          });
        yield* keep("another");
        yield* keep(`${text} UTC`);
        const before = told;
        yield* advance(25);
        assert.deepStrictEqual(yield* seconds, [20, 40, 60, 80]);
        assert.isAtMost(told - before, 3);
        const [cursor] = yield* projects.cursors([{ projectId: PROJECT, slug: "tick" }]);
        assert.strictEqual(cursor?.accountedUntil, 80_000);
      });
      return over(test, (event) => {
        if (isTimer(event)) told += 1;
        return "arrives";
      });
    }),
  );
});

describe("a trigger that is not disturbed", () => {
  it.effect("gets each instant once, over any number of polls", () =>
    Effect.suspend(() => {
      let told = 0;
      const test = Effect.gen(function* () {
        yield* begin(trigger("tick", "*/30 * * * * *"), 100);
        yield* advance(605);
        assert.deepStrictEqual([(yield* seconds).length, told], [20, 20]);
      });
      return over(test, (event) => {
        if (isTimer(event)) told += 1;
        return "arrives";
      });
    }),
  );
});
