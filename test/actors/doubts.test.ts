/** An answer of the database's that was lost, in the service as it is wired: what it may have committed is looked at at once. */
import { randomUUID } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { Actors } from "../../src/services/actors.ts";
import { Admitter } from "../../src/services/triggers/admission.ts";
import { StoreError } from "../../src/store/ports/journal.ts";
import { Admissions } from "../../src/store/ports/triggers/admissions.ts";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { admitOne, admitSession, fired, wish } from "../support/world/sessions.ts";
import { makeWorldWithRepository, NOON } from "../support/world/world.ts";
import { inLife, twins } from "../support/world/service.ts";
import { advance } from "../support/world/clock.ts";

/** Less than the interval of recovery's looks, more than a doubt waits for others. */
const SOON_S = 2;

/** Longer than the interval of recovery's looks. */
const SETTLED_S = 8;

const losing = <A, E>(answer: Effect.Effect<A, E>, isLost: () => boolean) =>
  Effect.filterOrFail(
    answer,
    () => !isLost(),
    () => new StoreError({ operation: "answer", cause: "lost" }),
  );

/** A store that does what it is asked, and whose answers are lost from when on a test says so. */
const forgetful = Effect.gen(function* () {
  const memory = yield* Layer.build(Layer.fresh(twins));
  const lost = { admissions: false, drains: false, saves: false };
  const admissions = Context.get(memory, Admissions);
  const sessions = Context.get(memory, Sessions);
  const store = Context.add(memory, Sessions, {
    ...sessions,
    memory: {
      ...sessions.memory,
      save: (change) =>
        losing(sessions.memory.save(change), () => lost.saves && change.event.type === "restart.requested"),
    },
  }).pipe(
    Context.add(Admissions, {
      ...admissions,
      admit: (account, requests) => losing(admissions.admit(account, requests), () => lost.admissions),
      drain: (account, request) => losing(admissions.drain(account, request), () => lost.drains),
    }),
  );
  return { lost, memory: Layer.succeedContext(store) };
});

/** The account has one slot. */
const world = makeWorldWithRepository(1);

const statusesIn = Effect.fnUntraced(function* (projectId: string) {
  const { items } = yield* (yield* Sessions).list(projectId, { limit: 10, cursor: null, status: null });
  return items.map(({ status }) => status);
});

describe("the service, if the database's answer is lost", () => {
  it.effect("starts at once the session of an admission that was committed after all", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(NOON);
      const { lost, memory } = yield* forgetful;
      const test = Effect.gen(function* () {
        const made = yield* world;
        lost.admissions = true;
        const { admit } = yield* Admitter;
        const error = yield* Effect.flip(admit(made.accountId, wish(made)));
        assert.strictEqual(error._tag, "StoreError");
        yield* advance(SOON_S);
        assert.deepStrictEqual(yield* statusesIn(made.projectId), ["running"]);
      });
      yield* inLife(memory, test);
    }),
  );

  it.effect("starts at once the session of a drain that was committed after all", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(NOON);
      const { lost, memory } = yield* forgetful;
      const test = Effect.gen(function* () {
        const made = yield* world;
        yield* admitOne(made, wish(made));
        yield* admitOne(made, fired(made));
        yield* (yield* Identity).setTier(made.accountId, "free", 2);
        lost.drains = true;
        yield* Effect.forkChild((yield* Actors).account(made.accountId, { type: "cap.changed" }));
        yield* advance(SOON_S);
        assert.deepStrictEqual(yield* statusesIn(made.projectId), ["running", "running"]);
      });
      yield* inLife(memory, test);
    }),
  );

  it.effect("begins at once a restart that was saved after all", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(NOON);
      const { lost, memory } = yield* forgetful;
      const test = Effect.gen(function* () {
        const made = yield* world;
        const id = yield* admitSession(made);
        const { session, wake } = yield* Actors;
        yield* wake("session", id);
        yield* advance(SOON_S);
        yield* Effect.forkChild(session(id, { type: "stop.requested" }));
        yield* advance(SOON_S);
        assert.deepStrictEqual(yield* statusesIn(made.projectId), ["stopped"]);
        // Recovery has nothing left to do after the stop.
        yield* advance(SETTLED_S);
        lost.saves = true;
        const sandboxId = yield* Effect.sync(() => randomUUID());
        yield* Effect.forkChild(Effect.ignore(session(id, { type: "restart.requested", sandboxId })));
        yield* advance(SOON_S);
        assert.deepStrictEqual(yield* statusesIn(made.projectId), ["running"]);
      });
      yield* inLife(memory, test);
    }),
  );
});
