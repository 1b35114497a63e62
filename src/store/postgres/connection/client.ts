/**
 * effect/sql's SqlClient over `pg` and `pg-cursor`. It replaces @effect/sql-pg, which cannot be installed beside effect
 * 4.1 (docs/decisions/0038). Its surface is `layer`, so that the package can replace this file
 * later.
 *
 *  C1 A leased connection runs one statement at a time: concurrent fibers of one transaction wait for each other.
 *  C2 A connection that failed is never lent again, and its transaction needs no rollback: the server did it.
 *  C3 A statement is not abandoned half-way: an interrupt waits for its answer, which `statementTimeoutMs` bounds.
 *  C4 A prepared statement that a change of the schema made stale is run once more, unprepared. In a transaction, which
 *     the server has ended by then, it fails like a lost connection, so that its caller tries again. Its connection
 *     is not lent again.
 */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Reactivity from "effect/reactivity/Reactivity";
import * as Semaphore from "effect/Semaphore";
import * as SqlClient from "effect/sql/SqlClient";
import type { Connection } from "effect/sql/SqlConnection";
import type { SqlError } from "effect/sql/SqlError";
import * as Statement from "effect/sql/Statement";
import * as Stream from "effect/Stream";
import * as pg from "pg";
import Cursor from "pg-cursor";
import { Measures } from "../../../telemetry/port.ts";
import {
  answerTimeoutMs,
  connectionSettings,
  DEFAULTS,
  patientClient,
  type PostgresOptions,
} from "./connection.ts";
import { isAborted, isStale, sqlErrorOf } from "./errors.ts";
import * as Notifications from "./notifications.ts";
import { Line, patiently } from "./patience.ts";
import { Prepared, Texts } from "./prepared.ts";

/** A connection that is unused for this long is closed. */
const IDLE_TIMEOUT_MS = 30_000;
/** How many rows a stream requests from the server at a time. */
const CURSOR_ROWS = 128;

/** The error that ended each broken connection. */
type Broken = WeakMap<pg.PoolClient, Error>;

/** The state that the connections of one pool share. */
interface Lending {
  readonly broken: Broken;
  /** How long a connection waits for an answer, ms. */
  readonly answerMs: number;
  readonly texts: Texts;
}

type Run = (config: pg.QueryConfig | pg.QueryArrayConfig) => Effect.Effect<pg.QueryResult, SqlError>;

/** Uninterruptible (C3): the client is returned only after the server's answer. */
const runOn =
  (client: pg.PoolClient, { broken, answerMs }: Lending): Run =>
  (config) =>
    Effect.uninterruptible(
      Effect.callback<pg.QueryResult, SqlError>((resume) => {
        const answered = patiently(answerMs, () => {
          const cause = new Error(`the database did not respond within ${answerMs} ms`);
          broken.set(client, cause);
          resume(Effect.fail(sqlErrorOf(cause, "execute")));
        });
        // pg throws at once if the connection is closed already.
        try {
          client.query(config, (cause: Error | null, result: pg.QueryResult) => {
            answered();
            if (cause === null || cause === undefined) return resume(Effect.succeed(result));
            const error = sqlErrorOf(cause, "execute");
            if (error.reason._tag === "ConnectionError") broken.set(client, cause);
            resume(Effect.fail(error));
          });
        } catch (cause) {
          answered();
          broken.set(client, cause instanceof Error ? cause : new Error(String(cause)));
          resume(Effect.fail(sqlErrorOf(cause, "execute")));
        }
      }),
    );

const connectionOn = (client: pg.PoolClient, lending: Lending): Connection => {
  const oneAtATime = Semaphore.makeUnsafe(1);
  const run = runOn(client, lending);
  const query: Run = (config) => oneAtATime.withPermit(run(config));
  const unprepared: Connection["execute"] = (text, values, transformRows) =>
    Effect.map(query({ text, values: [...values] }), (result) =>
      transformRows === undefined ? result.rows : transformRows(result.rows),
    );
  const rows: Connection["execute"] = (text, values, transformRows) =>
    Effect.flatMap(Prepared, (isKept) => {
      const name = isKept ? lending.texts.nameOf(text) : null;
      if (name === null) return unprepared(text, values, transformRows);
      return query({ name, text, values: [...values] }).pipe(
        Effect.map(({ rows: found }) => (transformRows === undefined ? found : transformRows(found))),
        Effect.catchIf(isStale, (stale) =>
          Effect.mapError(unprepared(text, values, transformRows), (again) =>
            isAborted(again) ? stale : again,
          ),
        ),
      );
    });
  const arrays: Connection["executeValues"] = (text, values) =>
    Effect.map(query({ text, values: [...values], rowMode: "array" }), (result) => result.rows);
  return {
    execute: rows,
    executeUnprepared: unprepared,
    executeRaw: (text, values) => query({ text, values: [...values] }),
    executeValues: arrays,
    executeValuesUnprepared: arrays,
    executeStream: (text, values, transformRows) =>
      Stream.unwrap(
        Effect.gen(function* () {
          yield* Effect.acquireRelease(oneAtATime.take(1), () => oneAtATime.release(1));
          const cursor = yield* Effect.acquireRelease(
            Effect.sync(() => client.query(new Cursor(text, [...values]))),
            (open) => Effect.ignore(Effect.tryPromise(() => open.close())),
          );
          const portion = Effect.tryPromise({
            try: () => cursor.read(CURSOR_ROWS),
            catch: (cause) => sqlErrorOf(cause, "stream"),
          });
          return Stream.fromPull(
            Effect.succeed(
              Effect.flatMap(portion, (read) => {
                const [first, ...others] = transformRows === undefined ? read : transformRows(read);
                return first === undefined ? Cause.done() : Effect.succeed([first, ...others] as const);
              }),
            ),
          );
        }),
      ),
  };
};

