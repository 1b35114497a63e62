/** Changes of status in the ledger of fires. The table of moves (domain/trigger/fire.ts) makes each statement's condition. */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import {
  FIRE_MOVES,
  FIRE_STATUSES,
  ForbiddenMove,
  type FireStatus,
  type WaitEnd,
} from "../../../domain/trigger/fire.ts";
import { fireEvents, type EventFire } from "../../event-rows.ts";
import type { EventLog } from "../events/event-log.ts";
import { FIRE_COLUMNS } from "./fires.ts";
import { leaveQueue } from "./slots.ts";

/** Each allowed pair of a former status and the next one: `('queued', 'fired'), …`. */
export const ALLOWED_MOVES = FIRE_STATUSES.flatMap((former) =>
  Object.keys(FIRE_MOVES[former]).map((next) => `('${former}', '${next}')`),
).join(", ");

/** The status of a fire that waits (domain/trigger/fire.ts, F2). */
const QUEUED: FireStatus = "queued";

/**
 * Takes fires out of the queue. Their rows say why they will not start. If a row does not have the status `queued`, that is a
 * defect, which rolls the transaction back.
 *
 * @param which the condition on `fire_queue`.
 * @returns the rows as they are now.
 */
export const endWait = Effect.fnUntraced(function* (
  sql: SqlClient,
  which: Fragment,
  { status, reason }: { readonly status: WaitEnd; readonly reason: string },
) {
  const rows = yield* sql<EventFire | { readonly id: null }>`
    WITH gone AS (
      DELETE FROM fire_queue WHERE ${which}
      RETURNING fire_id, CASE WHEN kind = 'session' THEN session ->> 'createdBy' END AS "requestedBy"
    ),
    ended AS (
      UPDATE fires SET status = ${status}, reason = ${reason} FROM gone
      WHERE id = gone.fire_id AND status = ${QUEUED} RETURNING ${sql.literal(FIRE_COLUMNS)}
    )
    SELECT ended.*, gone."requestedBy" FROM gone LEFT JOIN ended ON ended.id = gone.fire_id`;
  const fires = rows.filter((row): row is EventFire => row.id !== null);
  if (fires.length < rows.length) return yield* Effect.die(new ForbiddenMove("its status", status));
  return fires;
});

interface Ends {
  readonly sql: SqlClient;
  readonly events: EventLog["Service"];
}

interface EndOfWaits {
  readonly accountId: string;
  readonly status: WaitEnd;
  readonly reason: string;
  readonly now: number;
}

/**
 * Ends the waits of fires of an account, with their events. The caller has the account's lock.
 *
 * @param which the condition on `fire_queue`
 * @returns how many ended
 */
export const endWaits = Effect.fnUntraced(function* (
  { sql, events }: Ends,
  which: Fragment,
  { accountId, status, reason, now }: EndOfWaits,
) {
  const fires = yield* endWait(sql, which, { status, reason });
  yield* leaveQueue(sql, accountId, fires.length);
  yield* events.append(fireEvents(fires, now));
  return fires.length;
});

/** The same for waits that are cancelled. */
export const cancelWaits = (ends: Ends, which: Fragment, how: Omit<EndOfWaits, "status">) =>
  endWaits(ends, which, { ...how, status: "cancelled" });

/** A later instant has taken these fires' places in the queue. */
export const overlap = Effect.fnUntraced(function* (sql: SqlClient, ids: readonly string[]) {
  if (ids.length === 0) return;
  const status: WaitEnd = "skipped";
  const rows = yield* sql`
    UPDATE fires SET status = ${status}, reason = 'overlapped'
    WHERE id = ANY(${ids}::uuid[]) AND status = ${QUEUED} RETURNING id`;
  if (rows.length < ids.length) return yield* Effect.die(new ForbiddenMove("its status", status));
});
