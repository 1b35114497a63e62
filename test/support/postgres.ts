/** Databases for tests: each its own, copied from a migrated template, dropped when its scope closes. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { inject } from "vitest";
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

/** Every service of the store on a new database, and its client. */
export const testStore = Layer.provideMerge(postgresStore, testDatabase());
