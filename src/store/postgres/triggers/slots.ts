/**
 * The counters of an account: slots (journal.ts D3, I1, I12), waiting fires, bytes of stored requests. One conditional update,
 * never a count of rows (threats.md fact 2). A session's save takes this lock last and an admission takes it first, so
 * the two cannot deadlock.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { CapReached } from "../../ports/journal.ts";

interface Counter {
  readonly cap: number;
  readonly activeSessions: number;
}

/** The change of an account's counters by an admission or a drain. */
export interface CounterMove {
  readonly sessions: number;
  readonly queued: number;
  readonly requestBytes: number;
}

/**
 * Moves the counters and returns the account's id. Slots move only within the cap; otherwise nothing moves.
 *
 * @param only an additional condition.
 */
export const countersMoved = (
  sql: SqlClient,
  accountId: string,
  { sessions, queued, requestBytes, only }: CounterMove & { readonly only?: Fragment },
) => sql`
  UPDATE accounts SET active_sessions = active_sessions + ${sessions}, queued_fires = queued_fires + ${queued},
    stored_request_bytes = stored_request_bytes + ${requestBytes}
  WHERE id = ${accountId} AND (${sessions}::integer = 0 OR active_sessions + ${sessions} <= session_cap)
    ${only ?? sql.literal("")}
  RETURNING id`;

/** Counts fires that left the queue without a session. */
export const leaveQueue = (sql: SqlClient, accountId: string, count: number) =>
  count === 0 ? Effect.void : countersMoved(sql, accountId, { sessions: 0, queued: -count, requestBytes: 0 });

/** Takes a slot. If none is free, fails with the account's cap and its live sessions. */
export const reserveSlot = (sql: SqlClient, accountId: string) =>
  Effect.gen(function* () {
    const rows = yield* countersMoved(sql, accountId, { sessions: 1, queued: 0, requestBytes: 0 });
    if (rows.length === 1) return;
    const [counter] = yield* sql<Counter>`
      SELECT session_cap AS cap, active_sessions AS "activeSessions" FROM accounts WHERE id = ${accountId}`;
    return yield* new CapReached({
      limit: counter?.cap ?? 0,
      activeSessions: counter?.activeSessions ?? 0,
    });
  });

export const releaseSlot = (sql: SqlClient, accountId: string) =>
  sql`UPDATE accounts SET active_sessions = active_sessions - 1 WHERE id = ${accountId}`;

/** Locks the account's row: every other admission, drain or cancellation of the account waits. */
export const lockAccount = (sql: SqlClient, accountId: string) =>
  Effect.map(
    sql<Counter & { readonly queuedFires: number; readonly drainedTurns: string }>`
      SELECT session_cap AS cap, active_sessions AS "activeSessions", queued_fires AS "queuedFires",
        drained_turns AS "drainedTurns"
      FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`,
    ([account]) => account ?? null,
  );
