/** Pages of rows, as Postgres would answer them. */
import * as Effect from "effect/Effect";
import { cutPage, readCursor, type Position } from "../../../src/store/cursor.ts";
import type { PageRequest } from "../../../src/store/ports/page.ts";

const isBefore = (a: Position, b: Position): boolean => a.at < b.at || (a.at === b.at && a.id < b.id);

/** A page of rows, newest first. */
export const pageFrom = Effect.fnUntraced(function* <A>(
  rows: readonly A[],
  { cursor, limit }: PageRequest,
  position: (row: A) => Position,
) {
  const from = yield* readCursor(cursor);
  const ordered = rows
    .filter((row) => from === null || isBefore(position(row), from))
    .toSorted((a, b) => (isBefore(position(a), position(b)) ? 1 : -1));
  return cutPage(ordered, limit, position);
});
