/**
 * One connection of the service to Postgres, by @effect/sql-pg: of the pool, the shared ones and the listening ones.
 *
 *  N1 Its socket is ours. So its end is seen immediately, and a server that is silent for too long loses it,
 *     measured in the event loop's time (patience.ts). sql-pg's own limits use the clock alone.
 */
import { connect, type NetConnectOpts, type Socket } from "node:net";
import * as PgConnection from "@effect/sql-pg/PgConnection";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import type * as Scope from "effect/Scope";
import type { SqlError } from "effect/sql/SqlError";
import { namedSqlError } from "./errors.ts";
import { patiently } from "./patience.ts";
import { tlsOptions } from "./tls.ts";
import { types } from "./values.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. A unix socket is written as `?host=/its/directory`. */
  readonly url: string;
  /** The most connections of this process. 10 are more than two cores of a database can keep busy. */
  readonly maxConnections?: number;
  /** How long a statement waits for a new or a free connection, ms (patience.ts). */
  readonly connectTimeoutMs?: number;
  /** The server ends a longer statement, ms. 5 s later the client closes the connection. */
  readonly statementTimeoutMs?: number;
  /** A connection that is unused for this long is closed, ms. Others need its place at the server. */
  readonly idleTimeoutMs?: number;
  readonly applicationName?: string;
}

export const DEFAULTS = {
  maxConnections: 10,
  connectTimeoutMs: 5_000,
  statementTimeoutMs: 15_000,
  idleTimeoutMs: 10_000,
  applicationName: "platform",
} as const;
/**
 * The server ends a transaction whose owner is silent, since it would hold its locks for ever. Well below
 * `statementTimeoutMs`, so that waiting statements on other nodes still get their turn (threats.md R11).
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000;
/** A half-open connection (no answer, no reset) is detected this long after the server should have answered. */
const READ_GRACE_MS = 5_000;
/**
 * The most texts that a connection keeps prepared. It forgets the one that was not used for the longest time. A plan can
 * take 0.15 MB of the server's memory.
 */
export const PREPARED_MAX = 200;
/** The largest message that Postgres can send: a row with a large value. */
const MESSAGE_BYTES_MAX = 2 ** 30;

/** What else distinguishes a connection. */
interface Kind {
  /** Whether several fibers send their statements at the same time. */
  readonly isShared?: boolean;
  /** How long a transaction may be silent, ms. 0: as long as it likes. */
  readonly idleInTransactionMs?: number;
}

/** An open connection. */
export interface OpenConnection {
  readonly connection: PgConnection.PgConnection;
  /** Whether it has ended. It may not have told its statements yet. */
  readonly isLost: () => boolean;
  /** Ends it immediately: its statements fail with this cause. */
  readonly end: (cause: Error) => void;
  /** Waits until the server has closed it too, which it does after it has rolled back. */
  readonly ended: Effect.Effect<void>;
  /** The time since the server's last answer. If it is too long, the connection ends. */
  readonly silence: Silence;
}

const POSTGRES_PORT = 5432;

/** Where the server is. The parameters in the URL win, as in libpq. */
const socketAddress = ({ hostname, port, searchParams }: URL): NetConnectOpts => {
  const inUrl = hostname === "" ? "localhost" : decodeURIComponent(hostname).replace(/^\[(.*)\]$/, "$1");
  const host = searchParams.get("host") ?? inUrl;
  const at = Number(searchParams.get("port") ?? port) || POSTGRES_PORT;
  return host.startsWith("/")
    ? { path: `${host}/.s.PGSQL.${at}` }
    : { host, port: at, noDelay: true, keepAlive: true };
};

/** Watches the time since the server's last answer while statements wait for one. 0 ms: it is not watched. */
class Silence {
  readonly #milliseconds: number;
  readonly #expired: () => void;
  #waiting = 0;
  #stop: (() => void) | null = null;

  constructor(milliseconds: number, onExpiry: () => void) {
    this.#milliseconds = milliseconds;
    this.#expired = onExpiry;
  }

  #watch(): void {
    if (this.#milliseconds > 0) this.#stop = patiently(this.#milliseconds, this.#expired);
  }

  /** A statement is sent. */
  begin(): void {
    this.#waiting += 1;
    if (this.#waiting === 1) this.#watch();
  }

  /** A statement has its answer, or is given up. */
  finish(): void {
    this.#waiting -= 1;
    this.#stop?.();
    if (this.#waiting > 0) this.#watch();
  }
}

/** Opens a connection. It is closed with the scope. */
export const open = (
  options: PostgresOptions,
  { isShared = false, idleInTransactionMs = IDLE_IN_TRANSACTION_TIMEOUT_MS }: Kind = {},
): Effect.Effect<OpenConnection, SqlError, Scope.Scope> =>
  Effect.suspend(() => {
    const { url, connectTimeoutMs, statementTimeoutMs, applicationName } = { ...DEFAULTS, ...options };
    const address = new URL(url);
    const ssl = tlsOptions(address);
    // sql-pg refuses a mode that it does not know.
    address.searchParams.delete("sslmode");
    let socket: Socket | null = null;
    const end = (cause: Error): void => void socket?.destroy(cause);
    const silence = new Silence(statementTimeoutMs === 0 ? 0 : statementTimeoutMs + READ_GRACE_MS, () =>
      end(new Error(`the database did not respond within ${statementTimeoutMs + READ_GRACE_MS} ms`)),
    );
    const close = Effect.callback<void>((resume) => {
      if (socket === null || socket.closed) return resume(Effect.void);
      const readGrace = patiently(READ_GRACE_MS, () => void socket?.destroy());
      socket.once("close", () => {
        readGrace();
        resume(Effect.void);
      });
    });
    const connectLimit = patiently(connectTimeoutMs, () =>
      end(new Error(`no connection came about within ${connectTimeoutMs} ms`)),
    );
    return PgConnection.make({
      url: Redacted.make(address.href),
      ssl,
      // The first one is the connection's. sql-pg cancels a statement over another one.
      stream: () => {
        const connecting = connect(socketAddress(address));
        socket ??= connecting;
        return connecting;
      },
      connectTimeout: Duration.infinity,
      applicationName: address.searchParams.get("application_name") ?? applicationName,
      startupParameters: {
        statement_timeout: String(statementTimeoutMs),
        idle_in_transaction_session_timeout: String(idleInTransactionMs),
      },
      types,
      multiplex: isShared,
      preparedStatementCacheSize: PREPARED_MAX,
      maxMessageSize: MESSAGE_BYTES_MAX,
    }).pipe(
      Effect.ensuring(Effect.sync(connectLimit)),
      Effect.map((connection) => ({
        connection,
        isLost: () => socket?.destroyed !== false,
        end,
        ended: close,
        silence,
      })),
      Effect.mapError(namedSqlError),
    );
  });
