/** What a node knows of the others (src/nodes/map.ts), by the test's clock, over the store's twin. */
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { NodeMap, nodeMapLayer } from "../../src/nodes/map.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Nodes } from "../../src/store/ports/nodes.ts";

const GRACE_MS = 20_000;
const OTHER = { id: "other", url: "http://other:1", now: 0 };

/** A node's map over a store that can be away, and the store itself. */
const opened = Effect.gen(function* () {
  const store = Context.get(yield* Layer.build(memoryStore), Nodes);
  const outage = { is: false };
  const orFail = <A>(operation: Effect.Effect<A, StoreError>) =>
    Effect.suspend(() =>
      outage.is ? Effect.fail(new StoreError({ operation: "test", cause: "away" })) : operation,
    );
  const seen = Nodes.of({
    ...store,
    beat: (node) => orFail(store.beat(node)),
    all: orFail(store.all),
    bury: (node) => orFail(store.bury(node)),
  });
  yield* store.beat(OTHER);
  const context = yield* Layer.build(
    nodeMapLayer({ nodeId: "self", url: "http://self:1", graceMs: GRACE_MS }).pipe(
      Layer.provide(Layer.succeed(Nodes, seen)),
    ),
  );
  return { map: Context.get(context, NodeMap), store, outage };
});

describe("a node's map", () => {
  it.effect("lists itself, nodes with signs of life, and nodes that were never seen", () =>
    Effect.gen(function* () {
      const { map } = yield* opened;
      expect(map.place("self")).toEqual({ is: "here" });
      expect(map.place("other")).toEqual({ is: "there", nodeId: "other", url: "http://other:1" });
      expect(map.place("stranger")).toEqual({ is: "away", nodeId: "stranger" });
    }),
  );

  it.effect(
    "counts a silent node as away soon, as dead after its grace, and as present at its next sign of life",
    () =>
      Effect.gen(function* () {
        const { map, store } = yield* opened;
        yield* TestClock.adjust(6000);
        expect(map.place("other")).toEqual({ is: "away", nodeId: "other" });
        expect(map.isSilent("other")).toBe(false);
        yield* TestClock.adjust(GRACE_MS - 7000);
        expect(map.place("other")).toEqual({ is: "away", nodeId: "other" });
        expect(map.isSilent("other")).toBe(true);
        yield* TestClock.adjust(2000);
        expect(map.place("other")).toEqual({ is: "dead", nodeId: "other" });
        expect((yield* store.all).find(({ id }) => id === "other")?.deadAt).not.toBeNull();
        yield* store.beat({ ...OTHER, url: "http://other:2" });
        yield* TestClock.adjust(1000);
        expect(map.place("other")).toEqual({ is: "there", nodeId: "other", url: "http://other:2" });
        expect(map.isSilent("other")).toBe(false);
      }),
  );

  it.effect("declares no node dead because the database was away, however long", () =>
    Effect.gen(function* () {
      const { map, outage } = yield* opened;
      outage.is = true;
      yield* TestClock.adjust(10 * GRACE_MS);
      outage.is = false;
      // One look follows, however late it is.
      yield* TestClock.adjust(6000);
      expect(map.place("other").is).not.toBe("dead");
    }),
  );
});
