/** Conformance: waiting for a slot: the order of fires, and the ways in which a wait ends. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions } from "../../src/store/ports/admissions.ts";
import { Fires } from "../../src/store/ports/fires.ts";
import { Identity } from "../../src/store/ports/identity.ts";
import { Projects } from "../../src/store/ports/projects.ts";
import { type Check } from "./store-fixture.ts";
import { admitOne, admitSession, due, fired, tellSession, wish } from "../support/world/sessions.ts";
import { accountOf, makeWorld, NOON } from "../support/world/world.ts";

export const checkQueue = (check: Check): void => {
  describe("a waiting fire", () => {
    check(
      "is not overtaken by a later one that finds a free slot [I13]",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { drain } = yield* Admissions;
        const taken = yield* admitSession(world);
        const first = fired(world);
        expect(yield* admitOne(world, first)).toMatchObject({ outcome: "queued", slotIsFree: false });
        yield* tellSession(taken, { type: "stop.requested" });
        const second = fired(world);
        expect(yield* admitOne(world, second)).toMatchObject({ outcome: "queued", slotIsFree: true });
        const request = { sessionIds: [randomUUID(), randomUUID()], now: NOON, bootTimeoutMs: 1000 };
        const { admitted } = yield* drain(world.accountId, request);
        expect(admitted.map(({ fireId }) => fireId)).toEqual([first.fire?.id]);
        expect((yield* admitOne(world, wish(world))).outcome).toBe("refused");
      }),
    );

    check(
      "is cancelled permanently, once",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { cancel } = yield* Admissions;
        const { get, queue } = yield* Fires;
        const request = fired(world, { deliveryId: "d-1" });
        const id = request.fire?.id ?? "";
        yield* admitOne(world, request);
        expect(yield* cancel(id, NOON)).toBe(true);
        expect(yield* get(id)).toMatchObject({ status: "cancelled", reason: "requested" });
        expect(yield* queue({ accountId: world.accountId, userId: null })).toEqual([]);
        expect(yield* accountOf(world)).toMatchObject({ queuedFires: 0 });
        expect(yield* cancel(id, NOON)).toBe(false);
        expect(yield* cancel(randomUUID(), NOON)).toBe(false);
        const again = yield* admitOne(world, fired(world, { deliveryId: "d-1" }));
        expect(again).toMatchObject({ outcome: "queued", fireId: id });
      }),
    );

    check(
      "is counted when its wait begins and ends, whatever ends it",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { drain } = yield* Admissions;
        const { setTier } = yield* Identity;
        const queued = Effect.map(accountOf(world), (account) => account?.queuedFires);
        for (let count = 0; count < 3; count += 1) yield* admitOne(world, fired(world, { queueTtlMs: 10 }));
        yield* admitOne(world, due(world, NOON));
        yield* admitOne(world, due(world, NOON + 1));
        expect(yield* queued).toBe(4);
        yield* setTier(world.accountId, "free", 1);
        yield* drain(world.accountId, { sessionIds: [randomUUID()], now: NOON, bootTimeoutMs: 1 });
        expect(yield* queued).toBe(3);
        yield* drain(world.accountId, { sessionIds: [], now: NOON + 10, bootTimeoutMs: 1 });
        expect(yield* queued).toBe(1);
        yield* (yield* Projects).update(world.projectId, { status: "archived" }, NOON);
        expect(yield* queued).toBe(0);
      }),
    );
  });
};
