import { it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { BootPlaces, bootPlacesLayer } from "../../src/services/sessions/boot-places.ts";
import { openActorsWorld } from "../support/world/actors.ts";

const BOOT_TIMEOUT_MS = 120_000;

/** A node with three places, of which one project may have two, both taken by sandboxes that never come up. A third session waits behind them. */
const crowded = Effect.gen(function* () {
  const world = yield* openActorsWorld({ bootsAtOnce: 3 });
  yield* world.sandboxes.fault("create", { kind: "hang" });
  yield* world.sandboxes.fault("create", { kind: "hang" });
  const { actors, end } = yield* world.begin;
  const hung: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const id = yield* world.admit;
    hung.push(id);
    yield* actors.wake("session", id);
    yield* world.untilSandbox(id, "provisioning");
  }
  const late = yield* world.admit;
  yield* actors.wake("session", late);
  yield* world.untilSandbox(late, "provisioning");
  const startOf = (id: string) => Effect.map(world.newestSandbox(id), (row) => row?.bootStartedAt ?? null);
  return { world, actors, end, hung, late, startOf };
});

describe("a sandbox beyond the limit of concurrent boots", () => {
  it.effect("waits for a place, says so, and has its whole boot time from then on", () =>
    Effect.gen(function* () {
      const { world, hung, late, startOf } = yield* crowded;
      yield* TestClock.adjust(BOOT_TIMEOUT_MS - 10_000);
      expect(yield* startOf(late)).toBe(null);
      for (const id of hung) expect(yield* startOf(id)).not.toBe(null);
      expect(yield* world.running).toEqual([]);
      // It never answers: the sandbox in its place has to be as patient as one of an idle node.
      world.script.health = null;
      for (const id of hung) yield* world.untilSession(id, "failed");
      yield* TestClock.adjust(BOOT_TIMEOUT_MS - 10_000);
      const sandbox = yield* world.newestSandbox(late);
      expect(sandbox?.status).toBe("provisioning");
      expect(sandbox?.bootDeadlineAt).toBe((sandbox?.bootStartedAt ?? 0) + BOOT_TIMEOUT_MS);
      yield* world.untilSession(late, "failed");
      expect((yield* world.session(late))?.failure).toMatchObject({ code: "boot_timeout" });
    }),
  );

  it.effect("runs when its turn has come, however late", () =>
    Effect.gen(function* () {
      const { world, hung, late } = yield* crowded;
      for (const id of hung) yield* world.untilSession(id, "failed");
      yield* world.untilSession(late, "running");
    }),
  );

  it.effect("leaves the line when it is stopped, and takes no other sandbox's place", () =>
    Effect.gen(function* () {
      const { world, actors, hung, late, startOf } = yield* crowded;
      yield* actors.session(late, { type: "stop.requested" });
      yield* world.untilSession(late, "stopped");
      const last = yield* world.admit;
      yield* actors.wake("session", last);
      for (const id of hung) yield* world.untilSession(id, "failed");
      yield* world.untilSession(last, "running");
      expect(yield* startOf(late)).toBe(null);
    }),
  );

  it.effect("also waits in the next life of its service", () =>
    Effect.gen(function* () {
      const { world, end, hung, late, startOf } = yield* crowded;
      yield* TestClock.adjust("30 seconds");
      yield* end;
      yield* TestClock.adjust("1 second");
      yield* world.sandboxes.fault("create", { kind: "hang" });
      yield* world.sandboxes.fault("create", { kind: "hang" });
      yield* world.sandboxes.fault("create", { kind: "hang" });
      const begunAt = yield* Clock.currentTimeMillis;
      yield* world.begin;
      yield* TestClock.adjust(BOOT_TIMEOUT_MS / 2);
      const starts = yield* Effect.forEach([...hung, late], startOf);
      // Two of the three boot, whichever came first.
      expect(starts.filter((start) => start !== null && start >= begunAt)).toHaveLength(2);
    }),
  );
});

/** Works that begin and end when the test says, in a line of so many places. */
const lineOf = (places: number) =>
  Effect.gen(function* () {
    const { boot, state } = yield* BootPlaces;
    const begun: string[] = [];
    const ends = new Map<string, Deferred.Deferred<void>>();
    const start = Effect.fnUntraced(function* (name: string) {
      const end = yield* Deferred.make<void>();
      ends.set(name, end);
      const work = Effect.andThen(
        Effect.sync(() => void begun.push(name)),
        Deferred.await(end),
      );
      return yield* Effect.forkChild(boot(name.slice(0, 1), work), { startImmediately: true });
    });
    const finish = (name: string) =>
      Effect.andThen(
        Effect.suspend(() => Deferred.succeed(ends.get(name) ?? Deferred.makeUnsafe<void>(), undefined)),
        Effect.yieldNow,
      );
    return { begun, start, finish, state };
  }).pipe(Effect.provide(bootPlacesLayer(places)));

describe("the line for boot places", () => {
  it.effect("lets projects take turns, regardless of their number of boots", () =>
    Effect.gen(function* () {
      const { begun, start, finish, state } = yield* lineOf(1);
      for (const name of ["a1", "a2", "a3", "b1", "c1"]) yield* start(name);
      expect(state()).toEqual({ booting: 1, waiting: 4 });
      for (const name of ["a1", "a2", "b1", "c1", "a3"]) yield* finish(name);
      expect(begun).toEqual(["a1", "a2", "b1", "c1", "a3"]);
      expect(state()).toEqual({ booting: 0, waiting: 0 });
    }),
  );

  it.effect("keeps a quarter of its places from a project whose boots hang", () =>
    Effect.gen(function* () {
      const { begun, start } = yield* lineOf(4);
      for (const name of ["a1", "a2", "a3", "a4", "a5", "b1"]) yield* start(name);
      expect(begun).toEqual(["a1", "a2", "a3", "b1"]);
    }),
  );

  it.effect("takes back the place of an interrupted boot, and the turn of a waiting one", () =>
    Effect.gen(function* () {
      const { begun, start, state } = yield* lineOf(1);
      const first = yield* start("a1");
      const second = yield* start("b1");
      yield* start("c1");
      yield* Fiber.interrupt(second);
      expect(state()).toEqual({ booting: 1, waiting: 1 });
      yield* Fiber.interrupt(first);
      yield* Effect.yieldNow;
      expect(begun).toEqual(["a1", "c1"]);
    }),
  );
});
