import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { PREPARED_MAX } from "../../../src/store/postgres/connection/connection.ts";
import { plannedAnew } from "../../../src/store/postgres/connection/prepared.ts";
import { live } from "../../support/postgres/live.ts";

/** Each test in one transaction, so that all its statements run on one connection. */
const onOneConnection: typeof live = (name, test) => {
  live(name, (sql) => sql.withTransaction(test(sql)));
};

const kept = (sql: SqlClient.SqlClient) =>
  Effect.map(
    plannedAnew(sql<{ readonly statement: string }>`
      SELECT statement FROM pg_prepared_statements WHERE statement LIKE 'SELECT%'`),
    (rows) => rows.map(({ statement }) => statement),
  );

const changed = (sql: SqlClient.SqlClient, columns: string) => sql`ALTER TABLE codes ${sql.literal(columns)}`;

describe("a statement", () => {
  onOneConnection("is kept by its connection, by its text alone", (sql) =>
    Effect.gen(function* () {
      for (const a of [1, 3_000_000_000, 2.5, null]) yield* sql`SELECT ${a}::float8 + 10::int AS sum`;
      expect(yield* kept(sql)).toEqual(["SELECT $1::float8 + 10::int AS sum"]);
    }),
  );

  onOneConnection("is planned anew each time on request", (sql) =>
    Effect.gen(function* () {
      yield* plannedAnew(sql`SELECT ${1}::int AS one`);
      expect(yield* kept(sql)).toEqual([]);
    }),
  );

  onOneConnection("is forgotten if many others were used since", (sql) =>
    Effect.gen(function* () {
      for (let text = 0; text < PREPARED_MAX + 10; text += 1)
        expect(yield* sql`SELECT ${1}::int AS ${sql(`n${text}`)}`).toEqual([{ [`n${text}`]: 1 }]);
      const texts = yield* kept(sql);
      expect(texts.length).toBeLessThanOrEqual(PREPARED_MAX);
      expect(texts).not.toContain('SELECT $1::int AS "n0"');
    }),
  );
});

describe("a prepared statement", () => {
  live("works on after a change of the columns that it reads", (sql) =>
    Effect.gen(function* () {
      yield* sql`CREATE TABLE codes (code text)`;
      yield* sql`INSERT INTO codes VALUES ('a')`;
      const all = sql`SELECT * FROM codes`;
      yield* all;
      yield* changed(sql, "ADD COLUMN note text DEFAULT 'new'");
      expect(yield* all).toEqual([{ code: "a", note: "new" }]);
      yield* changed(sql, "DROP COLUMN note");
      expect(yield* all).toEqual([{ code: "a" }]);
    }),
  );

  live(
    "fails the transaction that meets the change like a lost connection, and works in the next one",
    (sql) =>
      Effect.gen(function* () {
        yield* sql`CREATE TABLE codes (code text)`;
        const all = sql`SELECT * FROM codes`;
        const writing = sql.withTransaction(Effect.andThen(sql`INSERT INTO codes (code) VALUES ('b')`, all));
        yield* writing;
        yield* changed(sql, "ADD COLUMN note text");
        const error = yield* Effect.flip(writing);
        expect(error.reason._tag).toBe("ConnectionError");
        expect((yield* writing).length).toBe(2);
      }),
  );
});
