/** Which images of builds a node keeps (features/environments/old-images.ts V1). */
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { BuildSite } from "../../../src/builder/site/port.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { DUTIES } from "../../../src/services/duties.ts";
import { oldImagesLayer } from "../../../src/features/environments/old-images.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import {
  BUILDS_KEPT,
  EnvironmentBuilds,
  type NewBuild,
} from "../../../src/store/ports/projects/environment-builds.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { BUILT, endedBuild, NOT_BUILT } from "../../support/world/environment-builds.ts";
import { admitSession, openSandbox, tellSandbox } from "../../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../../support/world/world.ts";

const { periodMs } = DUTIES.environments;

interface Wish {
  /** Wraps the ledger that the duty uses. */
  readonly ledger?: (builds: EnvironmentBuilds["Service"]) => EnvironmentBuilds["Service"];
}

/** A node with the duty, whose disk has room for no image beside those that must stay. */
const openNode = Effect.fnUntraced(function* ({ ledger = (builds) => builds }: Wish = {}) {
  yield* TestClock.setTime(NOON);
  const site = new SimulatedSite();
  site.budget = 0;
  const collected: number[] = [];
  const collecting: BuildSite["Service"] = {
    ...site.service,
    collect: (request) =>
      Effect.suspend(() => {
        collected.push(request.now);
        return site.service.collect(request);
      }),
  };
  const store = yield* Layer.build(memoryStore);
  const inStore = Effect.provideContext(store);
  const world = yield* inStore(makeWorld(20));
  const builds = Context.get(store, EnvironmentBuilds);
  yield* Layer.build(
    oldImagesLayer({ nodeId: "node-1" }).pipe(
      Layer.provide(Layer.succeed(BuildSite, collecting)),
      Layer.provide(Layer.succeed(EnvironmentBuilds, ledger(builds))),
    ),
  );
  /** A ready build with its image on this node's disk. @returns its id */
  const built = Effect.fnUntraced(function* (now: number, fields: Partial<NewBuild> = {}) {
    const { projectId = world.projectId } = fields;
    const id = yield* inStore(endedBuild(projectId, BUILT, { ...fields, now: NOON + now }));
    site.images.set(id, BUILT.image);
    return id;
  });
  /** A sandbox that boots on a build. @returns its id */
  const boot = Effect.fnUntraced(function* (buildId: string) {
    const { id } = yield* inStore(Effect.flatMap(admitSession(world), (session) => openSandbox(session)));
    yield* Context.get(store, Sandboxes).noteEnvironment(id, { buildId, isStale: false, now: NOON });
    return id;
  });
  const tell = (...[id, event]: Parameters<typeof tellSandbox>) => inStore(tellSandbox(id, event));
  const ready = Effect.map(
    Effect.suspend(() => builds.ready({ projectId: world.projectId, nodeId: "node-1", limit: 100 })),
    (rows) => rows.map(({ id }) => id),
  );
  return { site, collected, world, builds, inStore, built, boot, tell, ready };
});

describe("images of builds that exceed the budget", () => {
  it.effect(
    "stay while a sandbox boots on them or uses them, and while they are their project's newest",
    () =>
      Effect.gen(function* () {
        const { site, collected, world, inStore, built, boot, tell, ready } = yield* openNode();
        const [booting, used, left, unused, former] = [
          yield* built(0),
          yield* built(1),
          yield* built(2),
          yield* built(3),
          yield* built(4),
        ];
        const newest = yield* built(5);
        const others = yield* built(6, { projectId: yield* inStore(addProject(world)) });
        // The newest build of the project failed: it has no image, and takes no other one's place.
        yield* inStore(endedBuild(world.projectId, NOT_BUILT, { now: NOON + 7 }));
        yield* boot(booting);
        yield* tell(yield* boot(used), { type: "daemon.ready" });
        const ended = yield* boot(left);
        yield* tell(ended, { type: "daemon.ready" });
        expect(collected).toEqual([]);
        yield* TestClock.adjust(periodMs);
        expect(collected).toEqual([NOON + periodMs]);
        expect([...site.images.keys()]).toEqual([booting, used, left, newest, others]);
        expect(yield* ready).toEqual([newest, left, used, booting]);
        expect(yield* ready).not.toEqual(expect.arrayContaining([unused, former]));
        yield* tell(ended, { type: "sandbox.lost", failure: { code: "sandbox_lost", message: "gone" } });
        const next = yield* built(8);
        yield* TestClock.adjust(periodMs);
        expect([...site.images.keys()]).toEqual([booting, used, others, next]);
        expect(yield* ready).toEqual([next, used, booting]);
      }),
  );

  it.effect("are those of this node: images of other nodes are not counted as removed", () =>
    Effect.gen(function* () {
      const { site, builds, world, inStore, built } = yield* openNode();
      const elsewhere = { nodeId: "node-2", now: NOON + 1 };
      const there = yield* inStore(endedBuild(world.projectId, BUILT, elsewhere));
      const here = yield* built(0);
      yield* TestClock.adjust(periodMs);
      expect([...site.images.keys()]).toEqual([here]);
      const rows = yield* builds.ready({ projectId: world.projectId, nodeId: "node-2", limit: 10 });
      expect(rows.map(({ id }) => id)).toEqual([there]);
    }),
  );

  it.effect("are forgotten after an outage of the database that began when they were removed", () =>
    Effect.gen(function* () {
      const outage = { left: 3 };
      const { site, built, ready } = yield* openNode({
        ledger: (builds) => ({
          ...builds,
          forgetImages: (ids) =>
            Effect.suspend(() => {
              outage.left -= 1;
              return outage.left >= 0
                ? Effect.fail(
                    new StoreError({ operation: "environmentBuilds.forgetImages", cause: "refused" }),
                  )
                : builds.forgetImages(ids);
            }),
        }),
      });
      yield* built(0);
      const newest = yield* built(1);
      yield* TestClock.adjust(periodMs * 2);
      expect([...site.images.keys()]).toEqual([newest]);
      expect(yield* ready).toEqual([newest]);
    }),
  );
});

describe("the ledger of builds", () => {
  it.effect("is kept short, round after round", () =>
    Effect.gen(function* () {
      const { builds, world, inStore, built } = yield* openNode();
      const { projectId } = world;
      // Its image is removed and forgotten first, so the same round can remove the build.
      const old = yield* built(0);
      for (let count = 1; count < BUILDS_KEPT + 1; count += 1)
        yield* inStore(endedBuild(projectId, NOT_BUILT, { now: NOON + count }));
      const newest = yield* built(BUILDS_KEPT + 1);
      expect(yield* builds.get(old)).not.toBe(null);
      yield* TestClock.adjust(periodMs);
      const { items } = yield* builds.list(projectId, { limit: 100, cursor: null });
      expect([items.length, items[0]?.id, yield* builds.get(old)]).toEqual([BUILDS_KEPT, newest, null]);
      yield* inStore(endedBuild(projectId, NOT_BUILT, { now: NOON + 1000 }));
      yield* TestClock.adjust(periodMs);
      const later = yield* builds.list(projectId, { limit: 100, cursor: null });
      expect(later.items).toHaveLength(BUILDS_KEPT);
    }),
  );
});
