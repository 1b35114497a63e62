/** The memory of one kind of stored actor, in memory: see postgres/actor-memory.ts. */
import * as Effect from "effect/Effect";
import type { Named, Snapshot } from "../../../src/machines/step.ts";
import { transitionRow } from "../../../src/machines/transition.ts";
import { Fenced, type CapReached, type Change, type Memory } from "../../../src/store/ports/journal.ts";
import type { StoredKind } from "../../../src/store/ports/transitions.ts";
import type { Outbox, TableSet } from "./tables.ts";

interface ActorTable<S, Event, Command extends Named, Row> {
  readonly kind: StoredKind;
  readonly rows: Map<string, Row>;
  readonly outbox: Outbox<Command>;
  /** The row after a step, but for its snapshot and version. If it fails, nothing is written. */
  readonly step?: (row: Row, change: Change<S, Event, Command>) => Effect.Effect<Row, CapReached>;
  /** Runs after the row was written. */
  readonly finish: (row: Row, change: Change<S, Event, Command>) => void;
}

export const makeActorMemory = <
  S extends Snapshot<string, object>,
  Event extends Named,
  Command extends Named,
  Row extends { readonly snapshot: S; readonly version: number },
>(
  tables: TableSet,
  { kind, rows, outbox, step = Effect.succeed, finish }: ActorTable<S, Event, Command, Row>,
) => {
  const save = Effect.fnUntraced(function* (change: Change<S, Event, Command>) {
    const { id, after, commands, completes, now } = change;
    const row = rows.get(id);
    if (row === undefined || row.version !== change.version) return yield* new Fenced({ id });
    const version = change.version + 1;
    const saved = { ...(yield* step(row, change)), snapshot: after, version };
    rows.set(id, saved);
    if (completes !== null) outbox.remove(id, [completes]);
    const pending = outbox.append(id, commands, now);
    tables.keep({ kind, id }, transitionRow(change), version);
    finish(saved, change);
    return { version, pending };
  });
  const memory: Memory<S, Event, Command> = {
    load: (id) =>
      Effect.sync(() => {
        const row = rows.get(id);
        if (row === undefined) return null;
        return { snapshot: row.snapshot, version: row.version, pending: outbox.of(id) };
      }),
    save,
    complete: (id, commandIds) => Effect.sync(() => outbox.remove(id, commandIds)),
    crashed: (_, commandId, { reason }) => Effect.sync(() => outbox.noteCrash(commandId, reason)),
  };
  return { memory, unsettled: Effect.sync(() => outbox.unsettled()) };
};
