/** The history's part of a statement that saves a step: no statement of its own, and no further round trip. */
import type { SqlClient } from "effect/sql/SqlClient";
import type { ActorKey } from "../../ports/transitions.ts";
import type { NewTransition } from "../../../machines/transition.ts";
import { at } from "../connection/statement.ts";

interface Kept extends ActorKey {
  /** The version that the step made. */
  readonly version: number;
  /** The part of the statement with one row if the step is saved, and none if it is not. */
  readonly given: "saved" | "opened";
}

/** `, kept AS (INSERT …)`, to follow the statement's other parts. Nothing for a step that leaves no row. */
export const keeping = (sql: SqlClient, row: NewTransition | null, { kind, id, version, given }: Kept) =>
  row === null
    ? sql.literal("")
    : sql`, kept AS (
        INSERT INTO transitions (actor_kind, actor_id, number, at, event, from_state, to_state, detail, commands)
        SELECT ${kind}, ${id}, ${version}::bigint, ${at(row.at)}::timestamptz, ${row.event}, ${row.from}, ${row.to},
          ${row.detail}, ${row.commands}::text[] FROM ${sql.literal(given)}
      )`;
