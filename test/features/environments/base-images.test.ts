/** The tags of base images, looked up again on a schedule (features/environments/base-images.ts). */
import { describe, it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { BaseUnknown, BuildSite } from "../../../src/builder/site/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { AGAIN_MS, baseImagesLayer } from "../../../src/features/environments/base-images.ts";
import { DUTIES } from "../../../src/services/duties.ts";
import { Environments } from "../../../src/services/environments/environments.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { EnvironmentBases } from "../../../src/store/ports/projects/environment-bases.ts";
import { EnvironmentBuilds } from "../../../src/store/ports/projects/environment-builds.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { BUILT, newBuild, sourceOf, stepBuild } from "../../support/world/environment-builds.ts";
import { manifestOf } from "../../support/world/environments.ts";
import { addProject, makeWorld, NOON } from "../../support/world/world.ts";

const { periodMs } = DUTIES.base_images;
const EVERY_MS = 60 * 60_000;
const A = "images.example.com/a:1";
const B = "images.example.com/b:1";
const D1 = `sha256:${"1".repeat(64)}`;
const D2 = `sha256:${"2".repeat(64)}`;

/** A node with the duty, whose builds are only counted. */
const openNode = Effect.fnUntraced(function* ({
  nodes = ["node-1"],
}: { readonly nodes?: readonly string[] } = {}) {
  yield* TestClock.setTime(NOON);
  const site = new SimulatedSite();
  const renewed: string[] = [];
  const store = yield* Layer.build(memoryStore);
  const inStore = Effect.provideContext(store);
  const world = yield* inStore(makeWorld(20));
  const environments: Environments["Service"] = {
    builder: "simulated",
    begin: () => Effect.succeed(null),
    prepare: () => Effect.void,
    renew: (projectId, { key }) => Effect.sync(() => (renewed.push(`${projectId} ${key}`), null)),
    forBoot: () => Effect.succeed({ image: null, variables: {} }),
  };
  for (const nodeId of nodes)
    yield* Layer.build(
      baseImagesLayer({ nodeId, everyMs: EVERY_MS }).pipe(
        Layer.provide(
          Layer.mergeAll(
            Layer.succeed(BuildSite, site.service),
            Layer.succeed(Environments, environments),
            Layer.succeedContext(store),
          ),
        ),
      ),
    );
  const bases = Context.get(store, EnvironmentBases);
  /** A ready build of the Dockerfile in force, made from tags. */
  const built = Effect.fnUntraced(function* (
    projectId: string,
    tags: Readonly<Record<string, string | null>>,
    {
      key = "k1",
      inForce = key,
      nodeId = "node-1",
    }: { readonly key?: string; readonly inForce?: string; readonly nodeId?: string } = {},
  ) {
    const id = yield* newBuild(projectId, { nodeId, source: sourceOf(key) });
    const noted = Object.entries(tags).map(([reference, digest]) => ({ reference, digest }));
    yield* (yield* EnvironmentBuilds).noteBases(id, noted);
    yield* stepBuild(id, [BUILT]);
    const good = manifestOf(sourceOf(inForce));
    yield* (yield* Projects).recordManifest(projectId, {
      commit: good.commit,
      good,
      failure: null,
      now: NOON,
    });
  });
  return {
    site,
    world,
    bases,
    inStore,
    renewed,
    built: (...args: Parameters<typeof built>) => inStore(built(...args)),
    other: inStore(addProject(world)),
  };
});

describe("the tag of a base image", () => {
  it.effect("is looked up once for all projects, after each pause, and a change begins a build of each", () =>
    Effect.gen(function* () {
      const { site, world, built, other, renewed, bases } = yield* openNode();
      const second = yield* other;
      site.tags.set(A, D1).set(B, D1);
      yield* built(world.projectId, { [A]: D1, [B]: D1 });
      yield* built(second, { [A]: D1 });
      yield* TestClock.adjust(periodMs);
      expect([site.looks.toSorted(), renewed]).toEqual([[A, B], []]);
      yield* TestClock.adjust(EVERY_MS - periodMs);
      expect(site.looks).toHaveLength(2);
      site.tags.set(A, D2);
      yield* TestClock.adjust(2 * periodMs);
      expect(site.looks).toHaveLength(4);
      expect(new Set(renewed)).toEqual(new Set([`${world.projectId} k1`, `${second} k1`]));
      expect(yield* bases.get([A])).toMatchObject([{ digest: D2, failures: 0, problem: null }]);
    }),
  );

  it.effect("is looked up by one of several nodes, and each node builds its own image again", () =>
    Effect.gen(function* () {
      const { site, world, built, renewed } = yield* openNode({ nodes: ["node-1", "node-2"] });
      site.tags.set(A, D2);
      for (const nodeId of ["node-1", "node-2"]) yield* built(world.projectId, { [A]: D1 }, { nodeId });
      yield* TestClock.adjust(2 * periodMs);
      expect(site.looks).toEqual([A]);
      expect(renewed.length).toBeGreaterThanOrEqual(2);
    }),
  );

  it.effect(
    "is not looked up for an earlier Dockerfile, an archived project, or a build without base images",
    () =>
      Effect.gen(function* () {
        const { site, world, built, other, inStore, renewed } = yield* openNode();
        const archived = yield* other;
        site.tags.set(A, D2);
        yield* built(world.projectId, { [A]: D1 }, { inForce: "k2" });
        yield* built(archived, { [A]: D1 });
        yield* inStore(
          Effect.flatMap(Projects, ({ update }) => update(archived, { status: "archived" }, NOON)),
        );
        yield* TestClock.adjust(2 * periodMs);
        yield* built(world.projectId, {}, { key: "k2" });
        yield* TestClock.adjust(2 * periodMs);
        expect([site.looks, renewed]).toEqual([[], []]);
      }),
  );

  it.effect("that no registry answers for is asked for again with growing pauses, and builds nothing", () =>
    Effect.gen(function* () {
      const { site, world, built, renewed, bases } = yield* openNode();
      yield* built(world.projectId, { [A]: D1 });
      yield* TestClock.adjust(periodMs);
      expect(site.looks).toHaveLength(1);
      yield* TestClock.adjust(AGAIN_MS - periodMs);
      expect(site.looks).toHaveLength(1);
      yield* TestClock.adjust(2 * periodMs);
      expect(site.looks).toHaveLength(2);
      yield* TestClock.adjust(2 * AGAIN_MS - 2 * periodMs);
      expect(site.looks).toHaveLength(2);
      yield* TestClock.adjust(3 * periodMs);
      expect(site.looks).toHaveLength(3);
      expect(yield* bases.get([A])).toMatchObject([
        { digest: null, lookedUpAt: null, failures: 3, problem: `no registry has ${A}` },
      ]);
      expect(renewed).toEqual([]);
      // It answers again.
      site.tags.set(A, D2);
      yield* TestClock.adjust(4 * AGAIN_MS + periodMs);
      expect(renewed[0]).toBe(`${world.projectId} k1`);
    }),
  );

  it.effect("is left alone for as long as its registry asks for", () =>
    Effect.gen(function* () {
      const { site, world, built, bases } = yield* openNode();
      yield* built(world.projectId, { [A]: D1 });
      let looks = 0;
      Object.assign(site.service, {
        lookUp: () =>
          Effect.suspend(() => {
            looks += 1;
            return new BaseUnknown({ message: "asked too often", waitMs: 3 * EVERY_MS });
          }),
      });
      yield* TestClock.adjust(2 * EVERY_MS);
      expect(looks).toBe(1);
      expect(yield* bases.get([A])).toMatchObject([{ problem: "asked too often" }]);
      yield* TestClock.adjust(2 * EVERY_MS);
      expect(looks).toBe(2);
    }),
  );
});
