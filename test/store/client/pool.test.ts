import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { Notifications } from "../../../src/store/postgres/connection/notifications.ts";
import { onSharedConnection } from "../../../src/store/postgres/connection/prepared.ts";
import { DatabasePulse } from "../../../src/store/postgres/connection/pulse.ts";
import { freshDatabase, testDatabase } from "../../support/postgres/postgres.ts";

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

describe("a server that becomes read-only", () => {
  it.live(
    "loses all connections to it, those at rest and the listening one too, and is not well until it writes",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        const backend = Effect.map(
          sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`,
          ([row]) => row?.pid,
        );
        const two = Effect.all([backend, backend], { concurrency: 2 });
        const pulse = yield* DatabasePulse;
        const { listen } = yield* Notifications;
        const begun = yield* Deferred.make<void>();
        const listening = yield* Effect.forkChild(
          listen("eras", () => Deferred.doneUnsafe(begun, Effect.void)),
        );
        yield* Deferred.await(begun);
        const reader = yield* onSharedConnection(backend);
        const before = new Set(yield* two);
        yield* sql`CREATE TABLE codes (code text)`;
        pulse.beat();
        const refused = sql`INSERT INTO codes VALUES ('a')`;
        const error = yield* Effect.flip(
          sql.withTransaction(Effect.andThen(sql`SET TRANSACTION READ ONLY`, refused)),
        );
        expect(error._tag === "SqlError" && error.reason._tag).toBe("ConnectionError");
        expect(pulse.writes).toBe(false);
        expect((yield* Effect.flip(Fiber.join(listening)))._tag).toBe("SqlError");
        const after = yield* two;
        expect(after.filter((pid) => before.has(pid))).toEqual([]);
        expect(yield* onSharedConnection(backend)).not.toBe(reader);
        yield* refused;
        pulse.beat();
        expect(pulse.writes).toBe(true);
      }).pipe(Effect.provide(testDatabase("empty"), { local: true })),
  );
});
