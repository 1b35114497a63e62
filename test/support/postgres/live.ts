/** Tests over a database, or a store, of their own. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Notifications } from "../../../src/store/postgres/connection/notifications.ts";
import type { Store } from "../../conformance/store/fixture.ts";
import { testDatabase } from "./postgres.ts";

/** Runs a test with a client of an empty database. */
export const live = <E>(
  name: string,
  test: (sql: SqlClient.SqlClient) => Effect.Effect<void, E, SqlClient.SqlClient | Notifications>,
) => {
  it.live(name, () =>
    Effect.provide(Effect.flatMap(SqlClient.SqlClient, test), testDatabase("empty"), { local: true }),
  );
};

/** A check of the store's conformance, each time over a fresh layer. */
export const checkOver =
  <Side>(layer: Layer.Layer<Store | Side, unknown>) =>
  <E>(name: string, test: Effect.Effect<void, E, Store | Side>) => {
    it.live(name, () => Effect.provide(test, Layer.fresh(layer)));
  };
