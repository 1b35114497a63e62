/** Parallel creates at the cap (threats.md R01): run by the ordinary tests for 6 rounds, by the deep ones for 150. */
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions } from "../../../src/store/ports/triggers/admissions.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { type StoreLayer } from "../../conformance/store/fixture.ts";
import { admitOne, admitSession, fired, tellSession, wish } from "../../support/world/sessions.ts";
import { makeWorld } from "../../support/world/world.ts";

const CREATES = 24;
const CAP = 3;

/** Fills an account to one below its cap and lets all creates go at once. */
const round = Effect.gen(function* () {
  const world = yield* makeWorld(CAP);
  for (let taken = 1; taken < CAP; taken += 1) yield* admitSession(world);
  const answers = yield* Effect.all(
    Array.from({ length: CREATES }, () => admitOne(world, wish(world))),
    { concurrency: "unbounded" },
  );
  const { account } = yield* Identity;
  const { list } = yield* Sessions;
  const page = yield* list(world.projectId, { limit: 100, cursor: null, status: "provisioning" });
  return {
    admitted: answers.filter(({ outcome }) => outcome === "admitted").length,
    refused: answers.filter(({ outcome }) => outcome === "refused").length,
    counter: (yield* account(world.accountId))?.activeSessions,
    live: page.items.length,
  };
});

const stopAndRestart = (id: string) =>
  Effect.andThen(
    tellSession(id, { type: "stop.requested" }),
    Effect.ignore(tellSession(id, { type: "restart.requested", sandboxId: randomUUID() })),
  );

export const admissionRaces = (layer: StoreLayer, rounds: number): void => {
  it(`admits exactly one of ${CREATES} parallel creates at cap - 1, ${rounds} times [R01, I1]`, async () => {
    for (let count = 0; count < rounds; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- the race is inside a round
      const outcome = await Effect.runPromise(Effect.provide(round, layer, { local: true }));
      expect(outcome).toEqual({ admitted: 1, refused: CREATES - 1, counter: CAP, live: CAP });
    }
  });

  it("makes one session of 50 parallel deliveries with one id [W33, I5]", async () => {
    const test = Effect.gen(function* () {
      const world = yield* makeWorld(100);
      const answers = yield* Effect.all(
        Array.from({ length: 50 }, () => admitOne(world, fired(world, { deliveryId: "d-1" }))),
        { concurrency: "unbounded" },
      );
      const outcomes = answers.map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === "admitted")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "duplicate")).toHaveLength(49);
      const { account } = yield* Identity;
      expect((yield* account(world.accountId))?.activeSessions).toBe(1);
    });
    await Effect.runPromise(Effect.provide(test, layer, { local: true }));
  });

  it("keeps the counter correct during concurrent creates, stops, restarts and drains [I1, I12, R08]", async () => {
    const test = Effect.gen(function* () {
      const world = yield* makeWorld(4);
      const admissions = yield* Admissions;
      const sessions = [];
      for (let taken = 0; taken < 4; taken += 1) sessions.push(yield* admitSession(world));
      for (let count = 0; count < 6; count += 1) yield* admitOne(world, fired(world));
      const drain = Effect.gen(function* () {
        const sessionIds = [randomUUID(), randomUUID()];
        return yield* admissions.drain(world.accountId, { sessionIds, now: 0, bootTimeoutMs: 1000 });
      });
      yield* Effect.all(
        [
          ...sessions.map(stopAndRestart),
          ...Array.from({ length: 6 }, () => drain),
          ...Array.from({ length: 6 }, () => admitOne(world, wish(world))),
        ],
        { concurrency: "unbounded" },
      );
      const { account } = yield* Identity;
      const { list } = yield* Sessions;
      const page = yield* list(world.projectId, { limit: 100, cursor: null, status: "provisioning" });
      const counter = (yield* account(world.accountId))?.activeSessions;
      expect(counter).toBe(page.items.length);
      expect(counter).toBeLessThanOrEqual(4);
    });
    await Effect.runPromise(Effect.provide(test, layer, { local: true }));
  });
};
