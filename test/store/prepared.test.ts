import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { plannedAnew, PREPARED_FROM, TEXTS_MAX } from "../../src/store/postgres/connection/prepared.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

/** Runs a test with a client of an empty database. */
const live = <E>(
  name: string,
  test: (sql: SqlClient.SqlClient) => Effect.Effect<void, E, SqlClient.SqlClient>,
) => {
  it.live(name, () =>
    Effect.provide(Effect.flatMap(SqlClient.SqlClient, test), testDatabase("empty"), { local: true }),
  );
};

/** Each test in one transaction, so that all its statements run on one connection. */
const onOneConnection: typeof live = (name, test) => {
  live(name, (sql) => sql.withTransaction(test(sql)));
};

const kept = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly statement: string }>`SELECT statement FROM pg_prepared_statements`, (rows) =>
    rows.map(({ statement }) => statement),
  );

const often = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  Effect.all(Array.from({ length: PREPARED_FROM }, () => statement));

const backend = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`, ([row]) => row?.pid ?? 0);

const changed = (sql: SqlClient.SqlClient, columns: string) => sql`ALTER TABLE codes ${sql.literal(columns)}`;

describe("a statement", () => {
  onOneConnection("is kept by its connection once it was used often enough, by its text alone", (sql) =>
    Effect.gen(function* () {
      const sum = (a: number) => sql<{ readonly sum: number }>`SELECT ${a}::int + 10::int AS sum`;
      for (let a = 1; a < PREPARED_FROM; a += 1) yield* sum(a);
      expect(yield* kept(sql)).toEqual([]);
      for (const a of [1, 2, 3]) expect(yield* sum(a)).toEqual([{ sum: a + 10 }]);
      expect(yield* kept(sql)).toEqual(["SELECT $1::int + 10::int AS sum"]);
    }),
  );

  onOneConnection("is planned anew each time on request", (sql) =>
    Effect.gen(function* () {
      yield* often(plannedAnew(sql`SELECT ${1}::int AS one`));
      expect(yield* kept(sql)).toEqual([]);
    }),
  );

  onOneConnection("runs like any other if too many are already kept", (sql) =>
    Effect.gen(function* () {
      for (let text = 0; text < TEXTS_MAX + 10; text += 1) {
        const rows = yield* often(sql`SELECT ${1}::int AS ${sql(`n${text}`)}`);
        expect(rows.at(-1)).toEqual([{ [`n${text}`]: 1 }]);
      }
      expect((yield* kept(sql)).length).toBe(TEXTS_MAX);
    }),
  );
});

describe("a prepared statement", () => {
  live("is prepared again by the connection that replaces its own", (sql) =>
    Effect.gen(function* () {
      const double = (a: number) => sql<{ readonly double: number }>`SELECT ${a}::int * 2 AS double`;
      yield* often(double(1));
      const lost = yield* backend(sql);
      yield* Effect.ignore(sql`SELECT pg_terminate_backend(${lost}, 5000)`);
      const [answer, now, statements] = yield* sql
        .withTransaction(Effect.all([Effect.retry(double(21), { times: 3 }), backend(sql), kept(sql)]))
        .pipe(Effect.retry({ times: 3 }));
      expect(now).not.toBe(lost);
      expect(answer).toEqual([{ double: 42 }]);
      expect(statements).toContain("SELECT $1::int * 2 AS double");
    }),
  );

  live("works on after a change of the columns that it reads", (sql) =>
    Effect.gen(function* () {
      yield* sql`CREATE TABLE codes (code text)`;
      yield* sql`INSERT INTO codes VALUES ('a')`;
      const all = sql`SELECT * FROM codes`;
      yield* often(all);
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
        yield* often(writing);
        yield* changed(sql, "ADD COLUMN note text");
        const error = yield* Effect.flip(writing);
        expect(error.reason._tag).toBe("ConnectionError");
        expect((yield* writing).length).toBe(PREPARED_FROM + 1);
      }),
  );
});
