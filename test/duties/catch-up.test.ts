/** Instants during which the service was down, or which a clock has passed over (api.md 4 "Cron"). */
import { assert, describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { simulatedBackend } from "../twins/git/repositories.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import {
  PROJECT,
  inLife,
  manifest,
  projectWith,
  rows,
  serviceOver,
  twins,
  type Services,
} from "../support/world/service.ts";
import { advance } from "../support/world/clock.ts";

/** The clock of the service, which a test sets by `skew.ms` without any time going by. */
const skewable = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const skew = { ms: 0 };
  const skewed: Clock.Clock = {
    ...clock,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + skew.ms,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + skew.ms),
    sleep: (duration) => clock.sleep(duration),
  };
  return { skew, skewed };
});

/** A test over a service whose clock is set while the world's goes on. */
const overSetClock = <E>(test: (skew: { ms: number }) => Effect.Effect<void, E, Services>) =>
  Effect.gen(function* () {
    const memory = yield* Layer.build(Layer.fresh(twins));
    const { skew, skewed } = yield* skewable;
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(
      Layer.fresh(serviceOver(Layer.succeedContext(memory))),
      scope,
    ).pipe(Effect.provideService(Clock.Clock, skewed));
    yield* Effect.provideContext(test(skew), context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

describe("a clock that was set", () => {
  it.effect("twelve minutes back fires no instant twice, and continues where it was [C14]", () =>
    overSetClock((skew) =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 */2 * * * *"));
        yield* advance(730);
        const before = yield* rows;
        assert.strictEqual(before.length, 6);
        skew.ms = -720_000;
        yield* advance(700);
        assert.deepStrictEqual(yield* rows, before);
        yield* advance(140);
        assert.deepStrictEqual((yield* rows).slice(before.length), [[840, "fired", null]]);
      }),
    ),
  );

  it.effect("a day forward fires the newest instant alone, and every other one has its row [C15]", () =>
    overSetClock((skew) =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 */10 * * * *"));
        yield* advance(1_201);
        skew.ms = 86_400_000;
        yield* advance(70);
        const all = yield* rows;
        assert.deepStrictEqual(
          all.map(([second]) => second),
          Array.from({ length: 2 + 144 }, (_, index) => 600 * (index + 1)),
        );
        assert.deepStrictEqual(all.slice(0, 3), [
          [600, "fired", null],
          [1200, "fired", null],
          [1800, "skipped", "missed"],
        ]);
        assert.deepStrictEqual(all.slice(-2), [
          [87_000, "skipped", "missed"],
          [87_600, "fired", null],
        ]);
      }),
    ),
  );
});

/** Two lives of the service over one memory, with a time between them in which none runs. */
const overDowntime = <E, E2>(parts: {
  readonly from: string;
  readonly before: Effect.Effect<void, E, Services>;
  readonly back: string;
  readonly after: Effect.Effect<void, E2, Services>;
}) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.parse(parts.from));
    const memory = yield* Layer.build(Layer.fresh(Layer.mergeAll(memoryStore, simulatedBackend)));
    yield* inLife(Layer.succeedContext(memory), parts.before);
    yield* TestClock.setTime(Date.parse(parts.back));
    yield* inLife(Layer.succeedContext(memory), parts.after);
  });

const isoRows = Effect.map(rows, (all) =>
  all.map(([second, status, reason]) => [new Date(second * 1000).toISOString().slice(0, 16), status, reason]),
);

const statuses = Effect.map(rows, (all) => {
  const count = (status: string) => all.filter((row) => row[1] === status).length;
  return { all: all.length, fired: count("fired"), skipped: count("skipped") };
});

describe("after a downtime", () => {
  it.effect("of three days, a minutely trigger fires the newest missed instant and no other [C16, I3]", () =>
    overDowntime({
      from: "2026-05-01T00:00:00Z",
      before: Effect.andThen(projectWith(manifest("0 * * * * *")), advance(61)),
      back: "2026-05-04T00:01:30Z",
      after: Effect.gen(function* () {
        yield* advance(20);
        assert.deepStrictEqual(yield* statuses, { all: 4321, fired: 2, skipped: 4319 });
        const all = yield* isoRows;
        assert.deepStrictEqual(all.slice(0, 2), [
          ["2026-05-01T00:01", "fired", null],
          ["2026-05-01T00:02", "skipped", "missed"],
        ]);
        assert.deepStrictEqual(all.slice(-2), [
          ["2026-05-04T00:00", "skipped", "missed"],
          ["2026-05-04T00:01", "fired", null],
        ]);
      }),
    }),
  );

  it.effect("that was longer than the window, no instant fires late", () =>
    overDowntime({
      from: "2026-05-01T00:00:00Z",
      before: Effect.andThen(projectWith(manifest("0 0 */2 * * *")), advance(10)),
      back: "2026-05-01T05:30:00Z",
      after: Effect.gen(function* () {
        yield* advance(20);
        assert.deepStrictEqual(yield* isoRows, [
          ["2026-05-01T02:00", "skipped", "missed"],
          ["2026-05-01T04:00", "skipped", "missed"],
        ]);
      }),
    }),
  );

  it.effect("over a clock change in spring, the local time in the gap has fired once [C11]", () =>
    overDowntime({
      from: "2027-03-14T06:50:00Z",
      before: Effect.andThen(
        projectWith(manifest("0 30 2 * * *", 'timezone = "America/New_York"')),
        advance(10),
      ),
      back: "2027-03-14T07:20:00Z",
      after: Effect.gen(function* () {
        yield* advance(20);
        assert.deepStrictEqual(yield* isoRows, [["2027-03-14T07:00", "fired", null]]);
      }),
    }),
  );

  it.effect("over a clock change in autumn, the local time that comes twice has fired once [C12]", () =>
    overDowntime({
      from: "2026-11-01T05:20:00Z",
      before: Effect.andThen(
        projectWith(manifest("0 30 1 * * *", 'timezone = "America/New_York"')),
        advance(900),
      ),
      back: "2026-11-01T06:29:00Z",
      after: Effect.gen(function* () {
        yield* advance(300);
        assert.deepStrictEqual(yield* isoRows, [["2026-11-01T05:30", "fired", null]]);
      }),
    }),
  );

  it.effect("without due instants, no instant is missed", () =>
    overDowntime({
      from: "2026-05-01T00:00:00Z",
      before: Effect.andThen(projectWith(manifest("0 0 12 * * *")), advance(10)),
      back: "2026-05-01T11:59:30Z",
      after: Effect.gen(function* () {
        yield* advance(60);
        assert.deepStrictEqual(yield* isoRows, [["2026-05-01T12:00", "fired", null]]);
      }),
    }),
  );

  it.effect("a paused project's instants are recorded as paused", () =>
    overDowntime({
      from: "2026-05-01T00:00:00Z",
      before: Effect.gen(function* () {
        yield* projectWith(manifest("0 0 * * * *"));
        yield* advance(5);
        yield* (yield* Projects).update(PROJECT, { triggersPaused: true }, 0);
        yield* advance(5);
      }),
      back: "2026-05-01T02:10:00Z",
      after: Effect.gen(function* () {
        yield* advance(20);
        assert.deepStrictEqual(yield* isoRows, [
          ["2026-05-01T01:00", "skipped", "paused"],
          ["2026-05-01T02:00", "skipped", "paused"],
        ]);
      }),
    }),
  );
});
