import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import * as Stream from "effect/Stream";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { violatedConstraint } from "../../../src/store/postgres/connection/errors.ts";
import { SHARED_STATEMENT_MS } from "../../../src/store/postgres/connection/pool.ts";
import { onSharedConnection } from "../../../src/store/postgres/connection/prepared.ts";
import { Notifications } from "../../../src/store/postgres/connection/notifications.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { live } from "../../support/postgres/live.ts";

const createCodes = (sql: SqlClient.SqlClient) =>
  sql`CREATE TABLE codes (code text CONSTRAINT codes_code_key UNIQUE)`;

const backend = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`, ([row]) => row?.pid ?? 0);

/** Ends a session from another one, as an operator or a failover does. */
const kill = (sql: SqlClient.SqlClient, pid: number) => sql`SELECT pg_terminate_backend(${pid}, 5000)`;

const reasonOf = (error: SqlError) => error.reason._tag;
/** On a busy machine a new connection takes longer than its limit. */
const patiently = <A, R>(work: Effect.Effect<A, SqlError, R>) =>
  Effect.retry(work, { while: (error) => reasonOf(error) === "ConnectionError" });

describe("rows", () => {
  live("are streamed in portions, in order, also when the reader stops early", (sql) =>
    Effect.gen(function* () {
      const numbers = sql<{ readonly n: number }>`SELECT n FROM generate_series(1, 1000) AS n`;
      const all = yield* Stream.runCollect(numbers.stream);
      expect(all.map(({ n }) => n)).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
      const few = yield* Stream.runCollect(Stream.take(numbers.stream, 3));
      expect(few.map(({ n }) => n)).toEqual([1, 2, 3]);
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    }),
  );
});

describe("errors", () => {
  live("name the violated constraint", (sql) =>
    Effect.gen(function* () {
      yield* createCodes(sql);
      yield* sql`INSERT INTO codes (code) VALUES ('a')`;
      const error = yield* Effect.flip(sql`INSERT INTO codes (code) VALUES ('a')`);
      expect(violatedConstraint(error)).toBe("codes_code_key");
    }),
  );

  live("distinguish syntax errors, missing tables and ended statements", (sql) =>
    Effect.gen(function* () {
      expect(reasonOf(yield* Effect.flip(sql`SELEC 1`))).toBe("SqlSyntaxError");
      expect(reasonOf(yield* Effect.flip(sql`SELECT * FROM nowhere`))).toBe("SqlSyntaxError");
      const slow = sql.withTransaction(
        Effect.andThen(sql`SET LOCAL statement_timeout = 20`, sql`SELECT pg_sleep(60)`),
      );
      expect(reasonOf(yield* Effect.flip(slow))).toBe("StatementTimeoutError");
    }),
  );

  it.live("of a missing server are connection errors, not defects", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const error = yield* Effect.flip(sql`SELECT 1`);
      expect(reasonOf(error)).toBe("ConnectionError");
    }).pipe(Effect.provide(Client.layer({ url: "postgres://platform@localhost/x?host=/nowhere" }))),
  );
});

describe("a transaction", () => {
  live("writes all or nothing, and a nested one can fail alone", (sql) =>
    Effect.gen(function* () {
      yield* createCodes(sql);
      const nested = sql.withTransaction(
        Effect.andThen(sql`INSERT INTO codes (code) VALUES ('inner')`, Effect.fail("inner" as const)),
      );
      yield* sql.withTransaction(
        Effect.andThen(sql`INSERT INTO codes (code) VALUES ('outer')`, Effect.ignore(nested)),
      );
      const failing = sql.withTransaction(
        Effect.andThen(sql`INSERT INTO codes (code) VALUES ('lost')`, Effect.fail("outer" as const)),
      );
      expect(yield* Effect.flip(failing)).toBe("outer");
      expect(yield* sql`SELECT code FROM codes`).toEqual([{ code: "outer" }]);
    }),
  );

  live("runs its statements one at a time, also those of concurrent fibers", (sql) =>
    Effect.gen(function* () {
      const pids = yield* sql.withTransaction(
        Effect.all(
          Array.from({ length: 8 }, () => backend(sql)),
          { concurrency: "unbounded" },
        ),
      );
      expect(new Set(pids).size).toBe(1);
    }),
  );

  live("that is interrupted is rolled back, and its connection is usable for the next one", (sql) =>
    Effect.gen(function* () {
      yield* createCodes(sql);
      const begun = yield* Deferred.make<void>();
      const fiber = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO codes (code) VALUES ('lost')`;
            yield* Deferred.succeed(begun, undefined);
            yield* sql`SELECT pg_sleep(0.05)`;
            return yield* Effect.never;
          }),
        ),
      );
      yield* Deferred.await(begun);
      yield* Fiber.interrupt(fiber);
      expect(yield* sql`SELECT code FROM codes`).toEqual([]);
    }),
  );

  live("that the server does not commit is an error", (sql) =>
    Effect.gen(function* () {
      yield* createCodes(sql);
      const swallowed = sql.withTransaction(
        Effect.andThen(sql`INSERT INTO codes (code) VALUES ('lost')`, Effect.ignore(sql`SELEC 1`)),
      );
      expect(reasonOf(yield* Effect.flip(swallowed))).toBe("UnknownError");
      expect(yield* sql`SELECT code FROM codes`).toEqual([]);
    }),
  );

  live("sends notifications only of committed changes", (sql) =>
    Effect.gen(function* () {
      const said: string[] = [];
      const say = (word: string) => sql.afterCommit(Effect.sync(() => said.push(word)).pipe(Effect.asVoid));
      yield* sql.withTransaction(say("committed"));
      yield* Effect.ignore(sql.withTransaction(Effect.andThen(say("rolled back"), Effect.fail("no"))));
      expect(said).toEqual(["committed"]);
    }),
  );
});

