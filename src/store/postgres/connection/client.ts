/**
 * effect/sql's SqlClient over connections of @effect/sql-pg. The invariants are in pool.ts.
 */
import type { PgConnection, Result } from "@effect/sql-pg/PgConnection";
import * as PgClient from "@effect/sql-pg/PgClient";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Reactivity from "effect/reactivity/Reactivity";
import * as SqlClient from "effect/sql/SqlClient";
import type { Connection } from "effect/sql/SqlConnection";
import { SqlError, UnknownError } from "effect/sql/SqlError";
import * as Stream from "effect/Stream";
import { Measures } from "../../../telemetry/port.ts";
import type { PostgresOptions } from "./connection.ts";
import { isLost, namedSqlError } from "./errors.ts";
import * as Notifications from "./notifications.ts";
import { makePool, makeShared, type Lender, type Lent } from "./pool.ts";
import { Prepared, Shared } from "./prepared.ts";
import * as Pulse from "./pulse.ts";
import { parameter } from "./values.ts";

/** A connection of sql-pg as effect/sql needs it. */
class Statements implements Connection {
  readonly lent: Lent;
  readonly #connection: PgConnection;

  constructor(lent: Lent) {
    this.lent = lent;
    this.#connection = lent.connection;
  }

  #send(text: string, values: readonly unknown[], isPrepared: boolean): Effect.Effect<Result, SqlError> {
    return this.lent.run(this.#connection.query(text, values.map(parameter), isPrepared));
  }

  execute(...[text, values, transform]: Parameters<Connection["execute"]>) {
    return Effect.flatMap(Prepared, (isPrepared) => {
      const rows = Effect.map(this.#send(text, values, isPrepared), (result) =>
        transform === undefined ? result.rows : transform(result.rows),
      );
      // The end of the connection was the rollback (pool.ts C2).
      return text.startsWith("ROLLBACK") ? Effect.catchIf(rows, isLost, () => Effect.succeed([])) : rows;
    });
  }

  executeUnprepared(...of: Parameters<Connection["execute"]>) {
    return Effect.provideService(this.execute(...of), Prepared, false);
  }

  executeRaw(text: string, values: readonly unknown[]) {
    return this.#send(text, values, true);
  }

  executeValues(text: string, values: readonly unknown[]) {
    return this.lent.run(this.#connection.queryValues(text, values.map(parameter)));
  }

  executeValuesUnprepared(text: string, values: readonly unknown[]) {
    return this.lent.run(this.#connection.queryValues(text, values.map(parameter), false));
  }

  executeStream(...[text, values, transform]: Parameters<Connection["executeStream"]>) {
    const rows = Stream.suspend(() => {
      // A reader that stops early cancels the statement.
      this.lent.spend();
      return Stream.mapError(this.#connection.stream(text, values.map(parameter)), namedSqlError);
    });
    return transform === undefined
      ? rows
      : Stream.mapArray(rows, (some) => transform(some) as unknown as typeof some);
  }
}

/** A commit that the server answers with ROLLBACK has not committed: a statement had failed before. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []) as Effect.Effect<Result, SqlError>, ({ command }) => {
    if (command !== "ROLLBACK") return Effect.void;
    const message = "the transaction was rolled back, because one of its statements failed";
    return Effect.fail(
      new SqlError({ reason: new UnknownError({ cause: new Error(message), message, operation: "commit" }) }),
    );
  });

const makeStatements = (): ((lent: Lent) => Statements) => {
  const statementsByConnection = new WeakMap<Lent, Statements>();
  return (lent) => {
    const statements = statementsByConnection.get(lent) ?? new Statements(lent);
    statementsByConnection.set(lent, statements);
    return statements;
  };
};

const make = Effect.fnUntraced(function* (address: PostgresOptions) {
  const options = { ...address, pulse: yield* Pulse.DatabasePulse };
  const measures = yield* Measures;
  const waiting = { own: 0, shared: 0 };
  const noteWaiting = (of: keyof typeof waiting) => (count: number) => {
    waiting[of] = count;
    measures.set("database_waiting", {}, waiting.own + waiting.shared);
  };
  noteWaiting("own")(0);
  const own = yield* makePool(options, noteWaiting("own"));
  const sharedLender = yield* makeShared(options, noteWaiting("shared"));
  const statements = makeStatements();
  const borrow =
    ({ take, giveBack }: Lender) =>
    <A, E, R>(use: (connection: Connection) => Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(take, (lent) => use(statements(lent)), giveBack);
  const [borrowOwn, borrowShared] = [borrow(own), borrow(sharedLender)];
  const lent = Effect.map(Effect.acquireRelease(own.take, own.giveBack), statements);
  return yield* SqlClient.make({
    acquirer: lent,
    borrower: (use) => Effect.flatMap(Shared, (isShared) => (isShared ? borrowShared : borrowOwn)(use)),
    transactionAcquirer: lent,
    compiler: PgClient.makeCompiler(),
    driver: "pg",
    spanAttributes: [["db.system.name", "postgresql"]],
    prepareTransactionControls: true,
    commit,
    isTransaction: (connection) => (connection as Statements).lent.isUsable,
  });
});

/**
 * A pooled client, and a listener for its notifications. Both connect on first use. If sessions are killed or the
 * server restarts, the statements under way fail with a `ConnectionError`. Later ones work again.
 */
export const layer = (
  options: PostgresOptions,
): Layer.Layer<SqlClient.SqlClient | Notifications.Notifications | Pulse.DatabasePulse> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(
    Layer.provide(Reactivity.layer),
    Layer.merge(Notifications.layer(options)),
    Layer.provideMerge(Layer.fresh(Pulse.layer)),
  );
