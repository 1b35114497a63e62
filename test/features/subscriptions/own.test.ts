/** Which starting sandboxes get an own subscription, and in which order that is noted, over the store's twin. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { expect, it } from "vitest";
import { ownSubscriptionsLayer } from "../../../src/features/subscriptions/own.ts";
import { Subscriptions } from "../../../src/features/subscriptions/ports/subscriptions.ts";
import { sealContent } from "../../../src/features/subscriptions/sealing.ts";
import { simulatedDaemon } from "../../../src/sandbox/daemon-simulated.ts";
import { simulatedProvider } from "../../../src/sandbox/simulated.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { OwnSubscriptions } from "../../../src/services/projects/own-subscriptions.ts";
import { Suspensions } from "../../../src/store/ports/connectors/suspensions.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { addPerson, makeWorld, NOON } from "../../support/world/world.ts";
import { memoryStore } from "../../twins/store/layer.ts";

const keys = (byte: number) =>
  keyringLayer({ current: { version: 1, bytes: new Uint8Array(32).fill(byte) }, former: [] });
const ID = "0193b3c4-0000-7000-8000-00000000000a";

/** A session of a person who keeps a subscription, with a sandbox that starts. */
const starting = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { accountId, userId } = world;
  const sealed = yield* sealContent({ accountId, id: ID }, "the token", 1);
  yield* (yield* Subscriptions).save({ id: ID, accountId, userId, runtime: "agent", sealed, now: NOON });
  const sessionId = yield* admitSession(world);
  const { id: sandboxId } = yield* openSandbox(sessionId);
  const session = { id: sessionId, accountId, origin: "session", createdBy: userId } as const;
  return { world, session, to: { sandboxId, runtime: "agent" } };
});

const delivered = (sandboxId: string) =>
  Effect.map(
    Effect.flatMap(Subscriptions, (rows) => rows.deliveredTo(sandboxId)),
    (row) => row !== null,
  );

const run = <A, E>(
  test: Effect.Effect<A, E, Layer.Success<typeof memoryStore> | Keyring>,
  opening = keys(1),
) => {
  const ports = Layer.mergeAll(memoryStore, simulatedDaemon, simulatedProvider({ bootMs: 1 }));
  return Effect.runPromise(
    test.pipe(
      Effect.provide(ownSubscriptionsLayer.pipe(Layer.provide(opening), Layer.provideMerge(ports))),
      Effect.provide(keys(1)),
    ) as Effect.Effect<A, E>,
  );
};

it("goes to a sandbox of its person's session, and is noted there", () =>
  run(
    Effect.gen(function* () {
      const { session, to } = yield* starting;
      const { deliver, isInside } = yield* OwnSubscriptions;
      expect(yield* deliver(session, { ...to, runtime: "another" })).toBe(null);
      expect(yield* isInside(session.id)).toBe(false);
      expect(yield* deliver(session, to)).toBe("the token");
      expect(yield* isInside(session.id)).toBe(true);
    }),
  ));

it("goes to no trigger's session, no other person's, and to none that another person steers [K23]", () =>
  run(
    Effect.gen(function* () {
      const { world, session, to } = yield* starting;
      const { deliver } = yield* OwnSubscriptions;
      expect(yield* deliver({ ...session, origin: "trigger" }, to)).toBe(null);
      const ben = yield* addPerson(world);
      expect(yield* deliver({ ...session, createdBy: ben }, to)).toBe(null);
      yield* (yield* Suspensions).suspend(session.id, { userId: ben, act: "message", now: NOON });
      expect(yield* deliver(session, to)).toBe(null);
      expect(yield* delivered(to.sandboxId)).toBe(false);
    }),
  ));

it("stays noted for a boot that is performed again, because the first one may have started with it [K23]", () =>
  run(
    Effect.gen(function* () {
      const { world, session, to } = yield* starting;
      const { deliver, withdraw, isInside } = yield* OwnSubscriptions;
      yield* deliver(session, to);
      const ben = yield* addPerson(world);
      yield* (yield* Suspensions).suspend(session.id, { userId: ben, act: "message", now: NOON });
      expect(yield* deliver(session, to)).toBe(null);
      expect(yield* delivered(to.sandboxId)).toBe(true);
      // Its sandbox does not exist yet, so it cannot say that it is without it.
      expect(yield* Effect.flip(withdraw(session.id, "because"))).toMatchObject({
        _tag: "SubscriptionStays",
      });
      expect(yield* isInside(session.id)).toBe(true);
    }),
  ));

it("that cannot be opened with the master key goes nowhere, and is not noted", () =>
  run(
    Effect.gen(function* () {
      const { session, to } = yield* starting;
      expect(yield* (yield* OwnSubscriptions).deliver(session, to)).toBe(null);
      expect(yield* delivered(to.sandboxId)).toBe(false);
    }),
    keys(2),
  ));
