/** Databases for tests: each its own, copied from a migrated template, dropped when its scope closes. */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, inject } from "vitest";
import * as Client from "../../src/store/postgres/client.ts";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { databaseAt, scopedDatabase } from "./postgres-databases.ts";

/** The address of a new database; `empty` leaves out the migrations. */
export const freshDatabase = Effect.fnUntraced(function* (kind: "migrated" | "empty") {
  const { url, template } = inject("postgres");
  const name = yield* scopedDatabase(url, "test", kind === "migrated" ? template : undefined);
  return databaseAt(url, name);
});

/** A client of a new database. */
export const testDatabase = (kind: "migrated" | "empty" = "migrated") =>
  Layer.unwrap(Effect.map(freshDatabase(kind), (url) => Client.layer({ url })));

/** Empties every table but the record of migrations; a superuser's session passes over foreign keys. */
const wipe = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const tables = yield* sql<{ readonly name: string }>`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations'`;
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SET LOCAL session_replication_role = replica`;
      for (const { name } of tables) yield* sql`DELETE FROM ${sql(name)}`;
    }),
  );
}).pipe(Effect.orDie);

/**
 * Registers a database for the test file it is called in. Each building of the layer finds it empty: quicker than a new
 * database a test, and as clean.
 */
export const storeOfFile = () => {
  const scope = Effect.runSync(Scope.make());
  let url: string | null = null;
  beforeAll(async () => {
    url = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope));
  });
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
  const client = Layer.unwrap(
    Effect.sync(() => {
      if (url === null) throw new Error("the file's database is made before its first test");
      return Client.layer({ url });
    }),
  );
  return Layer.provideMerge(postgresStore, Layer.provideMerge(Layer.effectDiscard(wipe), client));
};
