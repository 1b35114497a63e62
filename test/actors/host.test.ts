import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as Exit from "effect/Exit";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { startActor, type Handlers } from "../../src/actors/host.ts";
import { MailboxFull } from "../../src/ground/mailbox.ts";
import { Inspector, type InspectedStep } from "../../src/actors/inspector.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import { CapReached, StoreError, type Memory } from "../../src/store/ports/journal.ts";
import { recordingMemory } from "../support/actors/recording-memory.ts";
import {
  tally,
  type TallyCommand,
  type TallyEvent,
  type TallySnapshot,
} from "../support/actors/tally-machine.ts";

type TallyMemory = Memory<TallySnapshot, TallyEvent, TallyCommand>;
type TallyHandlers = Handlers<TallyEvent, TallyCommand>;

/** A memory that outlives the actors over it. */
const freshMemory = (): TallyMemory => volatileMemory(tally.start({}));

const finished = (worth: number): TallyEvent => ({ type: "work.finished", worth });
const requested = (worth: number): TallyEvent => ({ type: "work.requested", worth });
const CLOSE: TallyEvent = { type: "close.requested" };

const diligent: TallyHandlers = {
  work: { perform: ({ worth }) => Effect.succeed(finished(worth)) },
  tidy: { perform: () => Effect.succeed(undefined) },
};

const start = (memory: TallyMemory, handlers: Partial<TallyHandlers> = {}, mailbox = 64) =>
  startActor({
    id: "tally-1",
    machine: tally,
    memory,
    handlers: { ...diligent, ...handlers },
    mailbox,
    restarts: { restarts: 2, withinMs: 30_000 },
  });

const totalOf = (memory: TallyMemory) =>
  Effect.map(memory.load("tally-1"), (loaded) => ({
    total: loaded?.snapshot.context.total,
    pending: loaded?.pending.length,
  }));

const lost = new StoreError({ operation: "save", cause: new Error("connection reset") });

describe("the actor host, H1", () => {
  it.effect("processes events one at a time, in order of arrival", () =>
    Effect.gen(function* () {
      let saving = 0;
      const { memory, saves } = recordingMemory(freshMemory(), {
        save: (save) =>
          Effect.gen(function* () {
            saving += 1;
            expect(saving).toBe(1);
            yield* Effect.yieldNow;
            const saved = yield* save;
            saving -= 1;
            return saved;
          }),
      });
      const actor = yield* start(memory, { work: { perform: () => Effect.never } });
      const worths = Array.from({ length: 20 }, (_, index) => index);
      const told = yield* Effect.forEach(worths, (worth) => actor.tell(finished(worth)), {
        concurrency: "unbounded",
      });
      expect(saves.map(({ event }) => event)).toEqual(worths.map(finished));
      expect(saves.map(({ version }) => version)).toEqual(worths);
      expect(told.map(({ snapshot }) => snapshot.context.total)).toEqual(
        saves.map(({ after }) => after.context.total),
      );
    }),
  );

  it.effect("leaves no step half done when a caller goes away", () =>
    Effect.gen(function* () {
      const [saving, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const { memory, saves } = recordingMemory(freshMemory(), {
        save: (save) =>
          Effect.andThen(Deferred.succeed(saving, undefined), Effect.andThen(Deferred.await(release), save)),
      });
      const actor = yield* start(memory);
      const first = yield* Effect.forkChild(actor.tell(finished(1)));
      yield* Deferred.await(saving);
      const second = yield* Effect.forkChild(actor.tell(finished(10)), { startImmediately: true });
      // The second waits for its turn and takes its wish along; the first is in the middle of its save.
      yield* Fiber.interrupt(second);
      const leaving = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true });
      yield* Deferred.succeed(release, undefined);
      yield* Fiber.join(leaving);
      expect(saves.map(({ event }) => event)).toEqual([finished(1)]);
      expect((yield* actor.snapshot).context.total).toBe(1);
      expect((yield* actor.tell(finished(100))).snapshot.context.total).toBe(101);
    }),
  );
});