/** The statements that sleep on the server, as another session sees them. */
const sleeping = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql`SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND state <> 'idle' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`,
    (rows) => rows.length,
  );

/** Interrupts an effect once its statement sleeps. */
const interruptedAsleep = <A, E, R>(sql: SqlClient.SqlClient, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect);
    yield* Effect.repeat(sleeping(sql), { until: (count) => count === 1 });
    yield* Fiber.interrupt(fiber);
  });

describe("a statement that is given up", () => {
  live("is over on the server, and its connection is not used again", (sql) =>
    Effect.gen(function* () {
      const pid = yield* Deferred.make<number>();
      yield* interruptedAsleep(
        sql,
        Effect.scoped(
          Effect.gen(function* () {
            const connection = yield* sql.reserve;
            const [row] = yield* connection.execute("SELECT pg_backend_pid() AS pid", [], undefined);
            yield* Deferred.succeed(pid, Number(row?.pid));
            yield* connection.execute("SELECT pg_sleep(60)", [], undefined);
          }),
        ),
      );
      expect(yield* sleeping(sql)).toBe(0);
      const used = yield* Effect.all(
        Array.from({ length: 12 }, () => backend(sql)),
        {
          concurrency: "unbounded",
        },
      );
      expect(used).not.toContain(yield* Deferred.await(pid));
    }),
  );

  live("has its transaction rolled back, whose locks are free", (sql) =>
    Effect.gen(function* () {
      yield* createCodes(sql);
      const locking = Effect.andThen(sql`LOCK TABLE codes`, sql`SELECT pg_sleep(60)`);
      yield* interruptedAsleep(sql, sql.withTransaction(locking));
      yield* sql.withTransaction(sql`LOCK TABLE codes NOWAIT`);
    }),
  );
});

