/** The directory's record of a project, and the records of the others beside one that cannot be held. */
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { assert, describe } from "vitest";
import { Directory, directoryLayer } from "../../src/services/directory.ts";
import { Keyring, keyringLayer } from "../../src/services/keyring.ts";
import { sealSecret } from "../../src/domain/secret/secret.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Projects, type ProjectState } from "../../src/store/ports/projects/projects.ts";
import { Secrets } from "../../src/store/ports/projects/secrets.ts";
import { type Store } from "../conformance/store/fixture.ts";
import { addProject, makeWorld, NOON } from "../support/world/world.ts";

const MANIFEST = `
[[triggers]]
slug = "on-push"
type = "webhook"
secret_env = "SIGNING"
prompt = "p"
`;

const put = Effect.fnUntraced(function* (projectId: string, userId: string, name: string) {
  const { secrets } = yield* Keyring;
  const place = { projectId, name, version: 1 };
  const envelope = sealSecret(secrets, place, { value: "value", nonce: new Uint8Array(12) });
  yield* (yield* Secrets).put({ ...place, envelope }, { userId, now: NOON });
});

/** The directory over the twin, whose states are read as `read` leaves them. */
const overStates = (read: (state: ProjectState) => ProjectState) =>
  overProjects((projects) => ({
    ...projects,
    states: (ids) => Effect.map(projects.states(ids), (found) => found.map(read)),
  }));

/** The directory over the twin whose projects are changed like this. */
const overProjects = (change: (projects: Projects["Service"]) => Projects["Service"]) => {
  const projects = Layer.effect(Projects, Effect.map(Projects, change));
  return directoryLayer.pipe(
    Layer.provideMerge(projects),
    Layer.provideMerge(memoryStore),
    Layer.provideMerge(keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] })),
  );
};

const check = <E>(
  name: string,
  test: Effect.Effect<void, E, Store | Directory | Keyring>,
  read: (state: ProjectState) => ProjectState = (state) => state,
) => {
  it.effect(name, () => Effect.provide(test, overStates(read), { local: true }));
};

describe("the directory", () => {
  check(
    "decrypts only the secrets that sign webhooks [I16]",
    Effect.gen(function* () {
      const { projectId, userId } = yield* makeWorld(1);
      yield* put(projectId, userId, "SIGNING");
      yield* put(projectId, userId, "DEPLOY_KEY");
      const good = { commit: "c1", text: MANIFEST, agents: [], bringsModel: null, environment: null };
      yield* (yield* Projects).recordManifest(projectId, { commit: "c1", good, failure: null, now: NOON });
      const known = yield* (yield* Directory).refresh(projectId);
      assert.deepStrictEqual([...(known?.keys.keys() ?? [])], ["SIGNING"]);
    }),
  );

  check(
    "keeps the others if it cannot hold one project",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const projects = yield* Projects;
      yield* projects.update(world.projectId, { name: "broken" }, NOON);
      const other = yield* addProject(world);
      const directory = yield* Directory;
      yield* TestClock.adjust("1 second");
      assert.deepStrictEqual(
        [world.projectId, other].map((id) => directory.known(id)?.project.id ?? null),
        [null, other],
      );
    }),
    (state) => (state.project.name === "broken" ? Object.assign(state, { secrets: null }) : state),
  );
});

/** No commit's signal comes, as on a node whose listening connection is slow; `looks` counts what the store is asked. */
const unsignalled = (looks: { count: number; wait: Effect.Effect<void> }) =>
  overProjects((projects) => ({
    ...projects,
    changed: Effect.never,
    changedSince: (since) =>
      Effect.suspend(() => {
        looks.count += 1;
        return Effect.andThen(looks.wait, projects.changedSince(since));
      }),
  }));

describe("a caller of the directory that misses a project", () => {
  it.effect("finds it after one more read, before the next poll", () =>
    Effect.gen(function* () {
      const directory = yield* Directory;
      const { projectId } = yield* makeWorld(1);
      assert.strictEqual(directory.known(projectId), null);
      yield* directory.caughtUp;
      assert.strictEqual(directory.known(projectId)?.project.id, projectId);
    }).pipe(Effect.provide(unsignalled({ count: 0, wait: Effect.void }), { local: true })),
  );

  it.effect("shares that read with all callers that miss a project meanwhile [W38]", () =>
    Effect.suspend(() => {
      const first = Deferred.makeUnsafe<void>();
      const looks = { count: 0, wait: Effect.void as Effect.Effect<void> };
      const test = Effect.gen(function* () {
        const { caughtUp } = yield* Directory;
        // Its own first looks are over.
        while (looks.count < 2) yield* Effect.yieldNow;
        looks.wait = Deferred.await(first);
        const before = looks.count;
        const one = yield* Effect.forkChild(caughtUp, { startImmediately: true });
        while (looks.count === before) yield* Effect.yieldNow;
        const others = yield* Effect.forEach(Array.from({ length: 1_000 }), () =>
          Effect.forkChild(caughtUp, { startImmediately: true }),
        );
        yield* Deferred.succeed(first, undefined);
        yield* Fiber.join(one);
        yield* TestClock.adjust("20 millis");
        yield* Fiber.joinAll(others);
        assert.strictEqual(looks.count - before, 2);
      });
      return test.pipe(Effect.provide(unsignalled(looks), { local: true }));
    }),
  );
});
