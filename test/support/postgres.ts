/** Databases for tests: each its own, copied from a migrated template, dropped when its scope closes. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { inject } from "vitest";
import * as Client from "../../src/store/postgres/client.ts";
import { postgresStore } from "../../src/store/postgres/layer.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";

/** Runs statements on the server's own database with a connection that is closed again. */
const administer = (url: string, ...statements: readonly string[]) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    for (const statement of statements) yield* sql.unsafe(statement);
  }).pipe(Effect.provide(Client.layer({ url, maxConnections: 1 })), Effect.orDie);

const databaseAt = (url: string, database: string): string => {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
};

const uniqueName = (prefix: string): string => `${prefix}_${randomUUID().replaceAll("-", "")}`;

const scopedDatabase = (url: string, prefix: string, template?: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const name = uniqueName(prefix);
      const from = template === undefined ? "" : ` TEMPLATE ${template}`;
      yield* administer(url, `CREATE DATABASE ${name}${from}`);
      return name;
    }),
    (name) => administer(url, `DROP DATABASE ${name} WITH (FORCE)`),
  );

/** A migrated database that others are copied from. */
export const makeTemplate = Effect.fnUntraced(function* (url: string) {
  const name = yield* scopedDatabase(url, "template");
  yield* Effect.orDie(
    Effect.provide(migrate, Client.layer({ url: databaseAt(url, name), maxConnections: 1 })),
  );
  return name;
});

/** The address of a new database; `empty` leaves out the migrations. */
export const freshDatabase = Effect.fnUntraced(function* (kind: "migrated" | "empty") {
  const { url, template } = inject("postgres");
  const name = yield* scopedDatabase(url, "test", kind === "migrated" ? template : undefined);
  return databaseAt(url, name);
});

/** A client of a new database. */
export const testDatabase = (kind: "migrated" | "empty" = "migrated") =>
  Layer.unwrap(Effect.map(freshDatabase(kind), (url) => Client.layer({ url })));

/** Every service of the store on a new database, and its client. */
export const testStore = Layer.provideMerge(postgresStore, testDatabase());
