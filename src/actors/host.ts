/**
 * Runs one machine as one actor. The service and the in-sandbox daemon share it. A step runs in the fiber of the caller, who waits for its
 * commit in any case (docs/decisions/0003-step-in-the-callers-fiber.md).
 *
 *  H1 One event at a time: the host steps an event only after it has saved the one before.
 *  H2 One transaction commits the snapshot and its commands before any command is performed. The transaction that saves
 *     a command's outcome marks the command as done. After a crash a command may be performed again, so handlers are
 *     idempotent.
 *  H3 Nothing is dropped silently. A refused event is answered as refused and reported to the inspector, a late outcome
 *     is marked done, and a full mailbox is an error.
 */
import * as Effect from "effect/Effect";
import { isTagged } from "effect/Predicate";
import * as Fiber from "effect/Fiber";
import * as FiberMap from "effect/FiberMap";
import * as Option from "effect/Option";
import * as Clock from "effect/Clock";
import * as Semaphore from "effect/Semaphore";
import type * as Scope from "effect/Scope";
import { ActorNotFound, MailboxFull, type EventResult } from "../ground/mailbox.ts";
import type { Named, PureMachine, Snapshot } from "../machines/step.ts";
import {
  StoreError,
  type CapReached,
  type Fenced,
  type LoadedActor,
  type Memory,
  type PendingCommand,
} from "../store/ports/journal.ts";
import { Inspector, type Inspect } from "./inspector.ts";
import { supervise, type RestartBudget } from "./supervisor.ts";
import { tryAgain } from "../ground/backoff.ts";
import { waitOutOutage } from "../store/ports/outage.ts";

/** Performs one kind of command. Its outcome is an event, or undefined if the machine needs no event. */
export interface Handler<Event, Command> {
  readonly perform: (command: Command) => Effect.Effect<Event | undefined, StoreError>;
  /**
   * Kinds of commands, under way or pending, that this one makes pointless. The host interrupts them and marks them
   * done first.
   */
  readonly supersedes?: readonly string[];
  /**
   * The event that tells the machine that the command's restart budget is spent. Without it, the failure is only
   * logged.
   */
  readonly gaveUp?: (command: Command, reason: string) => Event;
}

/** One handler a command: a missing one is a type error. */
export type Handlers<Event, Command extends Named> = {
  readonly [Type in Command["type"]]: Handler<Event, Extract<Command, { readonly type: Type }>>;
};

/** The numbers that one kind of actor runs under. */
export interface ActorLimits {
  /** How many events may be under way or waiting. */
  readonly mailbox: number;
  /** How many crashes of one command's handler are tolerated. */
  readonly restarts: RestartBudget;
}

export interface HostOptions<S, Event, Command extends Named> extends ActorLimits {
  readonly id: string;
  readonly machine: Pick<PureMachine<S, Event, Command, never>, "name" | "step">;
  readonly memory: Memory<S, Event, Command>;
  readonly handlers: Handlers<Event, Command>;
  /** The event for the machine if the memory had no slot for a step (`CapReached`). The machine must stay as it is. */
  readonly slotRefused?: Event;
}

/** Why an event was not taken. After a `StoreError` it may have been. */
type NotTold = StoreError | CapReached | MailboxFull | ActorNotFound;

export interface Actor<S, Event> {
  /** @param guard runs after the state was read that the step begins with. If it fails, the event changes nothing. */
  readonly tell: <E = never>(
    event: Event,
    guard?: Effect.Effect<void, E>,
  ) => Effect.Effect<EventResult<S>, E | NotTold>;
  readonly snapshot: Effect.Effect<S>;
  /** Whether a command is under way. */
  readonly busy: Effect.Effect<boolean>;
  /**
   * If the outcome of a save is unknown, or if `newest` is not under way, reads the memory again and performs the
   * commands that it finds there. Without this, they would wait for the next event.
   *
   * @param newest the id of a pending command that another writer may have saved. Null if none is known.
   */
  readonly refresh: (newest: string | null) => Effect.Effect<void, StoreError | ActorNotFound>;
  /** Completes when no command is under way. It keeps an actor in memory, and tests wait on it as a receipt. */
  readonly settled: Effect.Effect<void>;
}

