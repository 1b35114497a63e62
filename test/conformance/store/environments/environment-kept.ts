/** Conformance: which builds of environments are kept, and for how long. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import type { EnvironmentBuildEvent } from "../../../../src/machines/environment-build.ts";
import {
  BUILDS_KEPT,
  EnvironmentBuilds,
  type NewBuild,
} from "../../../../src/store/ports/projects/environment-builds.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import {
  BUILT,
  CANCELLED,
  endedBuild,
  newBuild,
  NOT_BUILT,
  sourceOf,
} from "../../../support/world/environment-builds.ts";
import { admitSession, openSandbox, tellSandbox } from "../../../support/world/sessions.ts";
import { addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

/** Does what an actor has to do. */
const settle = Effect.fnUntraced(function* (id: string) {
  const { memory } = yield* EnvironmentBuilds;
  const pending = (yield* memory.load(id))?.pending ?? [];
  yield* memory.complete(
    id,
    pending.map((command) => command.id),
  );
});

/** A sandbox of a session of its own on node-1, which uses the build. @returns its id */
const sandboxOn = Effect.fnUntraced(function* (world: World, buildId: string) {
  const { id } = yield* openSandbox(yield* admitSession(world));
  yield* (yield* Sandboxes).noteEnvironment(id, { buildId, isStale: false, now: NOON });
  return id;
});

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

export const checkKeptBuilds = (check: Check): void => {
  describe("a build of an environment, as time passes", () => {
    check(
      "must keep its image while a sandbox that has not ended uses it, or while it is its project's newest",
      Effect.gen(function* () {
        const world = yield* makeWorld(9);
        const { projectId } = world;
        const { forgetImages, inUse } = yield* EnvironmentBuilds;
        const built = (now: number, fields: Partial<NewBuild> = {}) =>
          endedBuild(fields.projectId ?? projectId, BUILT, { ...fields, now: NOON + now });
        const [booting, used, left, former] = [
          yield* built(0),
          yield* built(1),
          yield* built(2),
          yield* built(3),
        ];
        const awaited = yield* endedBuild(projectId, NOT_BUILT, { now: NOON + 4 });
        const newest = yield* built(5, { source: sourceOf("k2") });
        yield* endedBuild(projectId, NOT_BUILT, { now: NOON + 6 });
        yield* newBuild(projectId, { now: NOON + 7 });
        const elsewhere = yield* built(8, { nodeId: "node-2" });
        const others = yield* built(9, { projectId: yield* addProject(world) });
        for (const build of [booting, awaited]) yield* sandboxOn(world, build);
        yield* tellSandbox(yield* sandboxOn(world, used), { type: "daemon.ready" });
        const ended = yield* sandboxOn(world, left);
        yield* tellSandbox(ended, { type: "daemon.ready" });
        yield* openSandbox(yield* admitSession(world));
        const kept = [booting, used, awaited, newest, others];
        expect(yield* inUse("node-1")).toEqual(new Set([...kept, left]));
        yield* tellSandbox(ended, {
          type: "sandbox.lost",
          failure: { code: "sandbox_lost", message: "gone" },
        });
        expect(yield* inUse("node-1")).toEqual(new Set(kept));
        expect(yield* inUse("node-2")).toEqual(new Set([elsewhere]));
        expect(yield* inUse("node-3")).toEqual(new Set());
        yield* forgetImages([newest]);
        expect(yield* inUse("node-1")).toEqual(new Set([booting, used, awaited, former, others]));
      }),
    );

    check(
      "is removed beyond the newest ones of its project and node, unless it is in use",
      Effect.gen(function* () {
        const world = yield* makeWorld(9);
        const { projectId } = world;
        const { appendLog, clearLog, forgetImages, get, inUse, list, log, prune } = yield* EnvironmentBuilds;
        const sandboxes = yield* Sandboxes;
        const old = (now: number, event: EnvironmentBuildEvent, fields: Partial<NewBuild> = {}) =>
          endedBuild(projectId, event, { ...fields, now: NOON + now });
        const removed = [yield* old(0, NOT_BUILT), yield* old(1, CANCELLED), yield* old(2, BUILT)];
        const [failed = "", cancelled = "", gone = ""] = removed;
        yield* settle(cancelled);
        const busy = yield* old(3, CANCELLED);
        const [awaited, unseen] = [yield* old(4, NOT_BUILT), yield* old(5, BUILT)];
        const [imaged, ready] = [yield* old(6, BUILT), yield* old(7, BUILT)];
        yield* forgetImages([gone, unseen]);
        for (const build of [awaited, unseen]) yield* sandboxOn(world, build);
        const former = yield* sandboxOn(world, failed);
        yield* tellSandbox(former, { type: "stop.requested" });
        const live = yield* newBuild(projectId, { source: sourceOf("k2"), now: NOON + 8 });
        yield* old(9, NOT_BUILT, { nodeId: "node-2" });
        yield* endedBuild(yield* addProject(world), NOT_BUILT);
        yield* appendLog(failed, "a log");
        const kept = [busy, awaited, unseen, imaged, ready, live];
        const newer: string[] = [];
        for (let count = 0; count < BUILDS_KEPT; count += 1) newer.push(yield* old(10 + count, NOT_BUILT));
        yield* prune;
        yield* prune;
        const left = ids((yield* list(projectId, { limit: 100, cursor: null })).items);
        expect(left).toHaveLength(1 + kept.length + newer.length);
        expect(left).toEqual(expect.arrayContaining([...kept, ...newer]));
        expect(yield* Effect.forEach(removed, get)).toEqual([null, null, null]);
        expect(yield* log(failed, { after: 0, limit: 10 })).toEqual([]);
        expect(yield* sandboxes.get(former)).toMatchObject({ environment: null });
        // Late reports of a removed build find nothing.
        yield* appendLog(failed, "late");
        yield* clearLog(failed);
        yield* forgetImages(removed);
        expect(yield* log(failed, { after: 0, limit: 10 })).toEqual([]);
        expect(yield* inUse("node-1")).toEqual(new Set([awaited, unseen, ready]));
      }),
    );
  });
};
