/** Page cursors: the position of a page's last row, with the newest rows first. Both adapters use them. */
import * as Effect from "effect/Effect";
import { parseUuid } from "../domain/ids.ts";
import { BadCursor } from "./ports/errors.ts";
import type { Page } from "./ports/page.ts";

/** Rows are ordered by instant and id, both descending. */
export interface Position {
  readonly at: number;
  readonly id: string;
}

const FORM = /^(\d{1,16})\.([0-9a-f-]{36})$/;
/** The last instant that a Date can hold. */
const LAST_INSTANT = 8.64e15;

/** The cursor of the page that begins after this row. */
export const writeCursor = ({ at, id }: Position): string => Buffer.from(`${at}.${id}`).toString("base64url");

/** Reads a cursor from a request. Null stays null. */
export const readCursor = (cursor: string | null): Effect.Effect<Position | null, BadCursor> => {
  if (cursor === null) return Effect.succeed(null);
  const [, at, id] = FORM.exec(Buffer.from(cursor, "base64url").toString("latin1")) ?? [];
  const position = at === undefined || id === undefined ? null : { at: Number(at), id };
  // Encoding it again refuses any other spelling of the same position.
  return position !== null &&
    position.at <= LAST_INSTANT &&
    parseUuid(position.id) !== null &&
    writeCursor(position) === cursor
    ? Effect.succeed(position)
    : Effect.fail(new BadCursor({ cursor }));
};

/**
 * Makes a page of up to `limit` rows.
 *
 * @param rows one more than `limit` if there are more.
 */
export const cutPage = <A>(rows: readonly A[], limit: number, position: (row: A) => Position): Page<A> => {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return {
    items,
    nextCursor: rows.length > limit && last !== undefined ? writeCursor(position(last)) : null,
  };
};

/** The same for records by their creation, newest first. */
export const cutNewest = <A extends { readonly createdAt: number; readonly id: string }>(
  rows: readonly A[],
  limit: number,
): Page<A> => cutPage(rows, limit, ({ createdAt, id }) => ({ at: createdAt, id }));

const NUMBER_FORM = /^[1-9]\d{0,15}$/;

/** Reads the cursor of a list that is ordered by one number, descending. Null stays null. */
export const readNumberCursor = (cursor: string | null): Effect.Effect<number | null, BadCursor> =>
  cursor === null || NUMBER_FORM.test(cursor)
    ? Effect.succeed(cursor === null ? null : Number(cursor))
    : Effect.fail(new BadCursor({ cursor }));

/** As `cutPage`, for rows that are ordered by their number alone. */
export const numberPage = <A extends { readonly number: number }>(
  rows: readonly A[],
  limit: number,
): Page<A> => {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > limit && last !== undefined ? String(last.number) : null };
};
