/**
 * Open connections on a node, over the store's twin and a test clock: what ends them, when, and the cost of knowing
 * it.
 */
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { describe, expect } from "vitest";
import { Openings, openingsLayer, type Use } from "../../../src/http/callers/openings.ts";
import type { Grant } from "../../../src/store/ports/people/grants.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { makeAccount, NUMBERED, numbered } from "../../support/world/world.ts";

/** Beside those of the account. */
const tokenId = (index: number): string => numbered(10 + index);

const held = (index: number, expiresAt: number | null = null): Use => ({
  credential: { kind: "token", id: tokenId(index) },
  projectId: null,
  needs: "viewer",
  session: null,
  endsWith: [tokenId(index)],
  expiresAt,
});

/** A world of one account, whose store tells how often it is asked, and can be made deaf or broken. */
const world = Effect.gen(function* () {
  const store = yield* Layer.build(memoryStore);
  const identity = Context.get(store, Identity);
  const { accountId, userId } = yield* Effect.provideContext(makeAccount({ ...NUMBERED, cap: 1 }), store);
  const asked: number[] = [];
  const state = { isDeaf: false, isBroken: false };
  const watched = Identity.of({
    ...identity,
    ended: (grants: readonly Grant[], now: number) =>
      Effect.suspend(() => {
        asked.push(grants.length);
        return state.isBroken
          ? Effect.fail(new StoreError({ operation: "identity.ended", cause: new Error("away") }))
          : identity.ended(grants, now);
      }),
    endings: (hear) => identity.endings((id) => (state.isDeaf ? undefined : hear(id))),
  });
  const layer = Layer.provide(openingsLayer, Layer.succeed(Identity, watched));
  const openings = Context.get(yield* Layer.build(layer), Openings);
  const makeToken = (index: number, expiresAt: number | null = null) =>
    identity.createToken({
      id: tokenId(index),
      accountId,
      userId,
      projectId: null,
      name: "held",
      hash: String(index),
      origin: "user",
      expiresAt,
      now: 0,
    });
  const cuts: string[] = [];
  const hold = (index: number, name: string, expiresAt: number | null = null) =>
    openings.hold(held(index, expiresAt), () => void cuts.push(name));
  const revoke = (index: number) =>
    identity.deleteToken({ accountId: accountId, userId: null }, tokenId(index), 0);
  return { openings, asked, state, makeToken, hold, cuts, revoke };
});

describe("open connections", () => {
  it.effect(
    "are cut at once when their token is revoked, all of them, and no connection of another token",
    () =>
      Effect.gen(function* () {
        const { makeToken, hold, cuts, revoke } = yield* world;
        yield* makeToken(1);
        yield* makeToken(2);
        hold(1, "a");
        hold(2, "other");
        hold(1, "b");
        yield* TestClock.adjust(0);
        yield* revoke(1);
        yield* TestClock.adjust(0);
        expect(cuts.toSorted()).toEqual(["a", "b"]);
        yield* TestClock.adjust(10_000);
        expect(cuts).toHaveLength(2);
      }),
  );

  it.effect("are cut within half a second if the signal is lost", () =>
    Effect.gen(function* () {
      const { makeToken, hold, cuts, revoke, state } = yield* world;
      yield* makeToken(1);
      hold(1, "a");
      yield* TestClock.adjust(0);
      state.isDeaf = true;
      yield* revoke(1);
      yield* TestClock.adjust(499);
      expect(cuts).toEqual([]);
      yield* TestClock.adjust(1);
      expect(cuts).toEqual(["a"]);
    }),
  );

  it.effect("are cut if the token ended before they were registered", () =>
    Effect.gen(function* () {
      const { makeToken, hold, cuts, revoke } = yield* world;
      yield* makeToken(1);
      yield* revoke(1);
      hold(1, "a");
      yield* TestClock.adjust(1000);
      expect(cuts).toEqual(["a"]);
    }),
  );

  it.effect("are cut at the instant of their expiry, also while the database is away", () =>
    Effect.gen(function* () {
      const { makeToken, hold, cuts, state } = yield* world;
      const later = 3 * 3_600_000 + 500;
      yield* makeToken(1, 5500);
      yield* makeToken(2, later);
      hold(2, "later", later);
      yield* TestClock.adjust(0);
      hold(1, "sooner", 5500);
      state.isBroken = true;
      yield* TestClock.adjust(5499);
      expect(cuts).toEqual([]);
      yield* TestClock.adjust(1);
      expect(cuts).toEqual(["sooner"]);
      yield* TestClock.adjust(later - 5501);
      expect(cuts).toEqual(["sooner"]);
      yield* TestClock.adjust(1);
      expect(cuts).toEqual(["sooner", "later"]);
    }),
  );

  it.effect("are not cut by an outage, and are checked again after it", () =>
    Effect.gen(function* () {
      const { makeToken, hold, cuts, revoke, state } = yield* world;
      yield* makeToken(1);
      hold(1, "a");
      state.isBroken = true;
      yield* revoke(1);
      yield* TestClock.adjust(10_000);
      expect(cuts).toEqual([]);
      state.isBroken = false;
      yield* TestClock.adjust(1000);
      expect(cuts).toEqual(["a"]);
    }),
  );

  it.effect("cost two statements a second for all of them, and none once they are over", () =>
    Effect.gen(function* () {
      const { makeToken, hold, asked } = yield* world;
      yield* TestClock.adjust(60_000);
      expect(asked).toEqual([]);
      const tokens = Array.from({ length: 50 }, (_, index) => index + 1);
      for (const index of tokens) yield* makeToken(index);
      const releases = tokens.flatMap((index) => Array.from({ length: 20 }, () => hold(index, "never")));
      yield* TestClock.adjust(10_000);
      expect(asked.length).toBeLessThanOrEqual(21);
      expect(new Set(asked)).toEqual(new Set([50]));
      for (const release of releases) release();
      asked.length = 0;
      yield* TestClock.adjust(60_000);
      expect(asked).toEqual([]);
    }),
  );

  it.effect("are not cut after their end, and complete the waiting callers when they are cut", () =>
    Effect.gen(function* () {
      const { makeToken, hold, cuts, revoke, openings } = yield* world;
      yield* makeToken(1);
      hold(1, "over")();
      const ending = yield* openings.ending(held(1));
      expect(yield* Deferred.isDone(ending)).toBe(false);
      yield* revoke(1);
      yield* Deferred.await(ending);
      expect(cuts).toEqual([]);
    }),
  );
});
