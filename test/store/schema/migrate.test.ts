import { readFileSync } from "node:fs";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import {
  type Applied,
  loadMigrations,
  migrate,
  remaining,
  runMigrations,
} from "../../../src/store/postgres/migrate.ts";
import { testDatabase } from "../../support/postgres/postgres.ts";
import { dumpSchema } from "../../support/postgres/schema-dump.ts";

const onEmptyDatabase = <E>(name: string, test: Effect.Effect<void, E, SqlClient.SqlClient>) => {
  it.live(name, () => Effect.provide(test, testDatabase("empty"), { local: true }));
};

const migration = (name: string, sql: string) => ({ name, sql, checksum: `checksum of ${sql}` });
const one = migration("0001_one.sql", "CREATE TABLE one (a integer)");
const two = migration("0002_two.sql", "CREATE TABLE two (a integer)");

describe("migrations", () => {
  onEmptyDatabase(
    "turn an empty database into schema.sql",
    Effect.gen(function* () {
      yield* migrate;
      const schema = yield* dumpSchema;
      // After a new migration: `vitest run test/store/migrate -u` writes the file again.
      yield* Effect.promise(() => expect(schema).toMatchFileSnapshot("../../../migrations/schema.sql"));
    }),
  );

  onEmptyDatabase(
    "run once, also when two services start at the same time",
    Effect.gen(function* () {
      const names = (yield* loadMigrations).map(({ name }) => name);
      const runs = yield* Effect.all([migrate, migrate], { concurrency: "unbounded" });
      expect(runs.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([0, names.length]);
      expect(runs.flat()).toEqual(names);
      expect(yield* migrate).toEqual([]);
    }),
  );

  onEmptyDatabase(
    "continue from the database's version",
    Effect.gen(function* () {
      expect(yield* runMigrations([one])).toEqual(["0001_one.sql"]);
      expect(yield* runMigrations([one, two])).toEqual(["0002_two.sql"]);
    }),
  );

  onEmptyDatabase(
    "run one that was added after one with a higher number",
    Effect.gen(function* () {
      const three = migration("0003_three.sql", "CREATE TABLE three (id integer)");
      yield* runMigrations([one, three]);
      expect(yield* runMigrations([one, two, three])).toEqual(["0002_two.sql"]);
      expect(yield* runMigrations([one, two, three])).toEqual([]);
    }),
  );

  onEmptyDatabase(
    "leave a database alone that a newer version has used",
    Effect.gen(function* () {
      yield* runMigrations([one, two]);
      const error = yield* Effect.flip(runMigrations([one]));
      expect(error.message).toMatch(/has the migration 0002_two\.sql.*newer version/s);
    }),
  );

  onEmptyDatabase(
    "refuse a file that was edited after it ran, and one that was inserted before a later one",
    Effect.gen(function* () {
      yield* runMigrations([two]);
      const edited = { ...two, checksum: "another" };
      expect((yield* Effect.flip(runMigrations([edited]))).message).toMatch(/0002_two\.sql was changed/);
      expect((yield* Effect.flip(runMigrations([one, two]))).message).toMatch(
        /has a later migration but not 0001_one\.sql/,
      );
    }),
  );

  onEmptyDatabase(
    "leave no changes of a run in which one fails",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* Effect.flip(runMigrations([one, migration("0002_bad.sql", "CREATE TABLE two (a nonsense)")]));
      expect(yield* sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`).toEqual([]);
    }),
  );
});

const id = (digits: number) => `00000000-0000-7000-8000-${String(digits).padStart(12, "0")}`;

describe("the migration to unique names", () => {
  onEmptyDatabase(
    "gives a number to each later project of an account with the same name, and to no other",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const known = yield* loadMigrations;
      yield* runMigrations(known.filter(({ name }) => name < "0012"));
      for (const account of [1, 2]) {
        yield* sql`
          INSERT INTO accounts (id, name, tier, session_cap, created_at) VALUES (${id(account)}, 'a', 'free', 1, now())`;
        yield* sql`
          INSERT INTO users (id, account_id, name, created_at, role)
          VALUES (${id(account)}, ${id(account)}, 'p', now(), 'owner')`;
      }
      const rows: readonly (readonly [account: number, name: string])[] = [
        [1, "shop"],
        [1, "Shop"],
        [1, "shop (2)"],
        [1, "SHOP "],
        [1, "other"],
        [2, "shop"],
      ];
      for (const [at, [account, name]] of rows.entries())
        yield* sql`
          INSERT INTO projects (id, account_id, name, repository, default_branch, created_by, created_at, updated_at, merge_role)
          VALUES (${id(10 + at)}, ${id(account)}, ${name}, '{"kind": "hosted"}', 'main', ${id(account)},
            to_timestamp(${at}::integer), now(), 'member')`;
      yield* migrate;
      const named = yield* sql<{ readonly name: string }>`SELECT name FROM projects ORDER BY created_at`;
      expect(named.map(({ name }) => name)).toEqual([
        "shop",
        "Shop (2)",
        "shop (2) (2)",
        "SHOP (3)",
        "other",
        "shop",
      ]);
    }),
  );
});

/** The record of a database at the last version before the baseline: a line `<name> <checksum>` for each migration. */
const FORMER: readonly Applied[] = readFileSync(new URL("former-migrations.txt", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => {
    const [name = "", checksum = ""] = line.split(" ");
    return { name, checksum };
  });

describe("the baseline", () => {
  onEmptyDatabase(
    "stands for all migrations before it: their record becomes its own, also when two services start at the same time",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const known = yield* loadMigrations;
      yield* runMigrations(known.slice(0, 1));
      yield* sql`INSERT INTO settings (key, value) VALUES ('kept', 'x')`;
      yield* sql`DELETE FROM schema_migrations`;
      for (const { name, checksum } of FORMER)
        yield* sql`INSERT INTO schema_migrations (name, checksum) VALUES (${name}, ${checksum})`;
      const ran = yield* Effect.all([migrate, migrate], { concurrency: "unbounded" });
      expect(ran.flat()).toEqual(known.slice(1).map(({ name }) => name));
      expect(yield* sql`SELECT name, checksum FROM schema_migrations ORDER BY name`).toEqual(
        known.map(({ name, checksum }) => ({ name, checksum })),
      );
      expect(yield* sql`SELECT key FROM settings`).toEqual([{ key: "kept" }]);
    }),
  );

  it.effect("lets later migrations run on a database of the version before it", () =>
    Effect.gen(function* () {
      const known = [...(yield* loadMigrations).slice(0, 1), two];
      expect(yield* remaining(known, FORMER)).toEqual([two]);
      const newer = [...FORMER, { name: "9999_later.sql", checksum: "later" }];
      expect((yield* Effect.flip(remaining(known, newer))).message).toMatch(
        /9999_later\.sql.*newer version/s,
      );
    }),
  );

  it.effect("refuses an older record, and names the commit that upgrades it", () =>
    Effect.gen(function* () {
      const known = yield* loadMigrations;
      const edited = FORMER.with(20, { name: FORMER[20]?.name ?? "", checksum: "another" });
      for (const older of [FORMER.slice(0, 1), FORMER.slice(0, -1), edited])
        expect((yield* Effect.flip(remaining(known, older))).message).toBe(
          `The database cannot be used: its last migration, ${older.at(-1)?.name}, is older than any that this version of ` +
            "the service upgrades from. Check out commit 29d71ab72e59 of the service, start it once, stop it, then start this version.",
        );
    }),
  );
});

describe("a dump that was loaded into another server", () => {
  onEmptyDatabase(
    "loses the events that lie in that server's future",
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* migrate;
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SET LOCAL session_replication_role = replica`;
          yield* sql`
            INSERT INTO events (tx, project_id, type, at, data)
            VALUES ('9000000000', gen_random_uuid(), 'x', now(), '{}'), ('3', gen_random_uuid(), 'y', now(), '{}')`;
        }),
      );
      yield* migrate;
      expect(yield* sql`SELECT type FROM events`).toEqual([{ type: "y" }]);
    }),
  );
});
