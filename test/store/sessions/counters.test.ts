/** Wrong counters in both stores; and in Postgres, correct ones in the middle of a transaction. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { Counters } from "../../../src/store/ports/triggers/counters.ts";
import { overTables } from "../../twins/store/layer.ts";
import { Tables } from "../../twins/store/tables.ts";
import { releaseSlot } from "../../../src/store/postgres/triggers/slots.ts";
import { checkCounters, type Distort } from "../../conformance/store/triggers/counters.ts";
import { admitSession } from "../../support/world/sessions.ts";
import { accountOf, makeWorld } from "../../support/world/world.ts";
import { someoneWaits, storeOfFile } from "../../support/postgres/postgres.ts";
import { checkOver } from "../../support/postgres/live.ts";

const inTables: Distort<Tables> = (accountId, { activeSessions, queuedFires }) =>
  Effect.map(Tables, ({ accounts }) => {
    const account = accounts.get(accountId);
    if (account !== undefined) accounts.set(accountId, { ...account, activeSessions, queuedFires });
  });

const inDatabase: Distort<SqlClient.SqlClient> = (accountId, { activeSessions, queuedFires }) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      UPDATE accounts SET active_sessions = ${activeSessions}, queued_fires = ${queuedFires} WHERE id = ${accountId}`,
  ).pipe(Effect.orDie);

describe("in memory", () => {
  checkCounters(checkOver(Layer.provideMerge(overTables, Tables.layer)), inTables);
});

describe("in Postgres", () => {
  const check = checkOver(storeOfFile());
  checkCounters(check, inDatabase);

  /** A session is stopped in a transaction that stands still after `changed` or after `counted` until it may commit. */
  const stopping = Effect.fnUntraced(function* (at: "changed" | "counted") {
    const sql = yield* SqlClient.SqlClient;
    const world = yield* makeWorld(2);
    const id = yield* admitSession(world);
    const [isThere, mayGoOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
    const stand = (here: typeof at) =>
      here === at
        ? Effect.andThen(Deferred.succeed(isThere, undefined), Deferred.await(mayGoOn))
        : Effect.void;
    const stop = sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`UPDATE project_sessions SET status = 'stopped' WHERE id = ${id}`;
        yield* stand("changed");
        yield* releaseSlot(sql, world.accountId);
        yield* stand("counted");
      }),
    );
    const stopped = yield* Effect.forkChild(stop);
    yield* Deferred.await(isThere);
    return { world, goOn: Deferred.succeed(mayGoOn, undefined), stopped };
  });

  check(
    "a correct counter is left alone while its session's end is written and not yet counted [I1, I12]",
    Effect.gen(function* () {
      const { wrong, mend } = yield* Counters;
      const { world, goOn, stopped } = yield* stopping("changed");
      expect([yield* wrong, yield* mend(world.accountId)]).toEqual([[], null]);
      yield* goOn;
      yield* Fiber.join(stopped);
      expect(yield* accountOf(world)).toMatchObject({ activeSessions: 0 });
      expect(yield* wrong).toEqual([]);
    }),
  );

  check(
    "a correct counter is left alone once the end that it counts is committed, which is waited for [I1, I12]",
    Effect.gen(function* () {
      const { wrong, mend } = yield* Counters;
      const { world, goOn, stopped } = yield* stopping("counted");
      expect(yield* wrong).toEqual([]);
      const mended = yield* Effect.forkChild(mend(world.accountId));
      yield* someoneWaits;
      yield* goOn;
      yield* Fiber.join(stopped);
      expect(yield* Fiber.join(mended)).toBeNull();
      expect(yield* accountOf(world)).toMatchObject({ activeSessions: 0 });
    }),
  );
});
