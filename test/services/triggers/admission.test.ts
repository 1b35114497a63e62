import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import { describe, expect } from "vitest";
import { Actors } from "../../../src/services/actors.ts";
import { AdmissionBusy, Admitter, admitterLayer } from "../../../src/services/triggers/admission.ts";
import { Doubt } from "../../../src/services/doubt.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import {
  Admissions,
  type Admission,
  type AdmissionRequest,
} from "../../../src/store/ports/triggers/admissions.ts";
import { wish } from "../../support/world/sessions.ts";
import { type World } from "../../support/world/world.ts";

const world: World = { accountId: "account-1", userId: "user-1", projectId: "project-1", tokenHash: "" };
const wishOf = (initialPrompt = "Say hello.") => wish(world, { initialPrompt });

/** An admitter whose first decision waits for `release`; notes the size of each batch and who was woken. */
const scene = Effect.gen(function* () {
  const [deciding, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
  const batches: number[] = [];
  const woken: string[] = [];
  let failure: StoreError | null = null;
  const admit = (_: string, requests: readonly AdmissionRequest[]) =>
    Effect.gen(function* () {
      batches.push(requests.length);
      yield* Deferred.succeed(deciding, undefined);
      yield* Deferred.await(release);
      if (failure !== null) return yield* failure;
      return requests.map(({ session }): Admission => ({
        outcome: "admitted",
        sessionId: session.id,
        fireId: null,
      }));
    });
  const ports = Layer.mergeAll(
    Layer.mock(Admissions, { admit }),
    Layer.mock(Actors, { wake: (_, id) => Effect.sync(() => void woken.push(id)) }),
  );
  let doubts = 0;
  const doubt = Layer.succeed(Doubt, () => void (doubts += 1));
  const context = yield* Layer.build(Layer.provide(Layer.fresh(admitterLayer), Layer.mergeAll(ports, doubt)));
  const admitter = Context.get(context, Admitter);
  const ask = (request = wishOf()) =>
    Effect.forkChild(Effect.result(admitter.admit(world.accountId, request)), { startImmediately: true });
  const first = yield* ask();
  yield* Deferred.await(deciding);
  return {
    first,
    ask,
    admitter,
    release: Deferred.succeed(release, undefined),
    fail: (error: StoreError) => (failure = error),
    batches,
    woken,
    doubts: () => doubts,
  };
});

describe("admission", () => {
  it.effect(
    "decides together the requests that came during a decision, at most 256 at once, and answers each one",
    () =>
      Effect.gen(function* () {
        const { first, ask, release, batches, woken } = yield* scene;
        const wishes = Array.from({ length: 300 }, () => wishOf());
        const waiting = yield* Effect.forEach(wishes, (request) => ask(request));
        yield* release;
        yield* Fiber.join(first);
        const answers = yield* Effect.forEach(waiting, Fiber.join);
        expect(batches).toEqual([1, 256, 44]);
        const ids = wishes.map(({ session }) => session.id);
        expect(answers).toMatchObject(
          ids.map((sessionId) => ({ success: { outcome: "admitted", sessionId } })),
        );
        expect(woken.slice(1)).toEqual(ids);
      }),
  );

  it.effect("decides at most 4 MiB of prompts at once", () =>
    Effect.gen(function* () {
      const { ask, release, batches } = yield* scene;
      const large = wishOf("x".repeat(1024 * 1024));
      const waiting = yield* Effect.forEach(
        Array.from({ length: 9 }, () => large),
        (request) => ask(request),
      );
      yield* release;
      yield* Effect.forEach(waiting, Fiber.join);
      expect(batches).toEqual([1, 4, 4, 1]);
    }),
  );

  it.effect("tells callers to retry when too many wait, and accepts requests again afterwards", () =>
    Effect.gen(function* () {
      const { ask, admitter, release } = yield* scene;
      const waiting = yield* Effect.forEach(Array.from({ length: 4096 }), () => ask());
      const busy = yield* Effect.flip(admitter.admit(world.accountId, wishOf()));
      expect(busy).toEqual(new AdmissionBusy({ waiting: 4096 }));
      yield* release;
      yield* Effect.forEach(waiting, Fiber.join);
      expect(yield* admitter.admit(world.accountId, wishOf())).toMatchObject({ outcome: "admitted" });
    }),
  );

  it.effect(
    "answers every caller whose decision the store could not make, signals a doubt, and continues",
    () =>
      Effect.gen(function* () {
        const { first, ask, release, fail, batches, doubts } = yield* scene;
        const waiting = yield* Effect.forEach(Array.from({ length: 3 }), () => ask());
        fail(new StoreError({ operation: "admit", cause: new Error("connection reset") }));
        yield* release;
        const answers = yield* Effect.forEach([first, ...waiting], Fiber.join);
        expect(answers).toMatchObject(answers.map(() => ({ failure: { _tag: "StoreError" } })));
        expect(batches).toEqual([1, 3]);
        expect(doubts()).toBe(2);
      }),
  );

  it.effect("decides a request whose caller has gone, and wakes its session", () =>
    Effect.gen(function* () {
      const { ask, release, woken } = yield* scene;
      const gone = wishOf();
      yield* Effect.flatMap(ask(gone), Fiber.interrupt);
      const last = yield* ask();
      yield* release;
      yield* Fiber.join(last);
      expect(woken).toContain(gone.session.id);
    }),
  );

  it.effect("continues for the others, and for the account, if one request's answer throws", () =>
    Effect.gen(function* () {
      const { ask, admitter, release } = yield* scene;
      admitter.offer(world.accountId, wishOf(), () => {
        throw new Error("the connection has its answer already");
      });
      const beside = yield* ask();
      yield* release;
      expect(yield* Fiber.join(beside)).toMatchObject({ success: { outcome: "admitted" } });
      expect(yield* admitter.admit(world.accountId, wishOf())).toMatchObject({ outcome: "admitted" });
    }),
  );
});