/**
 * How often the host immediately repeats a step after another writer's save came first. Each step starts from that
 * writer's save.
 */
const FENCE_RETRIES = 5;

/**
 * Loads the actor's memory, performs the commands that the former life left pending, and takes events until its scope
 * closes. Closing interrupts commands under way. They stay in the outbox for the next life.
 */
export const startActor = Effect.fnUntraced(function* <
  S extends Snapshot<string, object>,
  Event extends Named,
  Command extends Named,
>(
  options: HostOptions<S, Event, Command>,
): Effect.fn.Return<Actor<S, Event>, StoreError | ActorNotFound, Scope.Scope> {
  const loaded = yield* options.memory.load(options.id);
  if (loaded === null) return yield* new ActorNotFound({ actorId: options.id });
  const fibers = yield* FiberMap.make<string, void>();
  const host = new Host(options, { loaded, fibers, inspect: yield* Inspector });
  yield* host.inspectLoaded;
  yield* Effect.addFinalizer(() => host.inspectLeft);
  yield* host.launch(loaded.pending);
  return {
    tell: (event, guard = Effect.void as Effect.Effect<void, never>) => host.tell(event, guard),
    snapshot: Effect.sync(() => host.snapshot),
    refresh: (newest) => host.refresh(newest),
    busy: Effect.map(FiberMap.size(fibers), (count) => count > 0),
    settled: Effect.orDie(FiberMap.awaitEmpty(fibers)),
  };
});

interface Parts<S, Command> {
  readonly loaded: LoadedActor<S, Command>;
  readonly fibers: FiberMap.FiberMap<string, void>;
  readonly inspect: Inspect;
}

class Host<S extends Snapshot<string, object>, Event extends Named, Command extends Named> {
  readonly #options: HostOptions<S, Event, Command>;
  readonly #fibers: FiberMap.FiberMap<string, void>;
  readonly #inspect: Inspect;
  readonly #turn = Semaphore.makeUnsafe(1);
  #waiting = 0;
  #snapshot: S;
  #version: number;
  /** The outcome of a save is unknown, or another writer was first: reload before the next step. */
  #stale = false;
  /** Commands under way, by id. */
  readonly #underWay = new Map<string, Command>();
  /**
   * Commands that ended while a reload is under way: the reload may still read them as pending. Null while no reload
   * runs.
   */
  #ended: Set<string> | null = null;

  constructor(options: HostOptions<S, Event, Command>, parts: Parts<S, Command>) {
    this.#options = options;
    this.#fibers = parts.fibers;
    this.#inspect = parts.inspect;
    this.#snapshot = parts.loaded.snapshot;
    this.#version = parts.loaded.version;
  }

  get snapshot(): S {
    return this.#snapshot;
  }

  get inspectLoaded(): Effect.Effect<void> {
    return this.#inspected(null, true, []);
  }