/**
 * The pool as effect/sql needs it: lent for one statement, or leased into a scope.
 *
 * @param line the queue for connections. It replaces the pool's own, which uses the clock alone (patience.ts).
 */
const leasing = (pool: pg.Pool, line: Line, answerMs: number) => {
  const broken: Broken = new WeakMap();
  const clients = new WeakMap<Connection, pg.PoolClient>();
  const connections = new WeakMap<pg.PoolClient, Connection>();
  const lending: Lending = { broken, answerMs, texts: new Texts() };
  // Without a listener, a session that the server ends would end the process. The listener is added at once: the end
  // may arrive together with the previous answer, when the pool has released the client and no caller holds it yet.
  pool.on("connect", (client) => client.on("error", (error) => broken.set(client, error)));
  const connectionOf = (client: pg.PoolClient): Connection => {
    const known = connections.get(client);
    if (known !== undefined) return known;
    const connection = connectionOn(client, lending);
    connections.set(client, connection);
    clients.set(connection, client);
    return connection;
  };
  const take = Effect.tryPromise({
    try: async () => {
      await line.enter();
      try {
        return await pool.connect();
      } catch (error) {
        line.leave();
        throw error;
      }
    },
    catch: (cause) => sqlErrorOf(cause, "connect"),
  });
  const giveBack = (client: pg.PoolClient) =>
    Effect.sync(() => {
      client.release(broken.get(client));
      line.leave();
    });
  return {
    lent: Effect.map(Effect.acquireRelease(take, giveBack), connectionOf),
    borrowed: <A, E, R>(use: (connection: Connection) => Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(take, (client) => use(connectionOf(client)), giveBack),
    isUsable: (connection: Connection) => {
      const client = clients.get(connection);
      return client !== undefined && !broken.has(client);
    },
  };
};

const compiler = Statement.makeCompiler({
  dialect: "pg",
  placeholder: (index) => `$${index}`,
  onIdentifier: Statement.defaultEscape('"'),
  onRecordUpdate: (...[placeholders, alias, columns, values, returning]) => [
    `(values ${placeholders}) AS ${alias}${columns}${returning === undefined ? "" : ` RETURNING ${returning[0]}`}`,
    returning === undefined ? values.flat() : [...values.flat(), ...returning[1]],
  ],
  // No custom segments: JSON and arrays are passed as parameters with a cast.
  onCustom: () => ["", []],
});

const make = Effect.fnUntraced(function* (options: PostgresOptions) {
  const max = options.maxConnections ?? DEFAULTS.maxConnections;
  const measures = yield* Measures;
  const line = new Line(max, {
    ms: options.connectTimeoutMs ?? DEFAULTS.connectTimeoutMs,
    changed: (waiting) => measures.set("database_waiting", {}, waiting),
  });
  measures.set("database_waiting", {}, 0);
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const opened = new pg.Pool({
        ...connectionSettings(options),
        max,
        Client: patientClient(options),
        idleTimeoutMillis: IDLE_TIMEOUT_MS,
      });
      // The pool drops an idle connection that dies. The next caller gets a new one.
      opened.on("error", () => undefined);
      return opened;
    }),
    (opened) => Effect.promise(() => opened.end()),
  );
  const { lent, borrowed, isUsable } = leasing(pool, line, answerTimeoutMs(options));
  return yield* SqlClient.make({
    acquirer: lent,
    borrower: borrowed,
    transactionAcquirer: lent,
    compiler,
    driver: "pg",
    spanAttributes: [["db.system.name", "postgresql"]],
    isTransaction: isUsable,
  });
});

/**
 * A pooled client, and a listener for its notifications. Both connect on first use. If sessions are killed or the
 * server restarts, the statements under way fail with a `ConnectionError`. Later ones work again.
 */
export const layer = (
  options: PostgresOptions,
): Layer.Layer<SqlClient.SqlClient | Notifications.Notifications> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(
    Layer.provide(Reactivity.layer),
    Layer.merge(Notifications.layer(options)),
  );