describe("the actor host, H2", () => {
  it.effect("performs no command before it is saved", () =>
    Effect.gen(function* () {
      const performed: number[] = [];
      const { memory } = recordingMemory(freshMemory(), {
        save: (save, { commands }) =>
          Effect.gen(function* () {
            if (commands.length > 0) expect(performed).toEqual([]);
            yield* Effect.yieldNow;
            return yield* save;
          }),
      });
      const note = (worth: number) =>
        Effect.as(
          Effect.sync(() => performed.push(worth)),
          finished(worth),
        );
      const actor = yield* start(memory, { work: { perform: ({ worth }) => note(worth) } });
      yield* actor.tell(requested(7));
      yield* actor.settled;
      expect(performed).toEqual([7]);
    }),
  );

  it.effect("performs no command of an event whose save failed", () =>
    Effect.gen(function* () {
      const { memory } = recordingMemory(freshMemory(), { save: () => Effect.fail(lost) });
      const actor = yield* start(memory, { work: { perform: () => Effect.die("performed") } });
      expect(yield* Effect.flip(actor.tell(requested(1)))).toBe(lost);
      expect(yield* actor.busy).toBe(false);
    }),
  );

  /** Where the process is killed: nothing that it does from then on reaches the world. */
  const KILLED = [
    "before the event is saved",
    "after the event is saved",
    "while the command is performed",
    "after the command is performed",
    "before the outcome is saved",
    "after the outcome is saved",
  ] as const;

  it.effect.each(KILLED)("counts work once when the process is killed %s", (point) =>
    Effect.gen(function* () {
      const durable = freshMemory();
      const killed = yield* Deferred.make<void>();
      let isDead = false;
      const at = (here: (typeof KILLED)[number]) =>
        Effect.suspend(() => {
          if (here === point) isDead = true;
          return isDead ? Effect.andThen(Deferred.succeed(killed, undefined), Effect.never) : Effect.void;
        });
      const around = <A, E>(run: Effect.Effect<A, E>, what: "event" | "outcome") =>
        Effect.tap(Effect.andThen(at(`before the ${what} is saved`), run), () =>
          at(`after the ${what} is saved`),
        );
      const doomed = recordingMemory(durable, {
        save: (save, { completes }) => around(save, completes === null ? "event" : "outcome"),
      });
      const handlers: Partial<TallyHandlers> = {
        work: {
          perform: ({ worth }) =>
            Effect.as(
              Effect.andThen(at("while the command is performed"), at("after the command is performed")),
              finished(worth),
            ),
        },
      };
      // A killed process closes no scope.
      const first = yield* Scope.provide(start(doomed.memory, handlers), yield* Scope.make());
      yield* Effect.forkDetach(first.tell(requested(5)));
      yield* Deferred.await(killed);

      const second = yield* start(durable);
      // An asker that got no answer asks again, where the event did not arrive.
      if (point === "before the event is saved") yield* second.tell(requested(5));
      yield* second.settled;
      expect(yield* totalOf(durable)).toEqual({ total: 5, pending: 0 });
    }),
  );

  it.effect("leaves a running command in the outbox for the next life when its scope closes", () =>
    Effect.gen(function* () {
      const durable = freshMemory();
      const scope = yield* Scope.make();
      const first = yield* Scope.provide(start(durable, { work: { perform: () => Effect.never } }), scope);
      yield* first.tell(requested(3));
      expect(yield* first.busy).toBe(true);
      yield* Scope.close(scope, Exit.void);
      expect(yield* totalOf(durable)).toEqual({ total: 0, pending: 1 });
      yield* (yield* start(durable)).settled;
      expect(yield* totalOf(durable)).toEqual({ total: 3, pending: 0 });
    }),
  );
});

