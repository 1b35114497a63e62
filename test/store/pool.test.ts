import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import * as Client from "../../src/store/postgres/connection/client.ts";
import { freshDatabase } from "../support/postgres/postgres.ts";

describe("a connection without use", () => {
  it.live("is closed after its time, so that others get its place at the server", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase("empty");
      const watcher = yield* Layer.build(Client.layer({ url, applicationName: "watcher" }));
      const short = yield* Layer.build(Client.layer({ url, idleTimeoutMs: 100, applicationName: "idle" }));
      const open = Effect.map(
        Effect.provideContext(
          Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`SELECT pid FROM pg_stat_activity WHERE application_name = 'idle'`,
          ),
          watcher,
        ),
        (rows) => rows.length,
      );
      const sql = Context.get(short, SqlClient.SqlClient);
      yield* Effect.all([sql`SELECT pg_sleep(0.01)`, sql`SELECT pg_sleep(0.01)`], { concurrency: 2 });
      yield* Effect.repeat(open, {
        until: (count) => count === 0,
        schedule: Schedule.spaced("20 millis"),
      });
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    }).pipe(Effect.scoped),
  );
});
