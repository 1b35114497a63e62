/** How the store's conformance suite runs a test: each on its own store. support/world has the functions that fill it. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { Events } from "../../../src/store/ports/events.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import type { Store } from "../../../src/assembly/database.ts";
import type { World } from "../../support/world/world.ts";

export type { Store };

export type StoreLayer = Layer.Layer<Store, unknown>;

/** Registers a test that runs on its own store. */
export type Check = <E>(name: string, test: Effect.Effect<void, E, Store>) => void;

export const checkWith =
  (layer: StoreLayer): Check =>
  (name, test) => {
    // A new layer each time, so that tests do not see each other's data.
    it.live(name, () => Effect.provide(test, layer, { local: true }));
  };

/**
 * Follows the events of one type in a session.
 * @returns a function that reads the later ones, once at least `expected` of them can be read
 */
export const followSession = Effect.fnUntraced(function* (
  place: { readonly projectId: string; readonly sessionId: string },
  type: string,
) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ ...place, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (expected: number) =>
    // A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry.
    read(cursor).pipe(
      Effect.map(({ events }) => events.filter((event) => event.type === type)),
      Effect.repeat({
        until: (events) => events.length >= expected,
        schedule: Schedule.spaced("10 millis"),
      }),
    );
});

/** How many sessions the world's account counts. */
export const activeSessions = Effect.fnUntraced(function* (world: World) {
  const identity = yield* Identity;
  return (yield* identity.account(world.accountId))?.activeSessions;
});
