/** A backup meets a schema that is older than the program. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { expect } from "vitest";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { fillTables, openSnapshot } from "../../../src/store/postgres/rows.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";

const query = (url: string, statement: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(statement)).pipe(
    Effect.provide(Client.layer({ url, maxConnections: 1 }), { local: true }),
  );

it.live("a schema without the tables that a later version leaves out is read and filled", () =>
  Effect.gen(function* () {
    const url = yield* freshDatabase("migrated");
    yield* query(url, "DROP TABLE warm_sandboxes, event_horizons");
    yield* query(url, "INSERT INTO settings (key, value) VALUES ('former', 'x')");
    const { tables } = yield* Effect.scoped(openSnapshot(url));
    expect(tables).toContain("settings");
    yield* fillTables(url, async ({ add }) => {
      await add("settings", ["(restored,y)"]);
      // From before this version left the table out.
      await add("events", ["(a row of an older version)"]);
    });
    expect(yield* query(url, "SELECT key FROM settings")).toEqual([{ key: "restored" }]);
  }).pipe(Effect.scoped),
);
