/**
 * The memory of an actor, as the actor host uses it: snapshots, commands, and the errors of every store operation. The host
 * also runs in sandboxes, over memory of its own (actors/volatile.ts), so this file names nothing else of the store.
 *
 * The store has two adapters, Postgres (`store/postgres/`) and the in-memory twin (`store/memory/`). One conformance suite
 * runs over both (test/conformance/store.ts). Every operation of every port is one transaction. Instants are parameters
 * (`now`, ms since the epoch), never the database's clock. Invariants of both adapters:
 *  D1 A save is fenced: it changes a row only at the version that the writer read. Otherwise it fails with `Fenced` and
 *     writes nothing.
 *  D2 Snapshot, commands (outbox rows), the completed command and event rows are written together or not at all.
 *  D3 An account's slot counter moves in the same transaction as the session's status, and never passes its cap (I1, I12).
 *  D4 A fire leaves exactly one ledger row of another status than `duplicate` (api.md 4 "Ledger").
 */
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/**
 * The database cannot be reached or cannot serve now: nothing is known to be written. It passes: retried by actors, 503
 * for callers. A statement that it would refuse every time is a defect instead.
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  cause: Schema.Defect(),
}) {}

/** Someone else wrote the row first (D1). */
export class Fenced extends Schema.TaggedError<Fenced>()("Fenced", { id: Schema.String }) {}

/** No slot is free (spec 7.2: 429). */
export class CapReached extends Schema.TaggedError<CapReached>()("CapReached", {
  limit: Schema.Finite,
  activeSessions: Schema.Finite,
}) {}

export type Stored<A, E = never> = Effect.Effect<A, StoreError | E>;

/** A command that is written down and not yet known to be done. `id` orders the commands of one actor. */
export interface PendingCommand<Command> {
  readonly id: string;
  readonly command: Command;
}

export interface Loaded<Snapshot, Command> {
  readonly snapshot: Snapshot;
  readonly version: number;
  /** Oldest first. */
  readonly pending: readonly PendingCommand<Command>[];
}

/** One step of a machine, as it is written down (D1, D2). */
export interface Change<Snapshot, Event, Command> {
  readonly id: string;
  readonly version: number;
  readonly event: Event;
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly commands: readonly Command[];
  /** The command whose outcome the event is; it is done with this save. */
  readonly completes: string | null;
  readonly now: number;
}

/** What the actor host needs of a store: the memory of one kind of machine. */
export interface Memory<Snapshot, Event, Command> {
  readonly load: (id: string) => Stored<Loaded<Snapshot, Command> | null>;
  /** `pending` are this change's commands alone, oldest first, with the ids under which they are completed. */
  readonly save: (
    change: Change<Snapshot, Event, Command>,
  ) => Stored<
    { readonly version: number; readonly pending: readonly PendingCommand<Command>[] },
    Fenced | CapReached
  >;
  /** Marks commands done that had no outcome worth an event. Idempotent. */
  readonly complete: (id: string, commandIds: readonly string[]) => Stored<void>;
}