describe("a shared connection", () => {
  live("runs the statements of many fibers, each with a short limit, and is replaced if it ends", (sql) =>
    Effect.gen(function* () {
      const many = onSharedConnection(
        Effect.all(
          Array.from({ length: 40 }, () => backend(sql)),
          { concurrency: "unbounded" },
        ),
      );
      const pids = new Set(yield* many);
      expect(pids.size).toBe(1);
      const [limit] = yield* onSharedConnection(sql<{ readonly ms: string }>`
        SELECT setting AS ms FROM pg_settings WHERE name = 'statement_timeout'`);
      expect(Number(limit?.ms)).toBe(SHARED_STATEMENT_MS);
      const asleep = yield* Effect.forkChild(Effect.flip(onSharedConnection(sql`SELECT pg_sleep(60)`)));
      yield* Effect.repeat(sleeping(sql), { until: (count) => count === 1 });
      for (const pid of pids) yield* kill(sql, pid);
      expect(reasonOf(yield* Fiber.join(asleep))).toBe("ConnectionError");
      const [next] = yield* many;
      expect(pids).not.toContain(next);
    }),
  );

  live("is not a transaction's", (sql) =>
    Effect.gen(function* () {
      const [own, same] = yield* sql.withTransaction(
        Effect.all([backend(sql), onSharedConnection(backend(sql))]),
      );
      expect(same).toBe(own);
    }),
  );

  live("lets a reader go at once, and goes on", (sql) =>
    Effect.gen(function* () {
      yield* interruptedAsleep(sql, onSharedConnection(sql`SELECT pg_sleep(60)`));
      expect(yield* sleeping(sql)).toBe(1);
      expect(yield* onSharedConnection(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    }),
  );
});

describe("a session that the server ends", () => {
  live("costs the running statement an error and the next one nothing", (sql) =>
    Effect.gen(function* () {
      const pid = yield* Deferred.make<number>();
      const asleep = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* Deferred.succeed(pid, yield* backend(sql));
            yield* sql`SELECT pg_sleep(60)`;
          }),
        ),
      );
      yield* kill(sql, yield* Deferred.await(pid));
      const error = yield* Effect.flip(Fiber.join(asleep));
      expect(error._tag === "SqlError" && reasonOf(error)).toBe("ConnectionError");
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    }),
  );

  live(
    "that ended while this process stood still costs its transaction a connection, and nothing afterwards",
    (sql) =>
      Effect.gen(function* () {
        // Blocked, it reads the server's last word only when it has asked again: as one that was frozen for a while.
        const standStill = Effect.sync(
          () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300),
        );
        const transaction = sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SET LOCAL idle_in_transaction_session_timeout = 20`;
            yield* standStill;
            return yield* sql`SELECT 1 AS one`;
          }),
        );
        expect(reasonOf(yield* Effect.flip(transaction))).toBe("ConnectionError");
        expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
      }),
  );

  live("between two statements of a transaction fails it without a defect", (sql) =>
    Effect.gen(function* () {
      const killer = yield* Effect.map(freshDatabase("empty"), (url) => Client.layer({ url }));
      const attempt = sql.withTransaction(
        Effect.gen(function* () {
          const pid = yield* backend(sql);
          yield* Effect.provide(
            Effect.flatMap(SqlClient.SqlClient, (other) => kill(other, pid)),
            killer,
          );
          yield* sql`SELECT 1`;
        }),
      );
      const error = yield* Effect.flip(attempt);
      expect(error._tag === "SqlError" && reasonOf(error)).toBe("ConnectionError");
      expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    }).pipe(Effect.scoped),
  );
});

/** The process stands still: what falls due or arrives meanwhile waits. */
const standStill = (milliseconds: number) =>
  Effect.sync(() => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds));

describe("a process that stood still", () => {
  /** A client of one connection that waits 200 ms for it. */
  const narrow = Effect.map(freshDatabase("empty"), (url) =>
    Client.layer({ url, maxConnections: 1, connectTimeoutMs: 200 }),
  );

  it.live("gets its new connection, however long it stood still meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const asked = yield* Effect.forkChild(sql`SELECT 1 AS one`, { startImmediately: true });
      yield* Effect.yieldNow;
      yield* standStill(600);
      expect(yield* Fiber.join(asked)).toEqual([{ one: 1 }]);
    }).pipe(Effect.provide(Layer.unwrap(narrow), { local: true }), Effect.scoped),
  );

  it.live("gets the connection that another statement gave back meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* patiently(sql`SELECT 1`);
      const first = yield* Effect.forkChild(sql`SELECT 1 AS first`, { startImmediately: true });
      const second = yield* Effect.forkChild(sql`SELECT 2 AS second`, { startImmediately: true });
      yield* Effect.yieldNow;
      yield* standStill(600);
      expect(yield* Fiber.join(first)).toEqual([{ first: 1 }]);
      expect(yield* Fiber.join(second)).toEqual([{ second: 2 }]);
    }).pipe(Effect.provide(Layer.unwrap(narrow), { local: true }), Effect.scoped),
  );

  it.live("serves a moving line, even if its end waits longer than the connection timeout", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* patiently(sql`SELECT 1`);
      // Twelve statements of 50 ms over the one connection.
      const slow = Array.from(
        { length: 12 },
        (_, n) => sql`SELECT ${n}::int AS n, pg_sleep(0.05) IS NULL AS slept`,
      );
      const rows = yield* Effect.all(slow, { concurrency: "unbounded" });
      expect(rows.flat().map((row) => row["n"])).toEqual(slow.map((_, n) => n));
    }).pipe(Effect.provide(Layer.unwrap(narrow), { local: true }), Effect.scoped),
  );

  it.live("refuses callers that wait for a connection that is never given back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const begun = yield* Deferred.make<void>();
      const held = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT 1`;
          yield* Deferred.succeed(begun, undefined);
          return yield* Effect.never;
        }),
      );
      const holding = yield* Effect.forkChild(patiently(held));
      yield* Deferred.await(begun);
      expect(reasonOf(yield* Effect.flip(sql`SELECT 1`))).toBe("ConnectionError");
      yield* Fiber.interrupt(holding);
    }).pipe(Effect.provide(Layer.unwrap(narrow), { local: true }), Effect.scoped),
  );
});

describe("notifications", () => {
  live("arrive from the moment when listening began, until the connection ends", (sql) =>
    Effect.gen(function* () {
      const { listen } = yield* Notifications;
      const began = yield* Deferred.make<void>();
      const heard = yield* Deferred.make<string>();
      const listening = yield* Effect.forkChild(
        listen("test_channel", (payload) => {
          if (payload === null) Deferred.doneUnsafe(began, Effect.void);
          else Deferred.doneUnsafe(heard, Effect.succeed(payload));
        }),
      );
      yield* Deferred.await(began);
      yield* sql`SELECT pg_notify('test_channel', 'hello')`;
      expect(yield* Deferred.await(heard)).toBe("hello");
      yield* sql`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE query = 'LISTEN "test_channel"' AND pid <> pg_backend_pid()`;
      const error = yield* Effect.flip(Fiber.join(listening));
      expect(reasonOf(error)).toBe("ConnectionError");
    }),
  );
});
