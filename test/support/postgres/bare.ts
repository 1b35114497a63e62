/** A connection for tests that look at the database past the service: promises, and errors as the server words them. */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { open } from "../../../src/store/postgres/connection/connection.ts";
import { namedSqlError } from "../../../src/store/postgres/connection/errors.ts";
import { parameter } from "../../../src/store/postgres/connection/values.ts";

export interface Bare {
  /** Runs one statement. Its parts are represented as in the service: an instant is ms. */
  readonly query: <Row>(
    text: string,
    values?: readonly unknown[],
  ) => Promise<{ readonly rows: readonly Row[] }>;
  readonly end: () => Promise<void>;
}

/** Opens a connection without limits. */
export const connectBare = async (url: string, applicationName = "test"): Promise<Bare> => {
  const scope = Effect.runSync(Scope.make());
  const words = Effect.mapError(
    (error: Parameters<typeof namedSqlError>[0]) => namedSqlError(error).reason.cause,
  );
  const { connection } = await Effect.runPromise(
    open({ url, applicationName, statementTimeoutMs: 0 }, { idleInTransactionMs: 0 }).pipe(
      Scope.provide(scope),
      words,
    ),
  );
  return {
    query: <Row>(text: string, values: readonly unknown[] = []) =>
      Effect.runPromise(
        connection.query(text, values.map(parameter), false).pipe(
          Effect.map(({ rows }) => ({ rows: rows as readonly Row[] })),
          words,
        ),
      ),
    end: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  };
};
