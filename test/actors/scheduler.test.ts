/** Due instants whose messages are lost, and instants that find the queue full (api.md 4 "Cron", "Queue"). */
import { assert, describe, it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { accountActors } from "../../src/actors/account.ts";
import { Actors, ActorUnavailable, Placement } from "../../src/actors/actors.ts";
import { admitterLayer } from "../../src/actors/admission.ts";
import { actorsLayer, placementLayer, singleRunner } from "../../src/actors/cluster.ts";
import { cursorReadsLayer } from "../../src/actors/cursors.ts";
import { directoryLayer } from "../../src/actors/directory.ts";
import { firingLayer } from "../../src/actors/firing.ts";
import { keyringLayer } from "../../src/actors/keyring.ts";
import { Manifests, manifestsLayer } from "../../src/actors/manifests.ts";
import { schedulerLayer } from "../../src/actors/scheduler.ts";
import { triggerActorId } from "../../src/actors/schedules.ts";
import { Timers, timersLayer } from "../../src/actors/timers.ts";
import { triggerActors } from "../../src/actors/trigger.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../src/git/simulated.ts";
import type { TriggerEvent } from "../../src/machines/trigger.ts";
import { StoreError } from "../../src/store/journal.ts";
import { memoryStore } from "../../src/store/memory/layer.ts";
import { Fires, Identity, Projects } from "../../src/store/port.ts";

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const PROJECT = id(4);
const POLL_MS = 60_000;

/**
 * What becomes of a message to a trigger: it arrives, is refused as by a runner that is away, is lost unanswered, or arrives
 * when its door is opened.
 */
type Fate = "arrives" | "fails" | "is lost" | Latch.Latch;
type Fates = (event: TriggerEvent, nth: number) => Fate;

/** The address book whose messages to triggers meet their fate; `nth` counts those of one type from 1. */
const meeting = (fates: Fates) =>
  Layer.effect(
    Actors,
    Effect.map(Actors, (actors) => {
      const told = new Map<string, number>();
      return Actors.of({
        ...actors,
        trigger: (actorId, event) =>
          Effect.suspend(() => {
            const nth = (told.get(event.type) ?? 0) + 1;
            told.set(event.type, nth);
            const fate = fates(event, nth);
            if (fate === "arrives") return actors.trigger(actorId, event);
            if (typeof fate === "object") return Effect.andThen(fate.await, actors.trigger(actorId, event));
            return fate === "is lost"
              ? Effect.die(new Error("a message was lost"))
              : Effect.fail(new ActorUnavailable({ actorId, reason: "its runner is away" }));
          }),
      });
    }),
  ).pipe(Layer.provide(actorsLayer));

const entity = { maxIdleMs: 60_000 };

/** A project whose cursors the database does not give out: someone holds its row, say. */
const LOCKED = id(5);
const lockedOut = Layer.effect(
  Projects,
  Effect.map(Projects, (projects) =>
    Projects.of({
      ...projects,
      keepCursors: (request) =>
        request.projectId === LOCKED
          ? Effect.fail(new StoreError({ operation: "projects.keepCursors", cause: new Error("a lock") }))
          : projects.keepCursors(request),
    }),
  ),
);

/** Where triggers live: here, until a test moves them. */
class Places extends Context.Service<Places, { readonly move: (isHere: boolean) => Effect.Effect<void> }>()(
  "test/Places",
) {}
const placed = Layer.effectContext(
  Effect.gen(function* () {
    const cluster = yield* Placement;
    const moved = yield* Queue.unbounded<void>();
    let isHere = true;
    const move = (to: boolean) =>
      Effect.suspend(() => {
        isHere = to;
        return Effect.asVoid(Queue.offer(moved, undefined));
      });
    const moves = Effect.raceFirst(cluster.moves, Queue.take(moved));
    return Context.make(Places, { move }).pipe(
      Context.add(Placement, { isHere: (trigger) => isHere && cluster.isHere(trigger), moves }),
    );
  }),
).pipe(Layer.provide(placementLayer));

/** The service's cron side alone, over twins. */
const cronSide = (fates: Fates, queueMax: number) =>
  schedulerLayer({ intervalMs: POLL_MS }).pipe(
    Layer.provideMerge(
      triggerActors({ ...entity, catchupWindowMs: 3_600_000, fireRetentionMs: 2_592_000_000 }),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        firingLayer({ bootTimeoutMs: 120_000, queueTtlMs: 86_400_000, queueMax }),
        manifestsLayer,
      ),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        admitterLayer,
        directoryLayer,
        cursorReadsLayer,
        timersLayer,
        accountActors({ ...entity, bootTimeoutMs: 120_000 }),
      ),
    ),
    Layer.provideMerge(Layer.mergeAll(meeting(fates), lockedOut, placed)),
    Layer.provideMerge(
      Layer.mergeAll(
        memoryStore,
        singleRunner,
        simulatedBackend,
        keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      ),
    ),
  );

