import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { Actors, ActorUnavailable } from "../../src/services/actors.ts";
import { actorLayer, actorsLayer, singleRunner } from "../../src/actors/cluster.ts";
import { startActor } from "../../src/actors/host.ts";
import { ActorNotFound, MailboxFull } from "../../src/ground/mailbox.ts";
import { Lease } from "../../src/actors/lease.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  account,
  type AccountCommand,
  type AccountEvent,
  type AccountSnapshot,
} from "../../src/machines/account.ts";
import { StoreError, type Memory } from "../../src/store/ports/journal.ts";
import { recordingMemory, type Between } from "../support/actors/recording-memory.ts";
import { answered, opened, until } from "../support/world/actors.ts";

type AccountBetween = Between<AccountSnapshot, AccountEvent, AccountCommand>;

const IDLE_MS = 10_000;
const SIGNAL = { type: "slot.freed" } as const;
const QUIET = { type: "drain.finished", more: false } as const;

interface ClusterOptions {
  readonly mailbox?: number;
  /** Whether the node certainly owns the actor. */
  readonly covers?: () => boolean;
}

/** Account actors over one memory that outlives them. `drain` is what their command does. */
const cluster = (
  drain: Effect.Effect<AccountEvent, StoreError>,
  memory: Memory<AccountSnapshot, AccountEvent, AccountCommand>,
  { mailbox = 64, covers = () => true }: ClusterOptions = {},
) =>
  actorLayer(
    "account",
    (id) =>
      startActor({
        id,
        machine: account,
        memory,
        handlers: { drainQueue: { perform: () => drain }, pause: { perform: () => Effect.never } },
        mailbox,
        restarts: { restarts: 0, withinMs: 1000 },
      }),
    { maxIdleMs: IDLE_MS, again: SIGNAL },
  ).pipe(
    Layer.provide(Layer.succeed(Lease, { covers })),
    Layer.provideMerge(actorsLayer),
    Layer.provideMerge(singleRunner),
  );

const freshMemory = (between: AccountBetween = {}) => {
  let loads = 0;
  const note = Effect.sync(() => (loads += 1));
  const behind = volatileMemory<AccountSnapshot, AccountEvent, AccountCommand>(account.start({}));
  const { memory } = recordingMemory(behind, { load: (load) => Effect.andThen(note, load), ...between });
  return { memory, loads: Effect.sync(() => loads) };
};

const actorsOf = (layer: ReturnType<typeof cluster>) =>
  Effect.map(opened(layer), ({ context }) => Context.get(context, Actors));

