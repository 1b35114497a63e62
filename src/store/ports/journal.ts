/**
 * The memory of an actor, as the actor host uses it: snapshots, commands, and the errors of every store operation. The
 * host also runs in sandboxes, over memory of its own (actors/volatile.ts), so this file names nothing else of the
 * store.
 *
 * The store has two adapters, Postgres (`store/postgres/`) and the twin in memory (`test/twins/store/`). One conformance
 * suite runs over both (test/conformance/store/store.ts). Every operation of every port is one transaction. Instants are
 * parameters (`now`, ms since the epoch), never the database's clock. Invariants of both adapters:
 *  D1 A save is fenced: it changes a row only at the version that the writer read. Otherwise it fails with `Fenced` and
 *     writes nothing.
 *  D2 Snapshot, commands (outbox rows), the completed command, event rows and the history's row (transitions.ts) are
 *     written together or not at all.
 *  D3 An account's slot counter moves in the same transaction as the session's status, and never passes its cap (I1,
 *     I12).
 *  D4 Each fire has exactly one ledger row with a status other than `duplicate` (api.md 4 "Ledger").
 */
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/**
 * The database is unreachable or cannot serve now, and the operation may or may not have been written. The outage is
 * temporary: actors retry, callers get 503. A statement that the database would refuse every time is a defect instead.
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  cause: Schema.Defect(),
  /** The database's disk is full: reads still work. */
  isDiskFull: Schema.optionalKey(Schema.Boolean),
}) {}

/** Another writer changed the row first (D1). */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", { id: Schema.String }) {}

/** No slot is free (spec 7.2: 429). */
export class CapReached extends Schema.TaggedError<CapReached>()("CapReached", {
  limit: Schema.Finite,
  activeSessions: Schema.Finite,
}) {}

export type Stored<A, E = never> = Effect.Effect<A, StoreError | E>;

/** A stored command that is not known to be done. `id` orders the commands of one actor. */
export interface PendingCommand<Command> {
  readonly id: string;
  readonly command: Command;
}

/** An actor with pending commands. */
export interface UnsettledActor {
  readonly id: string;
  /** The id of its newest pending command. */
  readonly newest: string;
}

export interface LoadedActor<Snapshot, Command> {
  readonly snapshot: Snapshot;
  readonly version: number;
  /** Oldest first. */
  readonly pending: readonly PendingCommand<Command>[];
}

/** One step of a machine, as it is saved (D1, D2). */
export interface Change<Snapshot, Event, Command> {
  readonly id: string;
  readonly version: number;
  readonly event: Event;
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly commands: readonly Command[];
  /** The command whose outcome the event is. This save marks it done. */
  readonly completes: string | null;
  readonly now: number;
}

/** The store as an actor host needs it: the memory of one kind of machine. */
export interface Memory<Snapshot, Event, Command> {
  readonly load: (id: string) => Stored<LoadedActor<Snapshot, Command> | null>;
  /** `pending` contains only this change's commands, oldest first, with the ids under which they are completed. */
  readonly save: (
    change: Change<Snapshot, Event, Command>,
  ) => Stored<
    { readonly version: number; readonly pending: readonly PendingCommand<Command>[] },
    Fenced | CapReached
  >;
  /** Marks commands done that had no outcome event. Idempotent. */
  readonly complete: (id: string, commandIds: readonly string[]) => Stored<void>;
  /** Records that the handler of a command crashed, for people who ask why it is not done. */
  readonly crashed?: (id: string, commandId: string, crash: Crash) => Stored<void>;
}

export interface Crash {
  readonly reason: string;
  readonly now: number;
}
