/** The database checks of `platform doctor`. They change nothing. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { loadMigrations, remaining, type Applied } from "./migrate.ts";

export interface DatabaseState {
  /** The server's major version. */
  readonly major: number;
  /** How many migrations the next start of the service would run. */
  readonly pending: number;
  /** Why this version of the service cannot use the database. Null if it can. */
  readonly refusal: string | null;
}

export const examineDatabase = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const [about] = yield* sql<{ readonly version: string; readonly migrated: boolean }>`
    SELECT current_setting('server_version_num') AS version,
      to_regclass('schema_migrations') IS NOT NULL AS migrated`;
  const applied = about?.migrated
    ? yield* sql<Applied>`SELECT name, checksum FROM schema_migrations ORDER BY name COLLATE "C"`
    : [];
  const major = Math.floor(Number(about?.version) / 10_000);
  return yield* remaining(yield* loadMigrations, applied).pipe(
    Effect.map((missing): DatabaseState => ({ major, pending: missing.length, refusal: null })),
    Effect.catch(({ message }) => Effect.succeed<DatabaseState>({ major, pending: 0, refusal: message })),
  );
});
