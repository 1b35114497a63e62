/**
 * The connections of this process: those that a caller has for itself, and the shared ones.
 *
 *  C1 A lent connection runs one statement at a time: concurrent fibers of one transaction wait for each other.
 *  C2 A connection that failed is never lent again, and its transaction needs no rollback: the server did it.
 *  C3 A statement that is given up is over on the server before its connection is used again: an interrupt cancels it and
 *     waits for its end, and the connection is closed, because the cancellation may arrive late and hit the next
 *     statement. Its transaction is rolled back by the end of the connection, which is waited for.
 *  C4 A prepared statement that a change of the schema made stale is run once more by sql-pg. In a transaction, which
 *     the server has ended by then, it fails like a lost connection, so that its caller tries again. Its connection
 *     is not lent again.
 *  C5 A shared connection has a pipeline of statements, and no transaction. Each statement has a short limit on the server.
 *     A statement that is given up there runs to its end.
 *  C6 When a server answers that it is read-only, no connection from before that is lent again (pulse.ts).
 *
 * sql-pg's own pool is not used: a wait for it has no limit and cannot be counted, and it does not end a silent connection.
 */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import { ConnectionError, SqlError } from "effect/sql/SqlError";
import type { PgConnection } from "@effect/sql-pg/PgConnection";
import { DEFAULTS, open, type OpenConnection, type PostgresOptions } from "./connection.ts";
import { isDiskFull, isLost, isReadOnly, namedSqlError } from "./errors.ts";
import { Line } from "./patience.ts";
import type { Pulse } from "./pulse.ts";

/** How many statements of the service are in the pipeline of a shared connection at most. */
const SHARED_AT_ONCE = 64;
/** The server ends a longer statement on a shared connection, ms. */
export const SHARED_STATEMENT_MS = 5_000;

const toSqlError = (cause: unknown): SqlError => {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new SqlError({ reason: new ConnectionError({ cause, message, operation: "connect" }) });
};

/** Whether the server has answered, and its connection can go on. */
const isHarmless = (cause: Cause.Cause<SqlError>): boolean =>
  cause.reasons.every((reason) => Cause.isFailReason(reason) && !isLost(reason.error));

/** Tells the pulse of a server that refuses writes. */
const report = (pulse: Pulse, { reasons }: Cause.Cause<SqlError>): void => {
  const errors = reasons.filter(Cause.isFailReason).map(({ error }) => error);
  if (errors.some(isReadOnly)) pulse.readOnly();
  if (errors.some(isDiskFull)) pulse.full();
};

export interface PoolOptions extends PostgresOptions {
  readonly pulse: Pulse;
}

/** A connection, for its caller's statements. */
export class Lent {
  readonly #opened: OpenConnection;
  readonly #scope: Scope.Closeable;
  readonly #isShared: boolean;
  readonly #pulse: Pulse;
  readonly #era: number;
  /** Whether it may not be lent again. */
  #isSpent = false;

  constructor(
    connection: OpenConnection,
    scope: Scope.Closeable,
    kind: { isShared: boolean; pulse: Pulse; era: number },
  ) {
    this.#opened = connection;
    this.#scope = scope;
    this.#isShared = kind.isShared;
    this.#pulse = kind.pulse;
    this.#era = kind.era;
  }

  get isUsable(): boolean {
    return !this.#isSpent && !this.#opened.isLost() && this.#era === this.#pulse.era;
  }

  get connection(): PgConnection {
    return this.#opened.connection;
  }

  /** This caller is its last. */
  spend(): void {
    this.#isSpent = true;
  }

