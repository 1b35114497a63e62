/** How every connection of the service is opened: the pool's and the listening one. */
import * as pg from "pg";
import { instantOf } from "./instants.ts";
import { patiently } from "./patience.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. A unix socket is written as `?host=/its/directory`. */
  readonly url: string;
  /** The most connections of this process. 10 are more than two cores of a database can keep busy. */
  readonly maxConnections?: number;
  /** How long a statement waits for a new or a free connection, ms (patience.ts). */
  readonly connectTimeoutMs?: number;
  /** The server ends a longer statement, ms. 5 s later the client closes the connection. */
  readonly statementTimeoutMs?: number;
  readonly applicationName?: string;
}

export const DEFAULTS = {
  maxConnections: 10,
  connectTimeoutMs: 5_000,
  statementTimeoutMs: 15_000,
  applicationName: "platform",
} as const;
/**
 * The server ends a transaction whose owner is silent, since it would hold its locks for ever. Well below
 * `statementTimeoutMs`, so that waiting statements on other nodes still get their turn (threats.md R11).
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000;
/** A half-open connection (no answer, no reset) is detected this long after the server should have answered. */
const READ_GRACE_MS = 5_000;
const TIMESTAMPTZ = 1184;

const typeParsers = new pg.TypeOverrides();
typeParsers.setTypeParser(TIMESTAMPTZ, instantOf);

/** How long to wait for an answer before its connection is closed, ms. */
export const answerTimeoutMs = ({
  statementTimeoutMs = DEFAULTS.statementTimeoutMs,
}: PostgresOptions): number => statementTimeoutMs + READ_GRACE_MS;

export const connectionSettings = (options: PostgresOptions) => {
  const settings = { ...DEFAULTS, ...options };
  return {
    connectionString: settings.url,
    application_name: settings.applicationName,
    statement_timeout: settings.statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    types: typeParsers,
  };
};

/** Parts of a pg connection that its types do not declare. */
interface Connecting {
  readonly connection?: { readonly stream: { readonly destroy: (error: Error) => void } };
}

/**
 * A client that gives up connecting after `connectTimeoutMs` of the event loop's time. pg's own timers use the clock
 * alone.
 */
export const patientClient = ({ connectTimeoutMs = DEFAULTS.connectTimeoutMs }: PostgresOptions) =>
  class extends pg.Client {
    override connect(): Promise<void>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<void> | void {
      const given = patiently(connectTimeoutMs, () =>
        (this as unknown as Connecting).connection?.stream.destroy(
          new Error(`no connection came about within ${connectTimeoutMs} ms`),
        ),
      );
      if (callback === undefined) return super.connect().finally(given);
      super.connect((error) => {
        given();
        callback(error);
      });
    }
  };