type Services = Layer.Success<ReturnType<typeof cronSide>>;

const trigger = (slug: string, cron: string) => `
[[triggers]]
slug = "${slug}"
type = "cron"
cron = "${cron}"
prompt = "tick"
`;

const newProject = (projectId: string) => ({
  id: projectId,
  accountId: id(1),
  name: "p",
  repository: { kind: "hosted" as const },
  defaultBranch: "main",
  createdBy: id(2),
  now: 0,
});

/** The manifest of the project is `text` now, and read. */
const push = Effect.fnUntraced(function* (text: string) {
  yield* (yield* SimulatedRepositories).commit(
    { projectId: PROJECT },
    { branch: "main", onto: null, files: { "platform.toml": text }, subject: "manifest" },
  );
  const project = yield* (yield* Projects).get(PROJECT);
  if (project !== null) yield* (yield* Manifests).sync(project);
});

/** An account that may run `cap` sessions, with a project whose manifest is `text`, read. */
const begin = Effect.fnUntraced(function* (text: string, cap: number) {
  yield* (yield* Identity).bootstrap({
    accountId: id(1),
    userId: id(2),
    tokenId: id(3),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap,
    now: 0,
  });
  yield* (yield* GitBackend).create({ projectId: PROJECT, importFrom: null, defaultBranch: "main" });
  yield* (yield* Projects).create(newProject(PROJECT));
  yield* push(text);
});

/** Second by second: what becomes ready at an instant runs before the next one. */
const advance = (seconds: number) => Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

/** Runs a test over the cron side, and ends it while the clock goes on. */
const over = <E>(test: Effect.Effect<void, E, Services>, fates: Fates = () => "arrives", queueMax = 100) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(cronSide(fates, queueMax), scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

/** The ledger, oldest first: second of the instant, status, reason. */
const ledger = Effect.gen(function* () {
  const everything = { limit: 200, cursor: null, status: null, slug: null };
  const { items } = yield* (yield* Fires).list(PROJECT, everything);
  return items
    .map(({ triggerSlug, scheduledFor, status, reason }) => {
      const second = (scheduledFor ?? Number.NaN) / 1000;
      return { slug: triggerSlug, second, status, reason };
    })
    .toSorted((a, b) => a.second - b.second);
});
const seconds = Effect.map(ledger, (rows) => rows.map(({ second }) => second));

const isTimer = ({ type }: TriggerEvent): boolean => type === "timer.elapsed";

describe("a due instant", () => {
  it.effect("is told again while its trigger cannot be reached, and the trigger goes on from there", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "0 */10 * * * *"), 100);
      yield* advance(605);
      assert.deepStrictEqual(yield* seconds, [600]);
      yield* advance(600);
      assert.deepStrictEqual(yield* seconds, [600, 1200]);
    }).pipe((test) => over(test, (event, nth) => (isTimer(event) && nth <= 4 ? "fails" : "arrives"))),
  );

  it.effect("is told by the next poll where its message was lost altogether", () =>
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

  it.effect(
    "is fired in time where its schedule took a former one's place while that one is being told",
    () =>
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

  it.effect("is told no more once its project is archived", () =>
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
    it.effect(`is not fired where its trigger was ${name} between the instant and the claim [C18]`, () =>
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

  it.effect("has its row, failed with the reason, where the queue is full", () =>
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
  it.effect("is taken up while the database gives nothing out for another project", () =>
    Effect.gen(function* () {
      yield* begin(trigger("tick", "0 */10 * * * *"), 100);
      yield* (yield* Projects).create(newProject(LOCKED));
      yield* advance(5);
      yield* push(trigger("tick", "30 */10 * * * *"));
      yield* advance(640);
      assert.deepStrictEqual(yield* seconds, [30, 630]);
    }).pipe((test) => over(test)),
  );
});

describe("a trigger that moves to another node", () => {
  it.effect("is told of nothing here any more, and nothing is held of it", () =>
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

  it.effect("and back goes on from its cursor at once: each instant of the last minute fires", () =>
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

  it.effect("while its schedule changes is armed by the new one", () =>
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

describe("an instant that has its row already", () => {
  it.effect("moves the cursor, and the trigger goes on from there", () =>
    Effect.suspend(() => {
      let told = 0;
      const test = Effect.gen(function* () {
        const text = "*/20 * * * * *";
        yield* begin(trigger("tick", text), 100);
        yield* advance(65);
        // A node whose clock is behind takes the schedule up anew.
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

describe("what goes on in calm", () => {
  it.effect("tells a trigger once of each instant, over any number of polls", () =>
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