describe("the actor host, H3", () => {
  it.effect("answers and inspects an event that the machine does not accept", () =>
    Effect.gen(function* () {
      const steps: InspectedStep[] = [];
      const { memory, saves } = recordingMemory(freshMemory());
      const actor = yield* Effect.provideService(start(memory), Inspector, (step) =>
        Effect.sync(() => void steps.push(step)),
      );
      yield* actor.tell(CLOSE);
      const closed = { state: "closed", context: { total: 0 } };
      expect(yield* actor.tell(finished(1))).toEqual({ accepted: false, snapshot: closed });
      expect(saves.map(({ event }) => event)).toEqual([CLOSE]);
      expect(steps.map(({ event, accepted, snapshot }) => [event, accepted, snapshot.state])).toEqual([
        [null, true, "open"],
        [CLOSE, true, "closed"],
        [finished(1), false, "closed"],
      ]);
      expect(steps[1]).toMatchObject({ machine: "tally", actorId: "tally-1", commands: [{ type: "tidy" }] });
    }),
  );

  it.effect("tells the machine that the memory has no slot for a step, and saves nothing", () =>
    Effect.gen(function* () {
      const steps: InspectedStep[] = [];
      const full = new CapReached({ limit: 1, activeSessions: 1 });
      const { memory, saves } = recordingMemory(freshMemory(), { save: () => Effect.fail(full) });
      const slotRefused = finished(0);
      const actor = yield* Effect.provideService(
        startActor({
          id: "tally-1",
          machine: tally,
          memory,
          handlers: diligent,
          slotRefused,
          mailbox: 64,
          restarts: { restarts: 2, withinMs: 30_000 },
        }),
        Inspector,
        (step) => Effect.sync(() => void steps.push(step)),
      );
      expect(yield* Effect.flip(actor.tell(requested(1)))).toBe(full);
      expect(saves).toEqual([]);
      expect(steps.map(({ event, accepted, commands }) => [event, accepted, commands])).toEqual([
        [null, true, []],
        [slotRefused, true, []],
      ]);
      expect(yield* actor.snapshot).toEqual({ state: "open", context: { total: 0 } });
    }),
  );

  it.effect("marks a command done even if its outcome comes too late", () =>
    Effect.gen(function* () {
      const memory = freshMemory();
      const release = yield* Deferred.make<void>();
      const work = { perform: () => Effect.as(Deferred.await(release), finished(1)) };
      const actor = yield* start(memory, { work });
      yield* actor.tell(requested(1));
      yield* actor.tell(CLOSE);
      yield* Deferred.succeed(release, undefined);
      yield* actor.settled;
      expect(yield* actor.snapshot).toEqual({ state: "closed", context: { total: 0 } });
      expect(yield* totalOf(memory)).toEqual({ total: 0, pending: 0 });
    }),
  );

  it.effect("tells a caller to retry when the mailbox is full, and still accepts outcomes", () =>
    Effect.gen(function* () {
      const [release, saving] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const { memory } = recordingMemory(freshMemory(), {
        save: (save) =>
          Effect.andThen(Deferred.succeed(saving, undefined), Effect.andThen(Deferred.await(release), save)),
      });
      const actor = yield* start(memory, {}, 2);
      const told = yield* Effect.forEach([1, 2], (worth) =>
        Effect.forkChild(actor.tell(requested(worth)), { startImmediately: true }),
      );
      yield* Deferred.await(saving);
      const full = new MailboxFull({ actorId: "tally-1", capacity: 2 });
      expect(yield* Effect.flip(actor.tell(requested(100)))).toEqual(full);
      yield* Deferred.succeed(release, undefined);
      yield* Effect.forEach(told, Fiber.join);
      yield* actor.settled;
      expect(yield* totalOf(memory)).toEqual({ total: 3, pending: 0 });
      expect((yield* actor.tell(finished(1))).accepted).toBe(true);
    }),
  );

  it.effect("gives up a command that crashes beyond its budget, and tells the machine", () =>
    Effect.gen(function* () {
      const memory = freshMemory();
      let attempts = 0;
      const actor = yield* start(memory, {
        work: {
          perform: () =>
            Effect.sync(() => (attempts += 1)).pipe(Effect.andThen(Effect.die(new Error("boom")))),
          gaveUp: (_, reason) => ({ type: "work.failed", reason }),
        },
      });
      yield* actor.tell(requested(1));
      yield* TestClock.adjust("30 seconds");
      yield* actor.settled;
      expect(attempts).toBe(3);
      expect((yield* actor.snapshot).state).toBe("closed");
      expect(yield* totalOf(memory)).toEqual({ total: 0, pending: 0 });
    }),
  );

  it.effect("gives up a command whose outcome the memory always refuses, and tells the machine", () =>
    Effect.gen(function* () {
      const behind = freshMemory();
      const { memory } = recordingMemory(behind, {
        save: (save, { event }) =>
          event.type === "work.finished" ? Effect.die(new Error("no row can hold it")) : save,
      });
      const reasons: string[] = [];
      const actor = yield* start(memory, {
        work: {
          perform: ({ worth }) => Effect.succeed(finished(worth)),
          gaveUp: (_, reason) => {
            reasons.push(reason);
            return { type: "work.failed", reason };
          },
        },
      });
      yield* actor.tell(requested(1));
      yield* TestClock.adjust("30 seconds");
      yield* actor.settled;
      expect((yield* actor.snapshot).state).toBe("closed");
      expect(reasons).toEqual(["no row can hold it"]);
      expect(yield* totalOf(behind)).toEqual({ total: 0, pending: 0 });
    }),
  );

  it.effect("forgets crashes that are farther apart than its budget's window", () =>
    Effect.gen(function* () {
      const memory = freshMemory();
      let attempts = 0;
      const actor = yield* start(memory, {
        work: {
          perform: ({ worth }) =>
            Effect.gen(function* () {
              attempts += 1;
              yield* Effect.sleep("31 seconds");
              return attempts > 10 ? finished(worth) : yield* Effect.die("boom");
            }),
        },
      });
      yield* actor.tell(requested(1));
      yield* TestClock.adjust("10 minutes");
      yield* actor.settled;
      expect(attempts).toBe(11);
      expect(yield* totalOf(memory)).toEqual({ total: 1, pending: 0 });
    }),
  );
});
