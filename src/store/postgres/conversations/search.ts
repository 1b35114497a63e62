/** Finds items by the words of what people and agents said: see hasWords of the domain. */
import * as Effect from "effect/Effect";
import type * as SqlClient from "effect/sql/SqlClient";
import { searchWords } from "../../../domain/conversation/search.ts";
import type { Conversations } from "../../ports/sessions/conversations.ts";
import { type FoundItem, hitIn } from "../../session-hits.ts";
import { toStored } from "../connection/statement.ts";
import { answeredText } from "./rows.ts";

/**
 * A word as Postgres may have it: a database with the locale C folds ASCII letters alone. Words have letters and digits alone.
 */
const spellings = (word: string): readonly string[] => {
  const [first = ""] = word;
  const all = new Set([word, first.toUpperCase() + word.slice(first.length), word.toUpperCase()]);
  return [...all].map((spelling) => `'${spelling}':*`);
};

/** The query for items that have all of the words. @param words at least one */
export const wordsQuery = (words: readonly string[]): string =>
  words.map((word) => `(${spellings(word).join(" | ")})`).join(" & ");

/** What a search shows of the row `item`. */
export const FOUND_ITEM = `jsonb_build_object('itemId', item.id, 'at', item.record -> 'createdAt', 'text',
    CASE item.kind WHEN 'request' THEN ${answeredText("item")} ELSE (
      SELECT string_agg(part ->> 'text', '') FROM jsonb_array_elements(item.record -> 'content') AS part) END)`;

export const searchIn = (sql: SqlClient.SqlClient): Pick<(typeof Conversations)["Service"], "search"> => ({
  search: (id, { search, limit }) => {
    const words = searchWords(search);
    if (words.length === 0) return Effect.succeed([]);
    return sql<{ readonly found: FoundItem }>`
      SELECT ${sql.literal(FOUND_ITEM)} AS found FROM conversation_items AS item
      WHERE session_id = ${id} AND words IS NOT NULL AND words @@ to_tsquery('simple', ${wordsQuery(words)})
      ORDER BY place DESC LIMIT ${limit}`.pipe(
      Effect.map((rows) => rows.map(({ found }) => hitIn(found, words))),
      toStored("search.inConversation"),
    );
  },
});
