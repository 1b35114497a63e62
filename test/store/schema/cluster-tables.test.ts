/** The cluster's tables are of our migrations: what its library would make itself, in our words (migrations/0001_baseline.sql). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { SqlRunnerStorage } from "effect/cluster";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { testDatabase } from "../../support/postgres/postgres.ts";

/** Text is no longer than the library's bounds, and an instant has its zone: the library notices neither. */
const AS_OURS: Readonly<Record<string, string>> = {
  "character varying": "text",
  "timestamp without time zone": "timestamp with time zone",
};

const columns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const rows = yield* sql<{ readonly name: string; readonly type: string; readonly nullable: string }>`
    SELECT table_name || '.' || column_name AS name, data_type AS type, is_nullable AS nullable
    FROM information_schema.columns WHERE table_name IN ('cluster_runners', 'cluster_locks') ORDER BY name`;
  return rows.map(({ name, type, nullable }) => ({ name, type: AS_OURS[type] ?? type, nullable }));
});
const keys = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly name: string }>`
    SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) AS name FROM pg_constraint
    WHERE conrelid::regclass::text IN ('cluster_runners', 'cluster_locks') AND contype IN ('p', 'u') ORDER BY name`,
);
const shape = Effect.all({ columns, keys });

it.live("are those that its library would create", () =>
  Effect.gen(function* () {
    const ours = yield* Effect.provide(Effect.andThen(migrate, shape), testDatabase("empty"));
    const theirs = yield* Effect.provide(
      shape,
      Layer.provideMerge(SqlRunnerStorage.layerMigrations({}), testDatabase("empty")),
    );
    expect(theirs.columns).toHaveLength(8);
    expect(ours).toEqual(theirs);
  }),
);
