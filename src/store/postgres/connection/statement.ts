/** What every adapter's statements share. */
import * as Effect from "effect/Effect";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Position } from "../../cursor.ts";
import { StoreError } from "../../ports/journal.ts";
import { isRefusal } from "./errors.ts";

/**
 * Gives an operation its name, as the span of its statements and in its error, and turns what passes by itself (a lost
 * connection, a deadlock, a full disk) into a `StoreError`. A statement that the database would refuse every time is a
 * defect: waiting for it would never end. An operation maps the refusals that it expects itself, before.
 */
export const stored =
  (operation: string) =>
  <A, E, R>(
    effect: Effect.Effect<A, E | SqlError, R>,
  ): Effect.Effect<A, Exclude<E, SqlError> | StoreError, R> =>
    effect.pipe(
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError> | StoreError> => {
        if (!isSqlError(error)) return Effect.fail(error as Exclude<E, SqlError>);
        return isRefusal(error)
          ? Effect.die(error)
          : Effect.fail(new StoreError({ operation, cause: error }));
      }),
      Effect.withSpan(`store.${operation}`),
    );

/** An instant as a parameter. */
export function at(instant: number): Date;
export function at(instant: number | null): Date | null;
export function at(instant: number | null): Date | null {
  return instant === null ? null : new Date(instant);
}

/** A value for a jsonb parameter; pg itself would make an array of PostgreSQL's own out of a list. */
export const json = (value: unknown): string => JSON.stringify(value);

/** `AND` the rows after a page's last one, in the order of two descending columns. */
export const after = (
  sql: SqlClient,
  columns: { readonly at: string; readonly id: string },
  position: Position | null,
) =>
  position === null
    ? sql.literal("")
    : sql` AND (${sql(columns.at)}, ${sql(columns.id)}) < (${at(position.at)}, ${position.id}::uuid)`;
