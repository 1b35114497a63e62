/** Compares counters with the rows that they count: searches without a lock, and corrects under the account's lock. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Counters } from "../../ports/triggers/counters.ts";
import { lockAccount } from "./slots.ts";
import { toStored } from "../connection/statement.ts";

interface Counted {
  readonly activeSessions: number;
  readonly queuedFires: number;
}

const makeMend = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (accountId: string) {
    const account = yield* lockAccount(sql, accountId);
    if (account === null) return null;
    // A separate statement, so it sees everything that former holders of the lock committed, both rows and counters. A
    // transaction that has changed a session and waits for this lock is not committed, so its former state is counted.
    const [counted] = yield* sql<Counted>`
      SELECT
        (SELECT count(*)::integer FROM project_sessions
          WHERE account_id = ${accountId} AND status IN ('provisioning', 'running')) AS "activeSessions",
        (SELECT count(*)::integer FROM fire_queue WHERE account_id = ${accountId}) AS "queuedFires"`;
    if (counted === undefined) return null;
    const { activeSessions, queuedFires } = counted;
    if (account.activeSessions === activeSessions && account.queuedFires === queuedFires) return null;
    yield* sql`
      UPDATE accounts SET active_sessions = ${activeSessions}, queued_fires = ${queuedFires} WHERE id = ${accountId}`;
    return {
      activeSessions: { said: account.activeSessions, counted: activeSessions },
      queuedFires: { said: account.queuedFires, counted: queuedFires },
    };
  });
});

export const layer = Layer.effect(
  Counters,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const mend = yield* makeMend;
    return {
      // One statement sees one snapshot, in which every transaction is either complete or absent.
      wrong: sql<{ readonly id: string }>`
        SELECT accounts.id FROM accounts
        LEFT JOIN (
          SELECT account_id, count(*) AS count FROM project_sessions WHERE status IN ('provisioning', 'running')
          GROUP BY account_id
        ) AS live ON live.account_id = accounts.id
        LEFT JOIN (SELECT account_id, count(*) AS count FROM fire_queue GROUP BY account_id) AS waiting
          ON waiting.account_id = accounts.id
        WHERE accounts.active_sessions <> coalesce(live.count, 0)
          OR accounts.queued_fires <> coalesce(waiting.count, 0)`.pipe(
        Effect.map((rows) => rows.map(({ id }) => id)),
        toStored("counters.wrong"),
      ),
      mend: (accountId) => sql.withTransaction(mend(accountId)).pipe(toStored("counters.mend")),
    };
  }),
);
