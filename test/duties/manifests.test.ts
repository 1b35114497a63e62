/** Readings of a project's manifest that overlap (spec 2.4, api.md 4). */
import { assert, describe, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import { Directory, directoryLayer } from "../../src/services/directory.ts";
import { keyringLayer } from "../../src/services/keyring.ts";
import { Manifests, manifestsLayer } from "../../src/services/projects/manifests.ts";
import { GitBackend } from "../../src/git/port.ts";
import { simulatedBackend } from "../twins/git/repositories.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Environments } from "../../src/services/environments/environments.ts";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { commitManifest, makeRepository, newProject, NUMBERED } from "../support/world/world.ts";

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;

/** Repositories whose files, in the project of that id, are read only after `release`; `reading` says that one began. */
const slowIn = (
  slow: string,
  doors: { readonly reading: Deferred.Deferred<void>; readonly release: Deferred.Deferred<void> },
) =>
  Layer.effect(
    GitBackend,
    Effect.map(GitBackend, (git) => {
      let isFirst = true;
      return GitBackend.of({
        ...git,
        branchTip: (repository, branch) =>
          Effect.gen(function* () {
            const tip = yield* git.branchTip(repository, branch);
            if (!isFirst || repository.projectId !== slow) return tip;
            isFirst = false;
            yield* Deferred.succeed(doors.reading, undefined);
            yield* Deferred.await(doors.release);
            return tip;
          }),
      });
    }),
  );

const manifest = (slug: string) => `
[[triggers]]
slug = "${slug}"
type = "cron"
cron = "0 0 0 1 1 *"
prompt = "p"
`;

const push = (projectId: string, slug: string) => commitManifest(projectId, manifest(slug));

const makeProject = Effect.fnUntraced(function* (projectId: string) {
  const projects = yield* Projects;
  yield* makeRepository(projectId);
  yield* projects.create(newProject(NUMBERED, { id: projectId, name: projectId, now: 0 }));
  const project = yield* projects.get(projectId);
  return project ?? (yield* Effect.die(new Error("the project was not made")));
});

const SLOW = id(4);

/** Projects whose environment was prepared, by all tests. */
const prepared: string[] = [];

/** Manifests over twins, whose repositories are seen through `git`. */
const over = (git: Layer.Layer<GitBackend, never, GitBackend>) =>
  manifestsLayer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        git,
        directoryLayer,
        Layer.mock(Environments, {
          builder: null,
          prepare: (projectId) => Effect.sync(() => void prepared.push(projectId)),
        }),
      ),
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        memoryStore,
        simulatedBackend,
        keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] }),
      ),
    ),
  );

const account = { accountId: id(1), userId: id(2), tokenId: id(3), tokenHash: "0".repeat(64) };
const beginAccount = Effect.flatMap(Identity, ({ bootstrap }) =>
  bootstrap({ ...account, tier: "free", cap: 10, now: 0 }),
);

/** Two projects with a manifest, and a first reading of one that has the old tip and goes no further. */
const scene = Effect.gen(function* () {
  const doors = { reading: yield* Deferred.make<void>(), release: yield* Deferred.make<void>() };
  const context = yield* Layer.build(Layer.fresh(over(slowIn(SLOW, doors))));
  const begin = Effect.gen(function* () {
    yield* beginAccount;
    const [slow, other] = [yield* makeProject(SLOW), yield* makeProject(id(5))];
    yield* push(slow.id, "old");
    yield* push(other.id, "other");
    const { sync, current } = yield* Manifests;
    const stored = Effect.map((yield* Projects).states([slow.id]), ([state]) => state?.manifest);
    return { slow, other, sync, current, stored };
  });
  const parts = yield* Effect.provideContext(begin, context);
  const first = yield* Effect.forkChild(parts.sync(parts.slow), { startImmediately: true });
  yield* Deferred.await(doors.reading);
  yield* Effect.provideContext(push(parts.slow.id, "new"), context);
  return { ...parts, first, release: Deferred.succeed(doors.release, undefined) };
});

const slugs = ({ triggers }: { readonly triggers: readonly { readonly slug: string }[] }) =>
  triggers.map(({ slug }) => slug);

describe("several reads of one manifest", () => {
  it.effect("do not overtake each other: the newest stays in force and in the store", () =>
    Effect.gen(function* () {
      const { slow, first, release, sync, current, stored } = yield* scene;
      const second = yield* Effect.forkChild(sync(slow), { startImmediately: true });
      // Time for the second to end, if it did not wait for the first.
      for (let turn = 0; turn < 100; turn += 1) yield* Effect.yieldNow;
      yield* release;
      assert.deepStrictEqual(slugs(yield* Fiber.join(first)), ["old"]);
      assert.deepStrictEqual(slugs(yield* Fiber.join(second)), ["new"]);
      assert.deepStrictEqual(slugs(yield* current(slow)), ["new"]);
      assert.include((yield* stored)?.text, "new");
    }),
  );

  it.effect("do not delay other projects", () =>
    Effect.gen(function* () {
      const { other, first, release, sync } = yield* scene;
      assert.deepStrictEqual(slugs(yield* sync(other)), ["other"]);
      yield* release;
      yield* Fiber.join(first);
    }),
  );

  it.effect("that were interrupted do not block the next one", () =>
    Effect.gen(function* () {
      const { slow, first, sync } = yield* scene;
      yield* Fiber.interrupt(first);
      assert.deepStrictEqual(slugs(yield* sync(slow)), ["new"]);
    }),
  );

  it.effect("are one if the first use of a manifest meets its read", () =>
    Effect.gen(function* () {
      const { slow, first, release, current } = yield* scene;
      const used = yield* Effect.forkChild(current(slow), { startImmediately: true });
      yield* release;
      assert.strictEqual(yield* Fiber.join(used), yield* Fiber.join(first));
    }),
  );
});

/** Repositories in which one project's crashes each caller that asks for its tip. */
const crashingIn = (broken: string) =>
  Layer.effect(
    GitBackend,
    Effect.map(GitBackend, (git) =>
      GitBackend.of({
        ...git,
        branchTip: (repository, branch) =>
          repository.projectId === broken
            ? Effect.die(new Error("a defect in a backend"))
            : git.branchTip(repository, branch),
      }),
    ),
  );

describe("a round over all manifests", () => {
  it.effect("reads the others if one project's read crashes", () =>
    Effect.gen(function* () {
      yield* beginAccount;
      const directory = yield* Directory;
      for (const projectId of [id(4), id(5)]) {
        yield* makeProject(projectId);
        yield* directory.refresh(projectId);
        yield* push(projectId, "moved");
      }
      yield* (yield* Manifests).reconcile;
      const { triggers = [] } = directory.known(id(5))?.manifest ?? {};
      assert.deepStrictEqual(
        triggers.map(({ slug }) => slug),
        ["moved"],
      );
    }).pipe(Effect.provide(over(crashingIn(id(4))), { local: true })),
  );
});
