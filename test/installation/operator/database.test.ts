import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { storeOn } from "../../../src/installation/operator/database.ts";
import { testDatabase } from "../../support/postgres/postgres.ts";

it.live("an operator's command refuses a database with another schema than its own", () =>
  Effect.gen(function* () {
    const refusal = Effect.flip(Effect.void.pipe(Effect.provide(storeOn(testDatabase("empty")))));
    expect(yield* refusal).toMatchObject({ code: "migrations_pending" });
    const newer = Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`INSERT INTO schema_migrations (name, checksum) VALUES ('9999_later.sql', 'later')`,
    );
    const database = testDatabase();
    yield* Effect.gen(function* () {
      yield* Effect.void.pipe(Effect.provide(storeOn(database)));
      yield* newer;
      const error = yield* Effect.flip(Effect.void.pipe(Effect.provide(storeOn(database))));
      expect(error).toMatchObject({ code: "schema_unknown" });
    }).pipe(Effect.provide(database));
  }),
);
