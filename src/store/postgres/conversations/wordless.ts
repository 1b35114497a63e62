/**
 * Adds the words of messages from before migration 0018, by which people find sessions, some at a time. It ends when all have
 * them: a message that is written since has its words at once.
 */
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type { SqlClient } from "effect/sql/SqlClient";
import { toStored } from "../connection/statement.ts";
import { isWholeMessage } from "./rows.ts";

/** How many messages one statement reads. */
const AT_ONCE = 200;
/** The service's start comes first. */
const FIRST = "30 seconds";
const BREATH = "100 millis";

/** @returns how many got their words. Rows that a writer has locked get them by that write. */
export const addWords = (sql: SqlClient) =>
  sql<{ readonly id: string }>`
    UPDATE conversation_items AS item SET words = coalesce(message_words(item.record), '')
    FROM (
      SELECT session_id, id FROM conversation_items AS old
      WHERE words IS NULL AND ${sql.literal(isWholeMessage("old"))} LIMIT ${AT_ONCE} FOR UPDATE SKIP LOCKED
    ) AS wordless
    WHERE item.session_id = wordless.session_id AND item.id = wordless.id RETURNING item.id`.pipe(
    Effect.map((rows) => rows.length),
    toStored("wordless.addWords"),
  );

/** Goes on after a failure of the database. */
export const addAllWords = (sql: SqlClient) =>
  Effect.sleep(FIRST).pipe(
    Effect.andThen(Effect.repeat(Effect.delay(addWords(sql), BREATH), { until: (count) => count === 0 })),
    Effect.retry(Schedule.spaced(FIRST)),
  );
