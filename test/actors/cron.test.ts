/** Cron triggers from manifest to session, on every port's twin and a test clock (spec 6 "Cron fires"). */
import { assert, describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { singleRunner } from "../../src/actors/cluster.ts";
import { keyringLayer } from "../../src/actors/keyring.ts";
import { Manifests } from "../../src/actors/manifests.ts";
import { readConfig } from "../../src/config.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend, SimulatedRepositories } from "../../src/git/simulated.ts";
import { simulatedDaemon } from "../../src/sandbox/daemon-simulated.ts";
import { simulatedProvider } from "../../src/sandbox/simulated.ts";
import { actorLayers } from "../../src/service.ts";
import { memoryStore } from "../../src/store/memory/layer.ts";
import { Fires, Identity, Projects, Sessions } from "../../src/store/port.ts";
import type { Fire, Page } from "../../src/store/records.ts";

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const PROJECT = id(4);
const repository = { projectId: PROJECT };

const twins = Layer.mergeAll(memoryStore, simulatedBackend);

const serviceOver = (memory: typeof twins) =>
  actorLayers({
    config: readConfig({}, "/"),
    nodeId: id(9),
    ports: Layer.mergeAll(
      simulatedProvider({ bootMs: 10 }),
      simulatedDaemon,
      keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      singleRunner,
    ).pipe(Layer.provideMerge(memory)),
  }).pipe(Layer.provideMerge(memory));

const manifest = (cron: string, extra = "") => `
[[triggers]]
slug = "tick"
type = "cron"
cron = "${cron}"
prompt = "at {{ cron.fired_at }}, before {{ cron.last_fired_at }}"
${extra}`;

const push = Effect.fnUntraced(function* (text: string) {
  const repositories = yield* SimulatedRepositories;
  yield* repositories.commit(repository, {
    branch: "main",
    onto: null,
    files: { "platform.toml": text },
    subject: "manifest",
  });
  const project = yield* (yield* Projects).get(PROJECT);
  if (project !== null) yield* (yield* Manifests).sync(project);
});

/** An account with a project whose manifest is `text`, read. */
const projectWith = Effect.fnUntraced(function* (text: string) {
  yield* (yield* Identity).bootstrap({
    accountId: id(1),
    userId: id(2),
    tokenId: id(3),
    tokenHash: "0".repeat(64),
    tier: "free",
    cap: 1000,
    now: 0,
  });
  yield* (yield* GitBackend).create({ projectId: PROJECT, importFrom: null, defaultBranch: "main" });
  yield* (yield* Projects).create({
    id: PROJECT,
    accountId: id(1),
    name: "p",
    repository: { kind: "hosted" },
    defaultBranch: "main",
    createdBy: id(2),
    now: 0,
  });
  yield* push(text);
});

/** Second by second: what becomes ready at an instant runs before the next one. */
const advance = (seconds: number) => Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

type Services = Layer.Success<ReturnType<typeof serviceOver>>;

/** Runs a test over one life of the service, and ends it while the clock goes on: actors at work are given time to end. */
const inLife = <E>(memory: typeof twins, test: Effect.Effect<void, E, Services>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(Layer.fresh(serviceOver(memory)), scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

const overService = <E>(test: Effect.Effect<void, E, Services>) =>
  Effect.flatMap(Layer.build(Layer.fresh(twins)), (memory) => inLife(Layer.succeedContext(memory), test));

const everything = { limit: 200, cursor: null, status: null };

/** The whole ledger, oldest instant first: second, status, reason. */
const rows = Effect.gen(function* () {
  const fires = yield* Fires;
  const all: Fire[] = [];
  for (let cursor: string | null = null, more = true; more;) {
    const page: Page<Fire> = yield* fires.list(PROJECT, { ...everything, slug: null, cursor });
    all.push(...page.items);
    cursor = page.nextCursor;
    more = cursor !== null;
  }
  return all
    .map(({ scheduledFor, status, reason }) => [(scheduledFor ?? Number.NaN) / 1000, status, reason] as const)
    .toSorted(([a], [b]) => a - b);
});

/** Due instants of the ledger, oldest first, in seconds. */
const fired = Effect.gen(function* () {
  const { items } = yield* (yield* Fires).list(PROJECT, { ...everything, slug: null });
  return items.map(({ scheduledFor }) => (scheduledFor ?? Number.NaN) / 1000).toReversed();
});

describe("a cron trigger", () => {
  it.effect("fires each due instant once, with its instant and the former one in the prompt [C13]", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(150);
      assert.deepStrictEqual(yield* fired, [60, 120]);
      const { items } = yield* (yield* Sessions).list(PROJECT, everything);
      assert.deepStrictEqual(items.map(({ initialPrompt }) => initialPrompt).toReversed(), [
        "at 1970-01-01T00:01:00.000Z, before ",
        "at 1970-01-01T00:02:00.000Z, before 1970-01-01T00:01:00.000Z",
      ]);
      assert.deepStrictEqual([...new Set(items.map(({ origin }) => origin))], ["trigger"]);
    }).pipe(overService),
  );

  it.effect("goes on firing when it was out of memory between its instants", () =>
    Effect.gen(function* () {
      // Idle actors leave memory after a minute; this one is due every ten.
      yield* projectWith(manifest("0 */10 * * * *"));
      yield* advance(31 * 60);
      assert.deepStrictEqual(yield* fired, [600, 1200, 1800]);
    }).pipe(overService),
  );

  it.effect("fires several instants within one poll exactly when they are due", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("*/15 * * * * *"));
      yield* advance(46);
      assert.deepStrictEqual(yield* fired, [15, 30, 45]);
    }).pipe(overService),
  );

  it.effect("follows a changed schedule at once and fires neither instant twice [C17]", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(61);
      yield* push(manifest("30 * * * * *"));
      yield* advance(100);
      assert.deepStrictEqual(yield* fired, [60, 90, 150]);
    }).pipe(overService),
  );

  for (const [name, text] of [
    ["is disabled", manifest("0 * * * * *", "enabled = false")],
    ["is removed", ""],
    [
      "has become a webhook [M21]",
      manifest("0 * * * * *").replace(/type = .*\ncron = .*/, 'type = "webhook"\nsecret_env = "S"'),
    ],
  ] as const) {
    it.effect(`stops at once when it ${name}`, () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* advance(61);
        yield* push(text);
        yield* advance(300);
        assert.deepStrictEqual(yield* fired, [60]);
      }).pipe(overService),
    );
  }

  it.effect(
    "of a paused project has a row for each due instant that says so, and goes on when it is paused no more",
    () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* (yield* Projects).update(PROJECT, { triggersPaused: true }, 0);
        yield* advance(150);
        yield* (yield* Projects).update(PROJECT, { triggersPaused: false }, 0);
        yield* advance(60);
        assert.deepStrictEqual(yield* rows, [
          [60, "skipped", "paused"],
          [120, "skipped", "paused"],
          [180, "fired", null],
        ]);
      }).pipe(overService),
  );

  for (const [name, away, back] of [
    ["disabled and enabled again", manifest("0 * * * * *", "enabled = false"), manifest("0 * * * * *")],
    ["renamed and back [M20]", manifest("0 * * * * *").replace("tick", "tock"), manifest("0 * * * * *")],
  ] as const) {
    it.effect(`starts counting anew where it was ${name}`, () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* advance(61);
        yield* push(away);
        yield* advance(300);
        yield* push(back);
        yield* advance(60);
        const { items } = yield* (yield* Fires).list(PROJECT, { ...everything, slug: "tick" });
        assert.deepStrictEqual(
          items.map(({ scheduledFor, status }) => [(scheduledFor ?? 0) / 1000, status]).toReversed(),
          [
            [60, "fired"],
            [420, "fired"],
          ],
        );
      }).pipe(overService),
    );
  }

  it.effect("starts counting anew where its project was archived meanwhile", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(61);
      yield* (yield* Projects).update(PROJECT, { status: "archived" }, 0);
      yield* advance(300);
      yield* (yield* Projects).update(PROJECT, { status: "active" }, 0);
      yield* advance(60);
      assert.deepStrictEqual(yield* rows, [
        [60, "fired", null],
        [420, "fired", null],
      ]);
    }).pipe(overService),
  );
});

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
  it.effect("an hour back fires no instant twice, and goes on where it was [C14]", () =>
    overSetClock((skew) =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 */10 * * * *"));
        yield* advance(3_610);
        const before = yield* rows;
        assert.strictEqual(before.length, 6);
        skew.ms = -3_600_000;
        yield* advance(3_540);
        assert.deepStrictEqual(yield* rows, before);
        yield* advance(700);
        assert.deepStrictEqual((yield* rows).slice(before.length), [[4200, "fired", null]]);
      }),
    ),
  );

  it.effect("a day forward fires the newest instant alone, and every other has its row [C15]", () =>
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
  it.effect("of three days a minutely trigger fires the newest missed instant and no other [C16, I3]", () =>
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

  it.effect("that was longer than the window nothing fires late", () =>
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

  it.effect("over a clock change in spring the local time in the gap has fired once [C11]", () =>
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

  it.effect("over a clock change in autumn the local time that comes twice has fired once [C12]", () =>
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

  it.effect("in which nothing was due nothing is missed", () =>
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