describe("actors as cluster entities", () => {
  it.effect("stay in memory as long as a command is running", () =>
    Effect.gen(function* () {
      const { memory, loads } = freshMemory();
      let lives = 0;
      const drain = yield* Deferred.make<AccountEvent>();
      const living = Effect.andThen(
        Effect.sync(() => (lives += 1)),
        Deferred.await(drain),
      );
      const actors = yield* actorsOf(cluster(living, memory));
      yield* answered(actors.account("a", SIGNAL));
      yield* TestClock.adjust(IDLE_MS * 10);
      yield* answered(actors.account("a", { type: "fire.queued" }));
      // K1: neither interrupted nor begun again.
      expect([yield* loads, lives]).toEqual([1, 1]);
      yield* Deferred.succeed(drain, QUIET);
      yield* until(Effect.map(memory.load("a"), (loaded) => loaded?.snapshot.state === "idle"));
    }),
  );

  it.effect("return to memory with their previous state", () =>
    Effect.gen(function* () {
      const { memory, loads } = freshMemory();
      const actors = yield* actorsOf(cluster(Effect.succeed(QUIET), memory));
      yield* answered(actors.account("a", SIGNAL));
      const before = yield* loads;
      yield* answered(actors.account("a", SIGNAL));
      expect(yield* loads).toBe(before);
      yield* TestClock.adjust(IDLE_MS * 10);
      const told = yield* answered(actors.account("a", SIGNAL));
      expect(yield* loads).toBe(before + 1);
      expect(told).toEqual({ accepted: true, snapshot: { state: "draining", context: { again: false } } });
    }),
  );

  it.effect("perform the commands in their outbox when they are woken", () =>
    Effect.gen(function* () {
      const { memory } = freshMemory();
      const { snapshot, commands } = account.step(account.start({}).snapshot, SIGNAL);
      const before = account.start({}).snapshot;
      yield* memory.save({
        id: "a",
        version: 0,
        event: SIGNAL,
        before,
        after: snapshot,
        commands,
        completes: null,
        now: 0,
      });
      let drains = 0;
      const actors = yield* actorsOf(
        cluster(
          Effect.as(
            Effect.sync(() => (drains += 1)),
            QUIET,
          ),
          memory,
        ),
      );
      yield* actors.wake("account", "a");
      yield* until(Effect.map(memory.load("a"), (loaded) => loaded?.pending.length === 0));
      expect(drains).toBe(1);
    }),
  );

  it.effect("perform, when they are woken, a command whose save was committed and not answered", () =>
    Effect.gen(function* () {
      let isLost = true;
      const lost = new StoreError({ operation: "save", cause: new Error("the connection broke") });
      const { memory } = freshMemory({
        save: (save) =>
          Effect.flatMap(save, (saved) => {
            if (!isLost) return Effect.succeed(saved);
            isLost = false;
            return Effect.fail(lost);
          }),
      });
      const actors = yield* actorsOf(cluster(Effect.succeed(QUIET), memory));
      expect(yield* answered(Effect.flip(actors.account("a", SIGNAL)))).toBeInstanceOf(StoreError);
      expect((yield* memory.load("a"))?.pending).toHaveLength(1);
      yield* actors.wake("account", "a");
      yield* until(Effect.map(memory.load("a"), (loaded) => loaded?.pending.length === 0));
    }),
  );

  it.effect("perform their outbox soon after a wake that the store refused", () =>
    Effect.gen(function* () {
      let refused = 0;
      const { memory } = freshMemory({
        load: (load) =>
          Effect.suspend(() => {
            if (refused === 3) return load;
            refused += 1;
            return Effect.fail(new StoreError({ operation: "load", cause: new Error("refused") }));
          }),
      });
      const before = account.start({}).snapshot;
      const { snapshot: after, commands } = account.step(before, SIGNAL);
      yield* memory.save({
        id: "a",
        version: 0,
        event: SIGNAL,
        before,
        after,
        commands,
        completes: null,
        now: 0,
      });
      const drained = yield* Deferred.make<void>();
      const actors = yield* actorsOf(cluster(Effect.as(Deferred.succeed(drained, undefined), QUIET), memory));
      yield* actors.wake("account", "a");
      yield* TestClock.adjust("2 seconds");
      yield* Deferred.await(drained);
      expect(refused).toBe(3);
    }),
  );

  it.effect("perform, when recovery loads them, the commands that another node saved in the meantime", () =>
    Effect.gen(function* () {
      const { memory } = freshMemory();
      let drains = 0;
      const drain = Effect.as(
        Effect.sync(() => (drains += 1)),
        QUIET,
      );
      const actors = yield* actorsOf(cluster(drain, memory));
      yield* actors.load("account", { id: "a", newest: "0" });
      const before = account.start({}).snapshot;
      const { snapshot: after, commands } = account.step(before, SIGNAL);
      const change = { id: "a", version: 0, event: SIGNAL, before, after, commands, completes: null, now: 0 };
      const { pending } = yield* memory.save(change);
      yield* actors.wake("account", "a");
      yield* TestClock.adjust(1);
      expect(drains).toBe(0);
      yield* actors.load("account", { id: "a", newest: pending.at(-1)?.id ?? "" });
      yield* until(Effect.map(memory.load("a"), (loaded) => loaded?.pending.length === 0));
      expect(drains).toBe(1);
    }),
  );

  const refusals = [
    ["a missing actor", { load: () => Effect.succeed(null) }, ActorNotFound],
    [
      "a store that cannot be reached",
      { load: () => Effect.fail(new StoreError({ operation: "load", cause: new Error("refused") })) },
      StoreError,
    ],
  ] as const satisfies readonly (readonly [string, AccountBetween, unknown])[];

  it.effect.each(refusals)("answer for %s with the host's own error", ([, between, error]) =>
    Effect.gen(function* () {
      const { memory } = freshMemory(between);
      const actors = yield* actorsOf(cluster(Effect.never, memory));
      expect(yield* answered(Effect.flip(actors.account("a", SIGNAL)))).toBeInstanceOf(error);
    }),
  );

  it.effect("start again with the next message after a failed start", () =>
    Effect.gen(function* () {
      let isReachable = false;
      const refused = new StoreError({ operation: "load", cause: new Error("refused") });
      const { memory } = freshMemory({
        load: (load) => Effect.suspend(() => (isReachable ? load : Effect.fail(refused))),
      });
      const actors = yield* actorsOf(cluster(Effect.never, memory));
      yield* answered(Effect.flip(actors.account("a", SIGNAL)));
      isReachable = true;
      expect((yield* answered(actors.account("a", SIGNAL))).accepted).toBe(true);
    }),
  );

  it.effect("answer a message whose step crashes, and process the next one", () =>
    Effect.gen(function* () {
      let isBroken = true;
      const { memory } = freshMemory({
        save: (save) => Effect.suspend(() => (isBroken ? Effect.die(new Error("a defect")) : save)),
      });
      const actors = yield* actorsOf(cluster(Effect.never, memory));
      const crashed = new ActorUnavailable({ actorId: "a", reason: "it crashed" });
      expect(yield* answered(Effect.flip(actors.account("a", SIGNAL)))).toEqual(crashed);
      isBroken = false;
      expect((yield* answered(actors.account("a", SIGNAL))).accepted).toBe(true);
    }),
  );

  it.effect("refuse a message while another node may own them, also one that waited for a save", () =>
    Effect.gen(function* () {
      let isOurs = true;
      const [saving, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const { memory } = freshMemory({
        save: (save) =>
          Effect.andThen(Deferred.succeed(saving, undefined), Effect.andThen(Deferred.await(release), save)),
      });
      const actors = yield* actorsOf(cluster(Effect.never, memory, { covers: () => isOurs }));
      const first = yield* Effect.forkChild(actors.account("a", SIGNAL));
      yield* Deferred.await(saving);
      const second = yield* Effect.forkChild(Effect.flip(actors.account("a", SIGNAL)), {
        startImmediately: true,
      });
      isOurs = false;
      yield* Deferred.succeed(release, undefined);
      expect(yield* answered(Fiber.join(second))).toBeInstanceOf(ActorUnavailable);
      expect((yield* answered(Fiber.join(first))).accepted).toBe(true);
      const stored = yield* memory.load("a");
      expect(stored?.snapshot).toEqual({ state: "draining", context: { again: false } });
      isOurs = true;
      expect((yield* answered(actors.account("a", SIGNAL))).accepted).toBe(true);
    }),
  );

  it.effect("report a full mailbox", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>();
      const { memory } = freshMemory({ save: (save) => Effect.andThen(Deferred.await(release), save) });
      const actors = yield* actorsOf(cluster(Effect.never, memory, { mailbox: 1 }));
      const waiting = yield* Effect.forkChild(actors.account("a", SIGNAL));
      const full = yield* answered(Effect.flip(Effect.retry(actors.account("a", SIGNAL), { times: 0 })));
      expect(full).toEqual(new MailboxFull({ actorId: "a", capacity: 1 }));
      yield* Deferred.succeed(release, undefined);
      yield* until(Effect.sync(() => waiting.pollUnsafe() !== undefined));
    }),
  );

  it.effect("process messages during a running command, however often they were woken", () =>
    Effect.gen(function* () {
      const { memory } = freshMemory();
      const actors = yield* actorsOf(cluster(Effect.never, memory));
      yield* answered(actors.account("a", SIGNAL));
      // More than the cluster keeps of unanswered messages for one entity.
      for (let woken = 0; woken < 5000; woken += 1) yield* actors.wake("account", "a");
      const told = yield* answered(actors.account("a", { type: "fire.queued" }));
      expect(told.snapshot).toEqual({ state: "draining", context: { again: true } });
    }),
  );

  // The clock is real here: what is shown is that the end comes at all.
  it.live("end even if a running command never ends", () =>
    Effect.gen(function* () {
      const { memory } = freshMemory();
      const begun = yield* Deferred.make<void>();
      const drain = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never);
      const scope = yield* Scope.make();
      const context = yield* Layer.buildWithScope(Layer.fresh(cluster(drain, memory)), scope);
      yield* Context.get(context, Actors).account("a", SIGNAL);
      yield* Deferred.await(begun);
      yield* Scope.close(scope, Exit.void);
      expect((yield* memory.load("a"))?.pending).toEqual([{ id: "1", command: { type: "drainQueue" } }]);
    }),
  );
});
