import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { startActor, type Handlers } from "../../src/actors/host.ts";
import { sandbox, type SandboxCommand, type SandboxEvent } from "../../src/machines/sandbox.ts";
import {
  session,
  type SessionCommand,
  type SessionEvent,
  type SessionSnapshot,
} from "../../src/machines/session.ts";
import { NOTHING_TO_SAVE } from "../../src/domain/save/saved.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Fenced, StoreError, type Memory } from "../../src/store/ports/journal.ts";
import { Sandboxes } from "../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { type Store } from "../conformance/store/fixture.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../support/world/sessions.ts";
import { makeWorld } from "../support/world/world.ts";
import { recordingMemory } from "../support/actors/recording-memory.ts";

const failure = { code: "branch_failed", message: "no" } as const;
const branchCreated = (sandboxId: string): SessionEvent => ({
  type: "branch.created",
  commit: "c0ffee",
  sandboxId,
});
const STOP = { type: "stop.requested" } as const;

/** Registers a test over a store of its own, under the test clock. */
const check = <E>(name: string, test: Effect.Effect<void, E, Store>): void => {
  it.effect(name, () => Effect.provide(test, memoryStore, { local: true }));
};

const idle: Handlers<SessionEvent, SessionCommand> = {
  createBranch: { perform: () => Effect.never },
  provisionSandbox: { perform: () => Effect.never },
  tearDownSandbox: { perform: () => Effect.succeed(undefined) },
  signalFreeSlot: { perform: () => Effect.succeed(undefined) },
  restartAfterStop: { perform: () => Effect.never },
  recallEnd: { perform: () => Effect.never },
  removeSaves: { perform: () => Effect.never },
};

const startSession = (
  id: string,
  memory: Memory<SessionSnapshot, SessionEvent, SessionCommand>,
  handlers: Partial<Handlers<SessionEvent, SessionCommand>> = {},
) =>
  startActor({
    id,
    machine: session,
    memory,
    handlers: { ...idle, ...handlers },
    mailbox: 64,
    restarts: { restarts: 0, withinMs: 1000 },
  });

/** A session whose branch is cut and whose sandbox boots. */
const booting = Effect.gen(function* () {
  const id = yield* admitSession(yield* makeWorld(10));
  const { memory } = yield* Sessions;
  yield* tellSession(id, branchCreated("first"));
  return { id, memory };
});

const pendingTypes = (id: string) =>
  Effect.gen(function* () {
    const { memory } = yield* Sessions;
    const loaded = yield* memory.load(id);
    return loaded?.pending.map(({ command }) => command.type);
  });

