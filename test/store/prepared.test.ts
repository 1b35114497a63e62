import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { prepared } from "../../src/store/postgres/connection/prepared.ts";
import { testDatabase } from "../support/postgres/postgres.ts";

/** Each test in one transaction, so that all its statements run on one connection. */
const onOneConnection = <E>(
  name: string,
  test: (sql: SqlClient.SqlClient) => Effect.Effect<void, E, SqlClient.SqlClient>,
) => {
  it.live(name, () =>
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(test(sql))).pipe(
      Effect.provide(testDatabase("empty"), { local: true }),
    ),
  );
};

const kept = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly statement: string }>`SELECT statement FROM pg_prepared_statements`, (rows) =>
    rows.map(({ statement }) => statement),
  );

describe("a statement", () => {
  onOneConnection("is kept by its connection on request, and by its text alone", (sql) =>
    Effect.gen(function* () {
      const sum = (a: number, b: number) =>
        sql<{ readonly sum: number }>`SELECT ${a}::int + ${b}::int AS sum`;
      yield* sum(1, 1);
      expect(yield* kept(sql)).toEqual([]);
      for (const a of [1, 2, 3]) expect(yield* prepared(sum(a, 10))).toEqual([{ sum: a + 10 }]);
      expect(yield* kept(sql)).toEqual(["SELECT $1::int + $2::int AS sum"]);
    }),
  );

  onOneConnection("runs like any other if too many are already kept", (sql) =>
    Effect.gen(function* () {
      for (let text = 0; text < 300; text += 1) {
        expect(yield* prepared(sql`SELECT ${1}::int AS ${sql(`n${text}`)}`)).toEqual([{ [`n${text}`]: 1 }]);
      }
      expect((yield* kept(sql)).length).toBeLessThanOrEqual(200);
    }),
  );
});
