/** What every adapter's statements share. */
import * as Effect from "effect/Effect";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Position } from "../../cursor.ts";
import { StoreError } from "../../ports/journal.ts";
import { isDiskFull, isRefusal } from "./errors.ts";

/**
 * Names an operation, in the span of its statements and in its error. Temporary errors (a lost connection, a deadlock,
 * a full disk) become a `StoreError`. A statement that the database would refuse every time is a defect: waiting for it
 * would never end. An operation first maps the refusals that it expects.
 */
export const toStored =
  (operation: string) =>
  <A, E, R>(
    effect: Effect.Effect<A, E | SqlError, R>,
  ): Effect.Effect<A, Exclude<E, SqlError> | StoreError, R> =>
    effect.pipe(
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError> | StoreError> => {
        if (!isSqlError(error)) return Effect.fail(error as Exclude<E, SqlError>);
        return isRefusal(error)
          ? Effect.die(error)
          : Effect.fail(new StoreError({ operation, cause: error, isDiskFull: isDiskFull(error) }));
      }),
      // A stack trace for each span would cost more than the span.
      Effect.withSpan(`store.${operation}`, {}, { captureStackTrace: false }),
    );

/** An instant as a parameter. */
export function at(instant: number): Date;
export function at(instant: number | null): Date | null;
export function at(instant: number | null): Date | null {
  return instant === null ? null : new Date(instant);
}

/** A value for a jsonb parameter. pg itself would turn a list into a PostgreSQL array. */
export const jsonb = (value: unknown): string => JSON.stringify(value);

/** `AND` the rows after a page's last one, by two descending columns. */
export const afterPosition = (
  sql: SqlClient,
  columns: { readonly at: string; readonly id: string },
  position: Position | null,
) =>
  position === null
    ? sql.literal("")
    : sql` AND (${sql(columns.at)}, ${sql(columns.id)}) < (${at(position.at)}, ${position.id}::uuid)`;

/** The row that an insert returns. */
export const insertedRow = <Row>([row]: readonly Row[]): Effect.Effect<Row> =>
  row === undefined ? Effect.die(new Error("an insert returned no row")) : Effect.succeed(row);

/**
 * `LIMIT` of a page and one row more, which says whether another page follows. It is no parameter: a plan that does not
 * know how few rows are read would be made anew for each page, or read all rows.
 */
export const pageLimit = (sql: SqlClient, limit: number) => sql.literal(`LIMIT ${limit + 1}`);

/** `AND` the rows of a page of a list, newest first (pageLimit). */
export const newestPage = (sql: SqlClient, position: Position | null, limit: number) =>
  sql`${afterPosition(sql, { at: "created_at", id: "id" }, position)}
    ORDER BY created_at DESC, id DESC ${pageLimit(sql, limit)}`;