describe("the actor host beside another writer of its row", () => {
  check(
    "asks again whether it may take an event after another writer was first",
    Effect.gen(function* () {
      const { id, memory } = yield* booting;
      const sessions = yield* Effect.context<Sessions>();
      const stopped = Effect.orDie(Effect.provideContext(tellSession(id, STOP), sessions));
      const between = recordingMemory(memory, { save: (save) => Effect.andThen(stopped, save) });
      const actor = yield* startSession(id, between.memory);
      let asked = 0;
      const guard = Effect.suspend(() => ((asked += 1) === 1 ? Effect.void : Effect.fail("moved" as const)));
      expect(yield* Effect.flip(actor.tell({ type: "sandbox.live", sandboxId: "first" }, guard))).toBe(
        "moved",
      );
      expect((yield* memory.load(id))?.snapshot.state).toBe("stopped");
    }).pipe(Effect.scoped),
  );

  check(
    "never runs a session that another writer stopped, even if its sandbox is live",
    Effect.gen(function* () {
      const { id, memory } = yield* booting;
      const actor = yield* startSession(id, memory);
      yield* tellSession(id, STOP);
      const told = yield* actor.tell({ type: "sandbox.live", sandboxId: "first" });
      expect(told).toMatchObject({ accepted: false, snapshot: { state: "stopped" } });
    }).pipe(Effect.scoped),
  );

  check(
    "stops a session that another writer has seen running",
    Effect.gen(function* () {
      const { id, memory } = yield* booting;
      const torn: string[] = [];
      const note = (sandboxId: string) =>
        Effect.as(
          Effect.sync(() => torn.push(sandboxId)),
          undefined,
        );
      const actor = yield* startSession(id, memory, {
        tearDownSandbox: { perform: ({ sandboxId }) => note(sandboxId) },
      });
      yield* tellSession(id, { type: "sandbox.live", sandboxId: "first" });
      expect(yield* actor.tell(STOP)).toMatchObject({ accepted: true, snapshot: { state: "running" } });
      expect(torn).toEqual(["first"]);
    }).pipe(Effect.scoped),
  );

  check(
    "performs the commands that the other writer left",
    Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(10));
      const asked = yield* Deferred.make<string>();
      const actor = yield* startSession(id, (yield* Sessions).memory, {
        provisionSandbox: {
          perform: ({ sandboxId }) => Effect.as(Deferred.succeed(asked, sandboxId), undefined),
        },
      });
      yield* tellSession(id, branchCreated("first"));
      yield* actor.tell({ type: "idle.elapsed" });
      yield* actor.tell({ type: "sandbox.lost", sandboxId: "first", failure });
      expect(yield* Deferred.await(asked)).toBe("first");
    }).pipe(Effect.scoped),
  );

  check(
    "reports the store as unavailable when others write faster than it reads",
    Effect.gen(function* () {
      const { id, memory } = yield* booting;
      let tries = 0;
      const fenced = recordingMemory(memory, {
        save: () =>
          Effect.andThen(
            Effect.sync(() => (tries += 1)),
            Effect.fail(new Fenced({ id })),
          ),
      });
      const actor = yield* startSession(id, fenced.memory);
      expect(yield* Effect.flip(actor.tell(STOP))).toBeInstanceOf(StoreError);
      expect(tries).toBe(6);
    }).pipe(Effect.scoped),
  );
});

const unreachable = new StoreError({ operation: "save", cause: new Error("connection reset") });

describe("the actor host when a save's answer is lost", () => {
  check(
    "reads again before the next step, and performs committed commands once",
    Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(10));
      const provisioned: string[] = [];
      let isLost = true;
      const { memory } = recordingMemory((yield* Sessions).memory, {
        save: (save) => Effect.tap(save, () => (isLost ? Effect.fail(unreachable) : Effect.void)),
      });
      const actor = yield* startSession(id, memory, {
        provisionSandbox: {
          perform: ({ sandboxId }) =>
            Effect.as(
              Effect.sync(() => provisioned.push(sandboxId)),
              undefined,
            ),
        },
      });
      expect(yield* Effect.flip(actor.tell(branchCreated("first")))).toBe(unreachable);
      expect(provisioned).toEqual([]);
      isLost = false;
      const told = yield* actor.tell({ type: "sandbox.live", sandboxId: "first" });
      expect(told).toMatchObject({ accepted: true, snapshot: { state: "running" } });
      expect(provisioned).toEqual(["first"]);
    }).pipe(Effect.scoped),
  );

  check(
    "saves a command's outcome again and again until the store accepts it",
    Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(10));
      let outages = 5;
      const { memory, saves } = recordingMemory((yield* Sessions).memory, {
        save: (save) =>
          Effect.suspend(() => {
            outages -= 1;
            return outages >= 0 ? Effect.fail(unreachable) : save;
          }),
      });
      const actor = yield* startSession(id, memory, {
        createBranch: { perform: () => Effect.succeed(branchCreated("first")) },
        provisionSandbox: { perform: () => Effect.succeed(undefined) },
      });
      yield* TestClock.adjust("1 minute");
      yield* actor.settled;
      expect(saves.map(({ event }) => event.type)).toEqual(["branch.created"]);
      expect(yield* pendingTypes(id)).toEqual([]);
    }).pipe(Effect.scoped),
  );

  check(
    "counts an outcome once, even if the machine would accept it again by now",
    Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(10));
      const failedOnce = yield* Deferred.make<void>();
      let attempts = 0;
      const { memory } = recordingMemory((yield* Sessions).memory, {
        save: (save, { event }) =>
          event.type === "branch.failed"
            ? Effect.andThen(
                save,
                Effect.andThen(Deferred.succeed(failedOnce, undefined), Effect.fail(unreachable)),
              )
            : save,
      });
      const actor = yield* startSession(id, memory, {
        createBranch: {
          perform: () =>
            Effect.suspend(() => {
              attempts += 1;
              return attempts === 1
                ? Effect.succeed({ type: "branch.failed" as const, failure })
                : Effect.never;
            }),
        },
      });
      yield* Deferred.await(failedOnce);
      yield* actor.tell({ type: "restart.requested", sandboxId: "second" });
      // The first life's outcome is tried again now, in a state that takes the same event.
      yield* TestClock.adjust("1 minute");
      expect((yield* actor.snapshot).state).toBe("provisioning");
      expect(yield* pendingTypes(id)).toEqual(["createBranch"]);
    }).pipe(Effect.scoped),
  );
});

