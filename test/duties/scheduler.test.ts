/** Due instants whose messages are lost, and instants that find the queue full (api.md 4 "Cron", "Queue"). */
import { assert, describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import { Pause, PauseSwitch } from "../../src/ground/pause.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import {
  begin,
  isTimer,
  ledger,
  LOCKED,
  over,
  PROJECT,
  push,
  seconds,
  trigger,
} from "../support/world/scheduler.ts";
import { advance } from "../support/world/clock.ts";
import { newProject, NUMBERED } from "../support/world/world.ts";

describe("a due instant", () => {
  it.effect(
    "is delivered again while its trigger cannot be reached, and the trigger continues from there",
    () =>
      Effect.gen(function* () {
        yield* begin(trigger("tick", "0 */10 * * * *"), 100);
        yield* advance(605);
        assert.deepStrictEqual(yield* seconds, [600]);
        yield* advance(600);
        assert.deepStrictEqual(yield* seconds, [600, 1200]);
      }).pipe((test) => over(test, (event, nth) => (isTimer(event) && nth <= 4 ? "fails" : "arrives"))),
  );

  it.effect("is not delivered while a restored copy is paused, and counts from the end of the pause", () => {
    const pause = new PauseSwitch();
    pause.since = 0;
    const test = Effect.gen(function* () {
      yield* begin(trigger("tick", "0 */10 * * * *"), 100);
      yield* advance(605);
      assert.deepStrictEqual(yield* seconds, []);
      pause.since = null;
      yield* advance(600);
      assert.deepStrictEqual(yield* seconds, [1200]);
    });
    return Effect.provideService(
      over(test, () => "arrives"),
      Pause,
      pause,
    );
  });

  it.effect("is delivered by the next poll if its message was lost", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "30 */10 * * * *"), 100);
      yield* advance(640);
      assert.deepStrictEqual(yield* seconds, [30]);
      yield* advance(60);
      assert.deepStrictEqual(yield* seconds, [30, 630]);
      yield* advance(600);
      assert.deepStrictEqual(yield* seconds, [30, 630, 1230]);
    }).pipe((test) => over(test, (event, nth) => (isTimer(event) && nth === 2 ? "is lost" : "arrives"))),
  );

  it.effect("is fired in time if its schedule replaces another one that is being delivered", () =>
    Effect.gen(function* () {
      const held = yield* Latch.make();
      const test = Effect.gen(function* () {
        yield* begin(trigger("tick", "0 * * * * *"), 100);
        yield* advance(62);
        yield* push(trigger("tick", "*/20 * * * * *"));
        yield* advance(5);
        yield* held.open;
        yield* advance(38);
        assert.deepStrictEqual(yield* seconds, [80, 100]);
      });
      yield* over(test, (event, nth) => (isTimer(event) && nth === 1 ? held : "arrives"));
    }),
  );

  it.effect("is no longer delivered once its project is archived", () =>
    Effect.suspend(() => {
      let told = 0;
      const test = Effect.gen(function* () {
        yield* begin(trigger("tick", "0 */10 * * * *"), 100);
        yield* advance(630);
        const before = told;
        yield* (yield* Projects).update(PROJECT, { status: "archived" }, 630_000);
        yield* advance(60);
        const after = told;
        yield* advance(600);
        assert.deepStrictEqual([before > 1, told], [true, after]);
        assert.deepStrictEqual(yield* seconds, []);
      });
      return over(test, (event) => {
        if (!isTimer(event)) return "arrives";
        told += 1;
        return "fails";
      });
    }),
  );

  for (const [name, change] of [
    ["disabled", (text: string) => `${text}enabled = false\n`],
    ["removed", () => ""],
    ["given another schedule", (text: string) => text.replace("0 */10", "30 */10")],
  ] as const) {
    it.effect(`is not fired if its trigger was ${name} between the instant and the claim [C18]`, () =>
      Effect.suspend(() => {
        const door = Latch.makeUnsafe(false);
        const text = trigger("tick", "0 */10 * * * *");
        const test = Effect.gen(function* () {
          yield* begin(text, 100);
          yield* advance(605);
          // The instant's message is on its way.
          yield* push(change(text));
          yield* advance(3);
          yield* door.open;
          yield* advance(15);
          assert.deepStrictEqual(yield* seconds, []);
        });
        return over(test, (event) => (isTimer(event) ? door : "arrives"));
      }),
    );
  }

  it.effect("has its row, failed with the reason, if the queue is full", () =>
    Effect.gen(function* () {
      yield* begin(trigger("first", "0 */10 * * * *") + trigger("second", "1 */10 * * * *"), 0);
      yield* advance(1202);
      assert.deepStrictEqual(yield* ledger, [
        { slug: "second", second: 1, status: "skipped", reason: "overlapped" },
        { slug: "first", second: 600, status: "failed", reason: "queue_full" },
        { slug: "second", second: 601, status: "skipped", reason: "overlapped" },
        { slug: "first", second: 1200, status: "failed", reason: "queue_full" },
        { slug: "second", second: 1201, status: "queued", reason: "account_session_cap" },
      ]);
    }).pipe((test) => over(test, () => "arrives", 1)),
  );
});

describe("a changed schedule", () => {
  it.effect("takes effect even if the database returns nothing for another project", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "0 */10 * * * *"), 100);
      yield* (yield* Projects).create(newProject(NUMBERED, { id: LOCKED, now: 0 }));
      yield* advance(5);
      yield* push(trigger("tick", "30 */10 * * * *"));
      yield* advance(640);
      assert.deepStrictEqual(yield* seconds, [30, 630]);
    }).pipe((test) => over(test)),
  );
});
