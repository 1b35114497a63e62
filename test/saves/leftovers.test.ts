/** Saves without a row, over git repositories. */
import { describe, expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { makeLeftovers } from "../../src/saves/old/leftovers.ts";
import { SaveStore } from "../../src/saves/store.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { live, newPlace, saveOf, store } from "./store-setup.ts";

describe("saves without a row", () => {
  live("are removed when two looks have found them, and no others", () =>
    Effect.gen(function* () {
      const saves = yield* SaveStore;
      const own = newPlace();
      const [deleted, unknown] = [newPlace(own.projectId), newPlace(own.projectId)];
      const ofNoProject = newPlace();
      for (const place of [own, deleted, unknown, ofNoProject])
        yield* store(place, saveOf({ a: "one" }), ["one"]);
      const rows = new Map<string, { readonly deletedAt: number | null }>([
        [own.sessionId, { deletedAt: null }],
        [deleted.sessionId, { deletedAt: 1 }],
      ]);
      const ports = Layer.mergeAll(
        Layer.mock(Sessions, { get: (id: string) => Effect.succeed(rows.get(id) ?? null) } as never),
        Layer.mock(Projects, {
          unheld: (ids: readonly string[]) => Effect.succeed(ids.filter((id) => id !== own.projectId)),
        } as never),
      );
      const round = yield* Effect.provide(makeLeftovers, ports);
      const stored = Effect.map(saves.places, (places) => [...places.values()].flat().length);
      yield* round;
      yield* round;
      expect(yield* stored).toBe(4);
      // It has its row at the second look.
      rows.set(unknown.sessionId, { deletedAt: null });
      yield* TestClock.adjust("6 hours");
      yield* round;
      expect(yield* saves.places).toEqual(
        new Map([[own.projectId, [own.sessionId, unknown.sessionId].toSorted()]]),
      );
    }).pipe(Effect.provide(TestClock.layer())),
  );
});
