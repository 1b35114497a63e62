/** Cron triggers from manifest to session, on every port's twin and a test clock (spec 6 "Cron fires"). */
import { assert, describe, it } from "@effect/vitest";
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

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const PROJECT = id(4);
const repository = { projectId: PROJECT };

const service = actorLayers({
  config: readConfig({}, "/"),
  nodeId: id(9),
  ports: Layer.mergeAll(
    memoryStore,
    simulatedProvider({ bootMs: 10 }),
    simulatedDaemon,
    keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
    singleRunner,
  ).pipe(Layer.provideMerge(simulatedBackend)),
}).pipe(Layer.provideMerge(simulatedBackend));

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

type Services = Layer.Success<typeof service>;

/** Runs a test over the service, and ends it while the clock goes on: actors at work are given time to end. */
const overService = <E>(test: Effect.Effect<void, E, Services>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(service, scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(10);
    yield* Fiber.join(closing);
  });

const everything = { limit: 200, cursor: null, status: null };

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

  it.effect("does not fire in a paused project", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* (yield* Projects).update(PROJECT, { triggersPaused: true }, 0);
      yield* advance(300);
      assert.deepStrictEqual(yield* fired, []);
    }).pipe(overService),
  );
});
