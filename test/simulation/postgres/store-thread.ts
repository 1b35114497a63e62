/** The thread of the real store (bridge.ts): carries out orders as they come, several at once. */
import { inspect } from "node:util";
import { workerData, type MessagePort } from "node:worker_threads";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { administer, databaseAt, makeTemplate, scopedDatabase } from "../../support/postgres/databases.ts";
import type { Answer, Asked, Order, Outcome } from "./orders.ts";

const { port, signal, url } = workerData as {
  readonly port: MessagePort;
  readonly signal: Int32Array;
  readonly url: string | null;
};

type Services = Context.Context<never>;
type Ordered<Do extends Order["do"]> = Extract<Order, { readonly do: Do }>;

/** How long a connection may take to end that is told to, ms. */
const END_MS = 5_000;
const CONNECTIONS = 6;
/** The owner of calls that do not belong to a node that dies. */
const NO_NODE = "no-node";

const whole = Effect.runSync(Scope.make());
let server: { readonly url: string; readonly template: string } | null = null;
let database: { readonly url: string; readonly scope: Scope.Closeable } | null = null;
const lives = new Map<string, { readonly services: Services; readonly scope: Scope.Closeable }>();
let disconnectIn = Infinity;

const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => guardedDirectory("platform-sim-")),
  ({ remove }) => Effect.sync(remove),
).pipe(Effect.map(({ directory }) => directory));

const started = Effect.gen(function* () {
  if (server !== null) return server;
  const address = url ?? (yield* startEmbedded(yield* temporaryDirectory)).url;
  // Its data does not outlive the run, and a killed server's crash does not affect the machine.
  if (url === null) yield* administer(address, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()");
  server = { url: address, template: yield* makeTemplate(address) };
  return server;
}).pipe(Scope.provide(whole));

const begin = Effect.gen(function* () {
  const { url: address, template } = yield* started;
  for (const life of lives.keys()) forget(life);
  if (database !== null) yield* Scope.close(database.scope, Exit.void);
  disconnectIn = Infinity;
  const scope = yield* Scope.make();
  const name = yield* Scope.provide(scopedDatabase(address, "sim", template), scope);
  database = { url: databaseAt(address, name), scope };
});

const addressOf = (): string => {
  if (database === null) throw new Error("there is no database yet");
  return database.url;
};

/** Its fibers are gone with their process: its end is not waited for. */
const forget = (life: string): void => {
  const known = lives.get(life);
  lives.delete(life);
  if (known !== undefined) Effect.runFork(Scope.close(known.scope, Exit.void));
};

const livingAs = Effect.fnUntraced(function* (life: string) {
  const known = lives.get(life);
  if (known !== undefined) return known.services;
  const scope = yield* Scope.make();
  const client = Client.layer({ url: addressOf(), applicationName: life, maxConnections: CONNECTIONS });
  const services = yield* Layer.buildWithScope(Layer.provideMerge(postgresStore, client), scope);
  lives.set(life, { services: services as Services, scope });
  return services as Services;
});

/** Ends connections of this database: of one application, or of all but the administrator's. */
const terminate = (of: string | null) =>
  administer(
    addressOf(),
    `SELECT pg_terminate_backend(pid, ${END_MS}) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND ${of === null ? `application_name <> '${NO_NODE}'` : `application_name = '${of}'`}`,
  );

const call = Effect.fnUntraced(function* ({ life, service, path, given }: Ordered<"call">) {
  disconnectIn -= 1;
  if (disconnectIn === 0) Effect.runFork(terminate(null));
  const services = yield* livingAs(life ?? NO_NODE);
  let part: unknown = services.mapUnsafe.get(service);
  for (const name of path) part = (part as Readonly<Record<string, unknown>>)[name];
  const effect = given === null ? part : (part as (...of: readonly unknown[]) => unknown)(...given);
  return yield* effect as Effect.Effect<unknown, unknown>;
});

const inDatabase = <A, E>(run: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.flatMap(livingAs(NO_NODE), (services) =>
    Effect.provideContext(run, services as unknown as Context.Context<SqlClient.SqlClient>),
  );

const query = ({ text, values }: Ordered<"query">) =>
  inDatabase(Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(text, [...values])));

const snapshot = ({ texts }: Ordered<"snapshot">) =>
  inDatabase(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`;
          const rows: unknown[] = [];
          for (const text of texts) rows.push(yield* sql.unsafe(text));
          return rows;
        }),
      ),
    ),
  );

/** The simulation kills only its own server. */
const restart = Effect.gen(function* () {
  if (url !== null) return yield* terminate(null);
  const [row] = yield* inDatabase(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) =>
        sql<{ readonly pid: string }>`SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1) AS pid`,
    ),
  );
  const pid = Number(row?.pid);
  // At once, as after a crash: no connection is waited for, and the log is read again at the start.
  process.kill(pid, "SIGQUIT");
  const isBack = administer(addressOf(), "SELECT 1");
  yield* Effect.retry(
    Effect.catchDefect(isBack, (defect) => Effect.fail(defect)),
    { schedule: Schedule.spaced("50 millis"), times: 1_000 },
  );
});

const carriedOut = (order: Order): Effect.Effect<unknown, unknown> => {
  switch (order.do) {
    case "call":
      return call(order);
    case "begin":
      return begin;
    case "kill":
      return Effect.andThen(
        Effect.sync(() => forget(order.life)),
        terminate(order.life),
      );
    case "disconnect":
      return order.after === 0
        ? terminate(null)
        : Effect.sync(() => {
            disconnectIn = order.after;
          });
    case "restart":
      return restart;
    case "query":
      return query(order);
    case "snapshot":
      return snapshot(order);
    case "close":
      return Effect.andThen(
        database === null ? Effect.void : Scope.close(database.scope, Exit.void),
        Scope.close(whole, Exit.void),
      );
  }
};

/** An error as its fields: what it was made of is cloned, what it is is not. The database's own errors have their words and their code. */
const failed = (error: unknown): Outcome => {
  if (isSqlError(error)) {
    const { _tag: reason, message, operation, cause } = error.reason;
    return { is: "failed", tag: error._tag, fields: { reason, message, operation, cause: inspect(cause) } };
  }
  const all = error as Readonly<Record<string, unknown>>;
  const tag = String(all["_tag"]);
  const fields = Object.fromEntries(Object.entries(all).filter(([name]) => name !== "_tag"));
  const told = { operation: fields["operation"], cause: String(all["cause"]) };
  return { is: "failed", tag, fields: tag === "StoreError" ? told : fields };
};

const outcomeOf = async (order: Order): Promise<Outcome> => {
  const exit = await Effect.runPromiseExit(Effect.result(carriedOut(order)));
  if (Exit.isFailure(exit)) return { is: "defect", message: `${order.do}: ${String(exit.cause)}` };
  const result = exit.value;
  return Result.isSuccess(result) ? { is: "done", value: result.success } : failed(result.failure);
};

port.on("message", ({ id, order }: Asked) => {
  void outcomeOf(order).then((outcome) => {
    port.postMessage({ id, outcome } satisfies Answer, []);
    Atomics.add(signal, 0, 1);
    Atomics.notify(signal, 0);
  });
});