  /** Runs a statement of this connection. */
  run<A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> {
    const { silence } = this.#opened;
    return Effect.suspend(() => {
      silence.begin();
      return Effect.onExit(Effect.mapError(statement, namedSqlError), (exit) => {
        silence.finish();
        if (Exit.isFailure(exit)) report(this.#pulse, exit.cause);
        if (!this.#isShared && Exit.isFailure(exit) && !isHarmless(exit.cause)) this.spend();
        return Effect.void;
      });
    });
  }

  /** Closes it, and waits for the server to have done so too. */
  readonly close: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(Scope.close(this.#scope, Exit.void), this.#opened.ended),
  );
}

const opening = (options: PoolOptions, isShared: boolean): Effect.Effect<Lent, SqlError> =>
  Effect.gen(function* () {
    const { pulse } = options;
    // One that opens while an era ends may be at the old server.
    const { era } = pulse;
    const scope = yield* Scope.make();
    const newConnection = yield* Scope.provide(open(options, { isShared }), scope).pipe(
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
    );
    return new Lent(newConnection, scope, { isShared, pulse, era });
  });

/** How callers get connections. */
interface Supply {
  readonly find: Effect.Effect<Lent, SqlError>;
  readonly takeBack: (lent: Lent) => Effect.Effect<void>;
}

const CLOSED = toSqlError(new Error("the client is closed"));

/** Lends what `supply` finds to those who have a place in `line`, until it is closed. */
export class Lender {
  readonly #line: Line;
  readonly #supply: Supply;
  #callers = 0;
  #isClosed = false;
  #left = (): void => undefined;

  constructor(line: Line, supply: Supply) {
    this.#line = line;
    this.#supply = supply;
  }

  #leave(): void {
    this.#callers -= 1;
    if (this.#callers === 0) this.#left();
  }

  readonly #giveUp = Effect.sync(() => this.#leave());
  readonly #leaveLine = Effect.sync(() => {
    this.#line.leave();
    this.#leave();
  });

  /** One that was opened while this was closed would outlive it. */
  readonly #found: Effect.Effect<Lent, SqlError> = Effect.suspend(() =>
    this.#isClosed ? Effect.fail(CLOSED) : this.#supply.find,
  ).pipe(
    Effect.flatMap((lent) =>
      this.#isClosed ? Effect.andThen(lent.close, Effect.fail(CLOSED)) : Effect.succeed(lent),
    ),
    Effect.onError(() => this.#leaveLine),
  );

  /** Waits for a place and for a connection. It may not be interrupted meanwhile. */
  readonly take: Effect.Effect<Lent, SqlError> = Effect.suspend(() => {
    this.#callers += 1;
    if (this.#line.enterAtOnce()) return this.#found;
    return Effect.tryPromise({ try: () => this.#line.enter(), catch: toSqlError }).pipe(
      Effect.onError(() => this.#giveUp),
      Effect.andThen(this.#found),
    );
  });

  readonly giveBack = (lent: Lent): Effect.Effect<void> =>
    Effect.andThen(this.#supply.takeBack(lent), this.#leaveLine);

  /** Lends nothing any more, and waits for what is lent. */
  readonly close: Effect.Effect<void> = Effect.callback((resume) => {
    this.#isClosed = true;
    if (this.#callers === 0) return resume(Effect.void);
    this.#left = () => resume(Effect.void);
  });
}

/** Connections at rest. The one that was used last is the first to be used again. */
class Idle {
  readonly #resting: { readonly lent: Lent; readonly since: number }[] = [];
  readonly #timeoutMs: number;
  #isSweepDue = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  push(lent: Lent): void {
    this.#resting.push({ lent, since: performance.now() });
    this.#sweepLater();
  }

  pop(): Lent | undefined {
    return this.#resting.pop()?.lent;
  }

  #sweepLater(): void {
    const [first] = this.#resting;
    if (this.#isSweepDue || first === undefined) return;
    this.#isSweepDue = true;
    const due = first.since + this.#timeoutMs - performance.now();
    // oxlint-disable-next-line no-restricted-globals -- beneath Effect, as in patience.ts
    setTimeout(() => this.#sweep(), Math.max(1, Math.ceil(due))).unref();
  }

  /** Closes those that rest for too long. The first in the list rest for the longest time. */
  #sweep(): void {
    this.#isSweepDue = false;
    const oldest = performance.now() - this.#timeoutMs;
    while (this.#resting[0] !== undefined && this.#resting[0].since <= oldest) {
      const old = this.#resting.shift();
      if (old !== undefined) Effect.runFork(old.lent.close);
    }
    this.#sweepLater();
  }
}

const makeLine = (
  places: number,
  { connectTimeoutMs = DEFAULTS.connectTimeoutMs }: PostgresOptions,
  onChange: (waiting: number) => void,
): Line => new Line(places, { ms: connectTimeoutMs, changed: onChange });

/** Connections that a caller has for itself, at most `maxConnections`. */
export const makePool = Effect.fnUntraced(function* (
  options: PoolOptions,
  onChange: (waiting: number) => void,
) {
  const idle = new Idle(options.idleTimeoutMs ?? DEFAULTS.idleTimeoutMs);
  const find: Effect.Effect<Lent, SqlError> = Effect.suspend(() => {
    const lent = idle.pop();
    if (lent === undefined) return opening(options, false);
    return lent.isUsable ? Effect.succeed(lent) : Effect.andThen(lent.close, find);
  });
  const closeIdle: Effect.Effect<void> = Effect.suspend(() => {
    const lent = idle.pop();
    return lent === undefined ? Effect.void : Effect.andThen(lent.close, closeIdle);
  });
  const takeBack = (lent: Lent) =>
    Effect.suspend(() => (lent.isUsable ? Effect.sync(() => idle.push(lent)) : lent.close));
  const lender = new Lender(makeLine(options.maxConnections ?? DEFAULTS.maxConnections, options, onChange), {
    find,
    takeBack,
  });
  yield* Effect.addFinalizer(() => Effect.andThen(lender.close, closeIdle));
  return lender;
});

/** One connection for many callers. It is opened again if it ends. */
export const makeShared = Effect.fnUntraced(function* (
  options: PoolOptions,
  onChange: (waiting: number) => void,
) {
  const oneOpens = Semaphore.makeUnsafe(1);
  let current: Lent | null = null;
  const closeCurrent = Effect.suspend(() => current?.close ?? Effect.void);
  const renewal = oneOpens.withPermit(
    Effect.suspend(() => {
      if (current?.isUsable) return Effect.succeed(current);
      return closeCurrent.pipe(
        Effect.andThen(opening({ ...options, statementTimeoutMs: SHARED_STATEMENT_MS }, true)),
        Effect.tap((lent) => Effect.sync(() => (current = lent))),
      );
    }),
  );
  const lender = new Lender(makeLine(SHARED_AT_ONCE, options, onChange), {
    find: Effect.suspend(() => (current?.isUsable ? Effect.succeed(current) : renewal)),
    takeBack: () => Effect.void,
  });
  yield* Effect.addFinalizer(() => Effect.andThen(lender.close, closeCurrent));
  return lender;
});
