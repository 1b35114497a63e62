/**
 * The slot counter of an account (D3, I1, I12): one conditional update, never a count of rows (threats.md fact 2). Always
 * the last lock a session's save takes and the first an admission takes, so the two cannot block each other for ever.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { CapReached } from "../journal.ts";

interface Counter {
  readonly cap: number;
  readonly activeSessions: number;
}

/** Takes `count` slots, or none and says how full the account is. */
export const reserveSlots = (sql: SqlClient, accountId: string, count: number) =>
  Effect.gen(function* () {
    const taken = yield* sql`
      UPDATE accounts SET active_sessions = active_sessions + ${count}
      WHERE id = ${accountId} AND active_sessions + ${count} <= session_cap
      RETURNING id`;
    if (taken.length === 1) return;
    const [counter] = yield* sql<Counter>`
      SELECT session_cap AS cap, active_sessions AS "activeSessions" FROM accounts WHERE id = ${accountId}`;
    return yield* new CapReached({
      limit: counter?.cap ?? 0,
      activeSessions: counter?.activeSessions ?? 0,
    });
  });

export const releaseSlot = (sql: SqlClient, accountId: string) =>
  sql`UPDATE accounts SET active_sessions = active_sessions - 1 WHERE id = ${accountId}`;

/** Locks the account's row: whatever else would admit, drain or cancel for this account waits. */
export const lockAccount = (sql: SqlClient, accountId: string) =>
  Effect.map(
    sql<Counter & { readonly drainedTurns: string }>`
      SELECT session_cap AS cap, active_sessions AS "activeSessions", drained_turns AS "drainedTurns"
      FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`,
    ([account]) => account ?? null,
  );
