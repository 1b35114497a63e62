/**
 * The memory of one kind of stored actor (../ports/journal.ts), for each table that has snapshots. A save is one
 * statement: the row, the history, the commands and, where the row has a session, its event. What a step writes besides
 * stands with its table, in the same transaction.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { Named, Snapshot } from "../../machines/step.ts";
import { transitionRow } from "../../machines/transition.ts";
import type { PlacelessEvent } from "../event-rows.ts";
import { Fenced, type CapReached, type Change, type Memory, type PendingCommand } from "../ports/journal.ts";
import type { StoredKind } from "../ports/transitions.ts";
import { jsonb, toStored } from "./connection/statement.ts";
import { EventLog } from "./events/event-log.ts";
import {
  noteCrash,
  outboxParts,
  pendingColumn,
  pendingCommands,
  removeCommands,
  unsettledActors,
} from "./outbox.ts";
import { keeping } from "./events/transition-rows.ts";

/** What a step writes beside its snapshot, its commands and the history. */
export interface StepWrites<Row> {
  /** Columns of the actor's row. */
  readonly columns: Readonly<Record<string, unknown>>;
  /** Further assignments: `, column = …`. */
  readonly assignments?: Fragment;
  /** An event of the actor's session. Null if the step causes none. The row needs `sessionId` and `projectId`. */
  readonly event?: PlacelessEvent | null;
  /** Runs after the statement. `row` is the actor's row. */
  readonly finish: (row: Row) => Effect.Effect<void, SqlError | CapReached>;
}

export interface ActorTable<S, Event, Command, Row> {
  readonly kind: StoredKind;
  /** The first part of its operations' names: `sessions` for `sessions.load`. */
  readonly name: string;
  readonly table: string;
  readonly key: "id" | "session_id";
  /** The column of the machine's state. */
  readonly state: "state" | "status";
  /** The columns of the saved row that `finish` reads. */
  readonly returning: string;
  /** Adds what a snapshot that an earlier version stored does not have. */
  readonly complete?: (snapshot: S) => S;
  /** Whether a step writes nothing beside its statement, so that it needs no transaction. */
  readonly isOneStatement: (change: Change<S, Event, Command>) => boolean;
  readonly writes: (change: Change<S, Event, Command>) => Effect.Effect<StepWrites<Row>, SqlError>;
}

/** The session of the saved row, as events name it. */
const SESSION = `(SELECT "sessionId" AS session_id, "projectId" AS project_id FROM saved) AS placed`;

export const makeActorMemory = Effect.fnUntraced(function* <
  S extends Snapshot<string, object>,
  Event extends Named,
  Command extends Named,
  Row extends object,
>({ kind, name, ...table }: ActorTable<S, Event, Command, Row>) {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const [into, key, state] = [sql.literal(table.table), sql.literal(table.key), sql.literal(table.state)];
  const nothing = sql.literal("");

  const load = (id: string) =>
    Effect.map(
      sql<S & { readonly version: number; readonly pending: readonly PendingCommand<Command>[] }>`
        SELECT ${state} AS state, state_context AS context, version, ${pendingColumn(sql, { kind, id })}
        FROM ${into} WHERE ${key} = ${id}`,
      ([row]) => {
        if (row === undefined) return null;
        const { version, pending, ...snapshot } = row;
        return {
          snapshot: table.complete?.(snapshot as unknown as S) ?? (snapshot as unknown as S),
          version,
          pending,
        };
      },
    );

  const save = Effect.fnUntraced(function* (change: Change<S, Event, Command>) {
    const { id, version, after } = change;
    const { columns, assignments = nothing, event = null, finish } = yield* table.writes(change);
    const actor = { kind, id } as const;
    const outbox = outboxParts(sql, actor, { ...change, given: "saved" });
    const set = { ...columns, [table.state]: after.state, state_context: jsonb(after.context) };
    const news =
      event === null ? nothing : sql`, news AS (${events.insertionIn(event, sql.literal(SESSION))})`;
    const [saved] = yield* sql<Row & { readonly added: readonly string[] }>`
      WITH saved AS (
        UPDATE ${into} SET ${sql.update(set)}, version = version + 1${assignments}
        WHERE ${key} = ${id} AND version = ${version} RETURNING ${sql.literal(table.returning)}
      )${keeping(sql, transitionRow(change), { ...actor, version: version + 1, given: "saved" })}${outbox.parts}${news}
      SELECT saved.*, ${outbox.ids} AS added FROM saved`;
    if (saved === undefined) return yield* new Fenced({ id });
    yield* finish(saved);
    return { version: version + 1, pending: pendingCommands(change.commands, saved.added) };
  });

  const memory: Memory<S, Event, Command> = {
    load: (id) => load(id).pipe(toStored(`${name}.load`)),
    save: (change) =>
      (table.isOneStatement(change) ? save(change) : sql.withTransaction(save(change))).pipe(
        toStored(`${name}.save`),
      ),
    complete: (id, ids) => removeCommands(sql, { kind, id }, ids).pipe(toStored(`${name}.complete`)),
    crashed: (id, commandId, crash) =>
      noteCrash(sql, { kind, id }, { ...crash, commandId }).pipe(toStored(`${name}.crashed`)),
  };
  return { memory, unsettled: unsettledActors(sql, kind).pipe(toStored(`${name}.unsettled`)) };
});
