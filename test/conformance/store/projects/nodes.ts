/** Nodes: heartbeats, dead nodes, and the owners of repositories. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { Nodes } from "../../../../src/store/ports/nodes.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { type Check } from "../fixture.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const scene = Effect.gen(function* () {
  const id = randomUUID();
  const nodes = yield* Nodes;
  const beat = nodes.beat({ id, url: "http://node:1", now: NOON });
  const again = nodes.beat({ id, url: "http://node:2", now: NOON + 1 });
  const self = Effect.map(nodes.all, (all) => all.find((node) => node.id === id));
  return { ...nodes, id, beat, again, self };
});

export const checkNodes = (check: Check): void => {
  describe("nodes", () => {
    check(
      "count a node's signs of life, and have its newest address",
      Effect.gen(function* () {
        const { id, beat, again, self } = yield* scene;
        expect(yield* self).toBeUndefined();
        yield* beat;
        expect(yield* self).toEqual({ id, url: "http://node:1", beats: 1, deadAt: null });
        yield* again;
        expect(yield* self).toEqual({ id, url: "http://node:2", beats: 2, deadAt: null });
      }),
    );

    check(
      "are declared dead once, at the beats of their silence, until their next sign of life",
      Effect.gen(function* () {
        const { id, beat, bury, self } = yield* scene;
        yield* beat;
        yield* beat;
        expect(yield* bury({ id, beats: 1, now: NOON + 5 })).toBe(false);
        expect(yield* bury({ id, beats: 2, now: NOON + 5 })).toBe(true);
        expect(yield* bury({ id, beats: 2, now: NOON + 6 })).toBe(false);
        expect((yield* self)?.deadAt).toBe(NOON + 5);
        yield* beat;
        expect((yield* self)?.deadAt).toBeNull();
      }),
    );

    check(
      "get a repository with its project, and later only if it has no node",
      Effect.gen(function* () {
        const { ownerNode, adopt } = yield* scene;
        const world = yield* makeWorld(1);
        const projects = yield* Projects;
        const owned = { id: randomUUID() };
        yield* projects.create({
          id: owned.id,
          accountId: world.accountId,
          name: "owned",
          repository: { kind: "hosted" },
          defaultBranch: "main",
          createdBy: world.userId,
          nodeId: "maker",
          now: NOON,
        });
        expect([yield* ownerNode(owned.id), yield* ownerNode(world.projectId)]).toEqual(["maker", null]);
        yield* adopt("finder", [owned.id, world.projectId, randomUUID()]);
        yield* adopt("latecomer", [world.projectId]);
        expect([yield* ownerNode(owned.id), yield* ownerNode(world.projectId)]).toEqual(["maker", "finder"]);
        expect(yield* ownerNode(randomUUID())).toBeNull();
      }),
    );
  });
};
