/** The record of calls to connectors (src/store/ports/connectors/executor-calls.ts): the table executor_calls. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { cutPage, readCursor } from "../../cursor.ts";
import {
  ABANDONED,
  ExecutorCalls,
  type CallLimits,
  type ExecutorCall,
  type NewCall,
} from "../../ports/connectors/executor-calls.ts";
import { afterPosition, at, pageLimit, toStored } from "../connection/statement.ts";

/** How many rows one step of pruning removes. */
const PRUNE_STEP = 1000;

const COLUMNS = `
  id, begun_at AS "begunAt", approver_id AS approver, project_id AS "projectId", session_id AS "sessionId", user_id AS "userId", started_by AS "startedBy", connector,
  tool, origin, pin, rule, arguments_digest AS "argumentsDigest", arguments_bytes AS "argumentsBytes",
  arguments_preview AS "argumentsPreview", at, ended_at AS "endedAt", outcome, message,
  upstream_status AS "upstreamStatus", result_bytes AS "resultBytes"`;

type Place = Pick<NewCall, "projectId" | "connector"> & {
  /** Null if the session's calls are not counted. */
  readonly sessionId: string | null;
  readonly now: number;
};

export type Room = "free" | "session_busy" | "connector_busy";

/**
 * Whether there is room for one more call, as an expression. It waits for the lock of the project and keeps it until the
 * transaction ends (migrations/0001_baseline.sql).
 */
const roomFor = (
  sql: SqlClient.SqlClient,
  { projectId, connector, sessionId, now }: Place,
  { perConnector, windowMs, atOnce, openMs }: CallLimits,
) => sql`executor_room(${projectId}::uuid, ${connector}::text, ${sessionId}::uuid, ${at(now - windowMs)}::timestamptz,
  ${perConnector}::integer, ${at(now - openMs)}::timestamptz, ${atOnce}::integer)`;

/** The room for one more call. The project's calls wait for each other until the caller's transaction ends. */
export const readRoom = (sql: SqlClient.SqlClient, place: Place, limits: CallLimits) =>
  sql<{ readonly answer: Room }>`SELECT ${roomFor(sql, place, limits)} AS answer`.pipe(Effect.map(roomIn));

/** The function always answers. */
const roomIn = ([row]: readonly { readonly answer: Room }[]): Room => row?.answer ?? "connector_busy";

/** Writes a call with its outcome, which is null for a call that is sent now. @param from a source of one row, or of none. */
export const insertCall = (
  sql: SqlClient.SqlClient,
  call: NewCall,
  first: {
    readonly outcome: "denied" | "pending" | null;
    readonly message: string | null;
    readonly from: "" | "FROM room WHERE answer = 'free'";
  },
) => sql`
  INSERT INTO executor_calls (id, project_id, session_id, user_id, started_by, connector, tool, origin, pin, rule,
    arguments_digest, arguments_bytes, arguments_preview, at, ended_at, outcome, message)
  SELECT ${call.id}::uuid, ${call.projectId}::uuid, ${call.sessionId}::uuid, ${call.userId}::uuid, ${call.startedBy}::text,
    ${call.connector}::text, ${call.tool}::text, ${call.origin}::text, ${call.pin}::text, ${call.rule}::text,
    ${call.argumentsDigest}::text, ${call.argumentsBytes}::integer, ${call.argumentsPreview}::text,
    ${at(call.at)}::timestamptz, ${at(first.outcome === "denied" ? call.at : null)}::timestamptz, ${first.outcome}::text,
    ${first.message}::text ${sql.literal(first.from)}`;

/**
 * Writes a call if there is room for it, in one statement: the lock of the project is held for a moment only. @returns
 * the room that was found.
 */
const insertIfFree = (
  sql: SqlClient.SqlClient,
  call: NewCall,
  first: {
    readonly limits: CallLimits;
    readonly outcome: "denied" | null;
    readonly message: string | null;
  },
) => {
  // A call that is refused takes no place of its session.
  const sessionId = first.outcome === null ? call.sessionId : null;
  const room = roomFor(sql, { ...call, sessionId, now: call.at }, first.limits);
  const insert = insertCall(sql, call, { ...first, from: "FROM room WHERE answer = 'free'" });
  return sql<{ readonly answer: Room }>`
    WITH room AS MATERIALIZED (SELECT ${room} AS answer), written AS (${insert})
    SELECT answer FROM room`.pipe(Effect.map(roomIn));
};

export const layer = Layer.effect(
  ExecutorCalls,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    return {
      begin: (call, limits) =>
        insertIfFree(sql, call, { limits, outcome: null, message: null }).pipe(
          Effect.map((room) => (room === "free" ? ("begun" as const) : room)),
          toStored("executorCalls.begin"),
        ),
      deny: (call, { message, limits }) =>
        insertIfFree(sql, call, { limits, outcome: "denied", message }).pipe(
          Effect.map((room) => room === "free"),
          toStored("executorCalls.deny"),
        ),
      end: (id, { outcome, message, upstreamStatus, resultBytes, now }) =>
        sql<{ readonly id: string }>`
          UPDATE executor_calls SET outcome = ${outcome}, message = ${message}, upstream_status = ${upstreamStatus},
            result_bytes = ${resultBytes}, ended_at = ${at(now)}
          WHERE id = ${id} AND outcome IS NULL RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("executorCalls.end"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, sessionId, connector }) {
        const position = yield* readCursor(cursor);
        const ofSession = sessionId === undefined ? sql.literal("") : sql` AND session_id = ${sessionId}`;
        const ofConnector = connector === undefined ? sql.literal("") : sql` AND connector = ${connector}`;
        const rows = yield* sql<ExecutorCall>`
          SELECT ${sql.literal(COLUMNS)} FROM executor_calls
          WHERE project_id = ${projectId}${ofSession}${ofConnector} ${afterPosition(sql, { at: "at", id: "id" }, position)}
          ORDER BY at DESC, id DESC ${pageLimit(sql, limit)}`;
        return cutPage(rows, limit, ({ at: instant, id }) => ({ at: instant, id }));
      }, toStored("executorCalls.list")),
      abandon: (before, now) =>
        sql<{ readonly id: string }>`
          UPDATE executor_calls SET outcome = 'unknown', message = ${ABANDONED}, ended_at = ${at(now)}
          WHERE outcome IS NULL AND coalesce(begun_at, at) < ${at(before)} RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          toStored("executorCalls.abandon"),
        ),
      prune: (before) =>
        sql<{ readonly id: string }>`
          DELETE FROM executor_calls WHERE id IN (
            SELECT id FROM executor_calls
            WHERE at < ${at(before)} AND outcome IS DISTINCT FROM 'pending' LIMIT ${PRUNE_STEP}
          ) RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          toStored("executorCalls.prune"),
        ),
    };
  }),
);