/** Handlers of a sandbox whose boot never ends; notes what was begun and what was interrupted. */
const sandboxHandlers = (seen: string[]): Handlers<SandboxEvent, SandboxCommand> => {
  const note = (what: string) => Effect.sync(() => void seen.push(what));
  const done = { perform: () => Effect.succeed(undefined) };
  const lasting = (what: string) => ({
    perform: () =>
      Effect.andThen(
        note(`${what} begun`),
        Effect.onInterrupt(Effect.never, () => note(`${what} interrupted`)),
      ),
  });
  return {
    bootSandbox: lasting("boot"),
    watchSandbox: lasting("watch"),
    saveWork: {
      perform: () => Effect.succeed({ type: "work.saved", saved: NOTHING_TO_SAVE }),
    },
    putOffSave: done,
    reportKept: done,
    reportEnded: done,
    destroySandbox: {
      supersedes: ["bootSandbox", "watchSandbox"],
      perform: () => Effect.as(note("destroyed"), undefined),
    },
    reportLive: done,
    reportFailed: done,
    reportLost: done,
  };
};

const startSandbox = Effect.fnUntraced(function* (
  id: string,
  handlers: Handlers<SandboxEvent, SandboxCommand>,
) {
  const { memory } = yield* Sandboxes;
  const restarts = { restarts: 0, withinMs: 1000 };
  return yield* startActor({ id, machine: sandbox, memory, handlers, mailbox: 64, restarts });
});

describe("the actor host, if one command makes another one unnecessary", () => {
  check(
    "interrupts it, and marks it done",
    Effect.gen(function* () {
      const { id } = yield* openSandbox(yield* admitSession(yield* makeWorld(10)));
      const seen: string[] = [];
      const actor = yield* startSandbox(id, sandboxHandlers(seen));
      yield* actor.tell(STOP);
      yield* actor.settled;
      expect(seen).toEqual(["boot begun", "boot interrupted", "destroyed"]);
      expect((yield* (yield* Sandboxes).memory.load(id))?.pending).toEqual([]);
    }).pipe(Effect.scoped),
  );

  check(
    "does not begin it if a former life left both",
    Effect.gen(function* () {
      const { id } = yield* openSandbox(yield* admitSession(yield* makeWorld(10)));
      yield* tellSandbox(id, STOP);
      const seen: string[] = [];
      const actor = yield* startSandbox(id, sandboxHandlers(seen));
      yield* actor.settled;
      expect(seen).toEqual(["destroyed"]);
      expect((yield* (yield* Sandboxes).memory.load(id))?.pending).toEqual([]);
    }).pipe(Effect.scoped),
  );

  check(
    "leaves later commands alone",
    Effect.gen(function* () {
      const { id, memory } = yield* booting;
      yield* tellSession(id, STOP);
      yield* tellSession(id, { type: "restart.requested", sandboxId: "second" });
      const provisioned: string[] = [];
      const actor = yield* startSession(id, memory, {
        createBranch: { perform: () => Effect.succeed(undefined) },
        tearDownSandbox: { ...idle.tearDownSandbox, supersedes: ["provisionSandbox"] },
        provisionSandbox: {
          perform: ({ sandboxId }) =>
            Effect.as(
              Effect.sync(() => provisioned.push(sandboxId)),
              undefined,
            ),
        },
      });
      yield* actor.settled;
      expect(provisioned).toEqual(["second"]);
      expect(yield* pendingTypes(id)).toEqual([]);
    }).pipe(Effect.scoped),
  );
});
