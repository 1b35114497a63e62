/**
 * Migrates a database to this program's schema: the files of migrations/, in order, forward only.
 *
 *  M1 One program migrates at a time, under an advisory lock that ends with the connection that holds it.
 *  M2 A migration and its record are one transaction, so none is half done.
 *  M3 A migration that ran is never edited (its checksum is recorded). A database that is newer than the program is
 *     left unchanged, because an older program would misread it. A migration that was added after one with a higher number
 *     runs where it is missing.
 *  M4 The first migration, the baseline, stands for the 53 before it. A record of all 53 counts as one of the baseline,
 *     and the next run writes it so. A shorter one is refused with the commit that upgrades it.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { asOneStatement } from "./connection/script.ts";

/** The database cannot be migrated to this program's schema. `message` says what to do. */
export class MigrationRefused extends Schema.TaggedError<MigrationRefused>()("MigrationRefused", {
  message: Schema.String,
}) {}

export interface Migration {
  /** The file's name, e.g. `0001_baseline.sql`. */
  readonly name: string;
  readonly sql: string;
  /** Hex SHA-256 of the text. */
  readonly checksum: string;
}

/** Where the program's migrations are, with a slash at the end. */
export const MigrationDirectory = Context.Reference<URL>("platform/store/MigrationDirectory", {
  defaultValue: () => new URL("../../../migrations/", import.meta.url),
});
const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/;
/** Any number that nothing else locks in this database. */
const ADVISORY_LOCK = 7_120_315_001;

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The program's migrations in order. */
export const loadMigrations: Effect.Effect<readonly Migration[]> = Effect.flatMap(
  MigrationDirectory,
  (directory) =>
    Effect.promise(async () => {
      const names = (await readdir(directory)).filter((name) => FILE_NAME.test(name)).toSorted();
      return Promise.all(
        names.map(async (name) => {
          const sql = await readFile(new URL(name, directory), "utf8");
          return { name, sql, checksum: sha256(sql) };
        }),
      );
    }),
);

export interface Applied {
  readonly name: string;
  readonly checksum: string;
}

/** The 53 migrations before the baseline (M4). The digest is of a line `<name> <checksum>` for each. */
const FORMER = {
  first: "0001_accounts.sql",
  count: 53,
  digest: "c143bee3f7890b4fd4debaac32bd75ddb3f00dfcae62b0c607a94ce4ed2e9748",
} as const;
/** The last commit that has them. */
const LAST_FORMER_COMMIT = "29d71ab72e59";

/**
 * A record of migrations in the order of their names, with the baseline in place of the 53 before it (M4).
 *
 * @returns null for a record of fewer than the 53
 */
export const sinceBaseline = (
  migrations: readonly Migration[],
  records: readonly Applied[],
): readonly Applied[] | null => {
  if (records[0]?.name !== FORMER.first) return records;
  const lines = records.slice(0, FORMER.count).map(({ name, checksum }) => `${name} ${checksum}\n`);
  return sha256(lines.join("")) === FORMER.digest
    ? [...migrations.slice(0, 1), ...records.slice(FORMER.count)]
    : null;
};

/** Why a record of fewer than the 53 is refused. @param remedy what to do at the commit that still has them */
export const tooOld = (records: readonly Applied[], remedy: string): string =>
  `its last migration, ${records.at(-1)?.name ?? "none"}, is older than any that this version of the service ` +
  `upgrades from. Check out commit ${LAST_FORMER_COMMIT} of the service, ${remedy}`;

/** The migrations still to run, or the reason why none may run. */
export const remaining = (
  migrations: readonly Migration[],
  records: readonly Applied[],
): Effect.Effect<readonly Migration[], MigrationRefused> =>
  Effect.gen(function* () {
    const history = sinceBaseline(migrations, records);
    if (history === null) {
      return yield* new MigrationRefused({
        message: `The database cannot be used: ${tooOld(records, "start it once, stop it, then start this version.")}`,
      });
    }
    const unknown = history.find(({ name }) => !migrations.some((migration) => migration.name === name));
    if (unknown !== undefined) {
      return yield* new MigrationRefused({
        message:
          `The database has the migration ${unknown.name}, which this version of the service does not have: ` +
          "a newer version has used the database. Start that version, or restore an older backup.",
      });
    }
    const checksums = new Map(history.map(({ name, checksum }) => [name, checksum]));
    const editedMigration = migrations.find(
      ({ name, checksum }) => checksums.has(name) && checksums.get(name) !== checksum,
    );
    if (editedMigration !== undefined) {
      return yield* new MigrationRefused({
        message: `Migration ${editedMigration.name} was changed after it ran on this database. Restore the file as it was.`,
      });
    }
    const [first] = migrations;
    if (first !== undefined && history.length > 0 && !checksums.has(first.name)) {
      return yield* new MigrationRefused({
        message: `The database has a later migration but not ${first.name}, so its history does not fit this program.`,
      });
    }
    return migrations.filter(({ name }) => !checksums.has(name));
  });

/**
 * Runs the migrations of `known` that are missing, in order.
 *
 * @returns the names of the migrations that ran now.
 */
export const runMigrations = Effect.fn("store.migrate")(function* (migrations: readonly Migration[]) {
  const sql = yield* SqlClient.SqlClient;
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      // Held to the end of the transaction. A program that waits here finds everything done.
      yield* sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`;
      yield* sql`
        CREATE TABLE IF NOT EXISTS schema_migrations (
          name text NOT NULL CONSTRAINT schema_migrations_pkey PRIMARY KEY,
          checksum text NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now()
        )`;
      const records =
        yield* sql<Applied>`SELECT name, checksum FROM schema_migrations ORDER BY name COLLATE "C"`;
      const missing = yield* remaining(migrations, records);
      const note = ({ name, checksum }: Migration) =>
        sql`INSERT INTO schema_migrations (name, checksum) VALUES (${name}, ${checksum})`;
      if (records[0]?.name === FORMER.first) {
        // Not refused, so all 53 ran.
        yield* sql`DELETE FROM schema_migrations`;
        for (const baseline of migrations.slice(0, 1)) yield* note(baseline);
      }
      for (const migration of missing) {
        yield* sql.unsafe(asOneStatement(migration.sql));
        yield* note(migration);
      }
      return missing.map(({ name }) => name);
    }),
  );
});

/**
 * After a dump is loaded into another server, events may have transaction ids in that server's future. Readers would
 * not see them.
 */
const removeFutureEvents = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`DELETE FROM events WHERE tx >= pg_snapshot_xmax(pg_current_snapshot())`,
);

/** Migrates the database to this program's schema. Run it at every start, before anything else uses the database. */
export const migrate: Effect.Effect<readonly string[], MigrationRefused | SqlError, SqlClient.SqlClient> =
  Effect.tap(Effect.flatMap(loadMigrations, runMigrations), () => removeFutureEvents);
