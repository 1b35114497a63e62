/** Databases for tests: each test has its own, copied from a migrated template and dropped when its scope closes. */
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, inject } from "vitest";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { Notifications } from "../../../src/store/postgres/connection/notifications.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import { databaseAt, scopedDatabase } from "./databases.ts";
import { askForPostgres } from "./offer.ts";

/** The run's server. The first test of the run that asks starts it. */
export const runPostgres = Effect.suspend(() => {
  // Vitest knows no address where the run's set-up does not offer one.
  const address: string | undefined = inject("postgres");
  if (address === undefined)
    return Effect.die(new Error("This run has no Postgres (npm run test:fast). Run the file with npm test."));
  return Effect.promise(() => askForPostgres(address));
});

/** The address of a new database. `empty` skips the migrations. */
export const freshDatabase = Effect.fnUntraced(function* (kind: "migrated" | "empty") {
  const { url, template } = yield* runPostgres;
  const name = yield* scopedDatabase(url, "test", kind === "migrated" ? template : undefined);
  return databaseAt(url, name);
});

/** A client of a new database. */
export const testDatabase = (kind: "migrated" | "empty" = "migrated") =>
  Layer.unwrap(Effect.map(freshDatabase(kind), (url) => Client.layer({ url })));

/** Empties every table except the record of migrations, in one round trip. A superuser's session ignores foreign keys. */
const wipe = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* sql.unsafe(`DO $$
    DECLARE name text;
    BEGIN
      PERFORM set_config('session_replication_role', 'replica', true);
      FOR name IN
        SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations'
      LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
    END $$`);
}).pipe(Effect.orDie);

/**
 * Registers a database for the calling test file, and returns a layer of its client. The file's tests share the client: a
 * connection for each test costs the server more than most tests do.
 */
const databaseOfFile = () => {
  const scope = Effect.runSync(Scope.make());
  let client: Context.Context<Layer.Success<ReturnType<typeof Client.layer>>> | null = null;
  beforeAll(async () => {
    const build = Effect.flatMap(freshDatabase("migrated"), (url) => Layer.build(Client.layer({ url })));
    client = await Effect.runPromise(Scope.provide(build, scope));
  });
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));
  return Layer.unwrap(
    Effect.sync(() => {
      if (client === null) throw new Error("the file's database is made before its first test");
      return Layer.succeedContext(client);
    }),
  );
};

const emptied = (client: ReturnType<typeof databaseOfFile>) =>
  Layer.provideMerge(postgresStore, Layer.provideMerge(Layer.effectDiscard(wipe), client));

/**
 * Registers a database for the calling test file. Each build of the layer finds it empty, which is as clean as a new
 * database for each test, and faster.
 */
export const storeOfFile = () => emptied(databaseOfFile());

/** The same for two nodes: the first finds it empty, the second finds the first one's data. */
export const nodesOfFile = () => {
  const client = databaseOfFile();
  return [emptied(client), Layer.provideMerge(postgresStore, client)] as const;
};

/** Completes when this node hears all of its channels: they are listened to one after the other, on one connection. */
export const listening = Effect.gen(function* () {
  const { listen } = yield* Notifications;
  // The fibers of the node's layers begin first.
  yield* Effect.yieldNow;
  const isBegun = yield* Deferred.make<void>();
  const last = listen("test_last", () => Deferred.doneUnsafe(isBegun, Effect.void));
  yield* Effect.raceFirst(last, Deferred.await(isBegun));
});

/** Completes when a statement in this database waits for another one's lock. */
export const someoneWaits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  yield* Effect.repeat(
    sql<{ readonly waiting: boolean }>`
      SELECT EXISTS (
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
      ) AS waiting`,
    { until: ([row]) => row?.waiting === true, schedule: Schedule.spaced("10 millis") },
  );
});