  get inspectLeft(): Effect.Effect<void> {
    const { id, machine } = this.#options;
    const nothing = { event: null, accepted: true, commands: [], snapshot: this.#snapshot };
    return this.#inspect({ machine: machine.name, actorId: id, ...nothing, left: true });
  }

  tell<E>(event: Event, guard: Effect.Effect<void, E>): Effect.Effect<EventResult<S>, E | NotTold> {
    return Effect.suspend((): Effect.Effect<EventResult<S>, E | NotTold> => {
      const { id, mailbox } = this.#options;
      if (this.#waiting >= mailbox) return Effect.fail(new MailboxFull({ actorId: id, capacity: mailbox }));
      this.#waiting += 1;
      return Effect.ensuring(
        this.#step(event, null, guard),
        Effect.sync(() => (this.#waiting -= 1)),
      );
    });
  }

  refresh(newest: string | null): Effect.Effect<void, StoreError | ActorNotFound> {
    const reload = Effect.suspend(() => {
      const isKnown = newest === null || this.#underWay.has(newest);
      return this.#stale || !isKnown ? this.#reload : Effect.void;
    });
    return this.#turn.withPermit(Effect.uninterruptible(reload));
  }

  /**
   * Starts commands, each in its own fiber. This function decides what a command supersedes, in the order of the
   * outbox: an earlier command never ends a later one of the same kind, and a superseded command does not start.
   */
  launch(pending: readonly PendingCommand<Command>[]): Effect.Effect<void> {
    return Effect.suspend(() => {
      const launches = pending.map((entry) => {
        const pointless = this.#supersededBy(entry.command);
        this.#underWay.set(entry.id, entry.command);
        return { entry, pointless };
      });
      const skippedKeys = new Set(launches.flatMap(({ pointless }) => pointless));
      return Effect.forEach(
        launches.filter(({ entry }) => !skippedKeys.has(entry.id)),
        ({ entry, pointless }) => this.#begin(entry, pointless),
        { discard: true },
      );
    });
  }

  #begin(entry: PendingCommand<Command>, pointless: readonly string[]): Effect.Effect<unknown> {
    const { id, machine } = this.#options;
    const work = Effect.andThen(this.#retire(pointless), this.#perform(entry)).pipe(
      // The command stays in the outbox. Recovery's next look at this actor, or the actor's next life, tries again.
      Effect.catchDefect((defect) => Effect.logError("a command was left undone", defect)),
      // A command starts within an uninterruptible step, but must itself be interruptible.
      Effect.interruptible,
      Effect.ensuring(Effect.sync(() => this.#end(entry.id))),
      Effect.annotateLogs({ actor: id, work: `${machine.name} ${entry.command.type}` }),
    );
    return FiberMap.run(this.#fibers, entry.id, work);
  }

  #supersededBy(command: Command): readonly string[] {
    const types = this.#handlerOf(command).supersedes ?? [];
    return [...this.#underWay].filter(([, { type }]) => types.includes(type)).map(([id]) => id);
  }

  /** Interrupts commands that a later one superseded, and marks them done. */
  #retire(ids: readonly string[]): Effect.Effect<void> {
    if (ids.length === 0) return Effect.void;
    const fibers = ids.flatMap((id) => Option.toArray(FiberMap.getUnsafe(this.#fibers, id)));
    return Effect.andThen(
      Fiber.interruptAll(fibers),
      waitOutOutage("supersede", this.#options.memory.complete(this.#options.id, ids)),
    ).pipe(Effect.tap(() => Effect.sync(() => ids.forEach((id) => this.#end(id)))));
  }

  #end(commandId: string): void {
    this.#underWay.delete(commandId);
    this.#ended?.add(commandId);
  }

  /** H1 and H2. `completes` is the id of the command whose outcome the event is. */
  #step<E>(
    event: Event,
    completes: string | null,
    guard: Effect.Effect<void, E>,
  ): Effect.Effect<EventResult<S>, E | StoreError | CapReached | ActorNotFound> {
    const { id, machine, memory } = this.#options;
    const once = Effect.gen({ self: this }, function* () {
      // A refusal is final for its caller, so it is decided on the stored state and not on the cached one.
      const early = this.#stale ? null : machine.step(this.#snapshot, event);
      if (early?.accepted !== true) yield* this.#reload;
      yield* guard;
      // A save whose answer was lost, or another writer, has settled this command. Its outcome counts once.
      if (completes !== null && !this.#underWay.has(completes))
        return { accepted: false, snapshot: this.#snapshot };
      const before = this.#snapshot;
      const { snapshot: after, commands, accepted } = early?.accepted ? early : machine.step(before, event);
      if (!accepted) {
        if (completes !== null) yield* memory.complete(id, [completes]);
        yield* this.#inspected(event, false, []);
        return { accepted, snapshot: before };
      }
      const now = yield* Clock.currentTimeMillis;
      const change = { id, version: this.#version, event, before, after, commands, completes, now };
      const savedState = yield* memory.save(change).pipe(
        Effect.tapErrorTag("CapReached", () => this.#refuseSlot),
        Effect.onError(() => this.#distrust),
      );
      this.#snapshot = after;
      this.#version = savedState.version;
      yield* this.#inspected(event, true, commands);
      yield* this.launch(savedState.pending);
      return { accepted, snapshot: after };
    });
    return tryAgain(once, { while: isFenced, times: FENCE_RETRIES }).pipe(
      // Other writers change this row faster than this actor can read it. For the caller the store is unavailable now.
      Effect.catchIf(isFenced, (cause) => Effect.fail(new StoreError({ operation: "save", cause }))),
      Effect.uninterruptible,
      (step) => this.#turn.withPermit(step),
    );
  }

  /** The step was not saved. The machine's answer changes nothing, so it is inspected and not saved either (H3). */
  get #refuseSlot(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { machine, slotRefused } = this.#options;
      if (slotRefused === undefined) return Effect.void;
      return this.#inspected(slotRefused, machine.step(this.#snapshot, slotRefused).accepted, []);
    });
  }

  get #distrust(): Effect.Effect<void> {
    return Effect.sync(() => void (this.#stale = true));
  }

  /** An actor whose memory was removed meanwhile is not found. */
  get #reload(): Effect.Effect<void, StoreError | ActorNotFound> {
    return Effect.gen({ self: this }, function* () {
      const endedKeys = new Set<string>();
      this.#ended = endedKeys;
      const reloaded = yield* Effect.ensuring(
        this.#options.memory.load(this.#options.id),
        Effect.sync(() => (this.#ended = null)),
      );
      if (reloaded === null) return yield* new ActorNotFound({ actorId: this.#options.id });
      this.#snapshot = reloaded.snapshot;
      this.#version = reloaded.version;
      this.#stale = false;
      const pending = new Set(reloaded.pending.map((entry) => entry.id));
      for (const key of this.#underWay.keys()) if (!pending.has(key)) this.#underWay.delete(key);
      const isNew = ({ id }: PendingCommand<Command>) => !this.#underWay.has(id) && !endedKeys.has(id);
      yield* this.launch(reloaded.pending.filter(isNew));
    });
  }

  /**
   * Performs a command and saves its outcome. If the memory never accepts the outcome, the command counts as crashed:
   * otherwise the actor would wait for it for ever.
   */
  #perform(entry: PendingCommand<Command>): Effect.Effect<void> {
    const { id, machine, memory, restarts } = this.#options;
    const handler = this.#handlerOf(entry.command);
    const work = `${machine.name} ${entry.command.type}`;
    const finish = (outcome: Event | undefined): Effect.Effect<void> =>
      waitOutOutage(
        work,
        outcome === undefined ? memory.complete(id, [entry.id]) : this.#settle(outcome, entry.id),
      );
    const performance = Effect.flatMap(handler.perform(entry.command), finish);
    /** People ask why a command is not done. A lost record only costs them an answer. */
    const crash = (reason: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.ignore(memory.crashed?.(id, entry.id, { reason, now }) ?? Effect.void),
      );
    return supervise(performance, { work, budget: restarts, crashed: crash }).pipe(
      Effect.catchTag("RestartsExhausted", ({ reason }) =>
        Effect.andThen(
          Effect.logError("a command failed too often and is given up", { reason }),
          Effect.suspend(() => finish(handler.gaveUp?.(entry.command, reason))),
        ),
      ),
    );
  }

  /** Takes a command's outcome as an event. Outcomes bypass the mailbox limit: the outbox bounds their number. */
  #settle(outcome: Event, commandId: string): Effect.Effect<void, StoreError> {
    return Effect.asVoid(
      Effect.catchTags(this.#step(outcome, commandId, Effect.void), {
        CapReached: (error) => Effect.die(error),
        // The command's row was removed with the memory.
        ActorNotFound: () => Effect.void,
      }),
    );
  }

  /** The mapped type guarantees a handler for every command, but the type checker cannot follow a correlated lookup. */
  #handlerOf(command: Command): Handler<Event, Command> {
    const handlers = this.#options.handlers as unknown as Readonly<Record<string, Handler<Event, Command>>>;
    const handler = handlers[command.type];
    if (handler === undefined)
      throw new Error(`${this.#options.machine.name}: no handler for ${command.type}`);
    return handler;
  }

  #inspected(event: Event | null, accepted: boolean, commands: readonly Command[]): Effect.Effect<void> {
    const { id, machine } = this.#options;
    return this.#inspect({
      machine: machine.name,
      actorId: id,
      event,
      accepted,
      snapshot: this.#snapshot,
      commands,
      left: false,
    });
  }
}

const isFenced = (error: unknown): error is Fenced => isTagged(error, "Fenced");
