/** The record of calls to connectors (src/store/ports/executor-calls.ts): the table executor_calls. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { pageOf, positionOf } from "../cursor.ts";
import {
  ABANDONED,
  ExecutorCalls,
  type CallLimits,
  type ExecutorCall,
  type NewCall,
} from "../ports/executor-calls.ts";
import { after, at, pageLimit, stored } from "./connection/statement.ts";

/** How many rows one step of pruning removes. */
const PRUNE_STEP = 1000;

const COLUMNS = `
  id, begun_at AS "begunAt", approver_id AS approver, project_id AS "projectId", session_id AS "sessionId", user_id AS "userId", started_by AS "startedBy", connector,
  tool, origin, pin, rule, arguments_digest AS "argumentsDigest", arguments_bytes AS "argumentsBytes",
  arguments_preview AS "argumentsPreview", at, ended_at AS "endedAt", outcome, message,
  upstream_status AS "upstreamStatus", result_bytes AS "resultBytes"`;

type Place = Pick<NewCall, "projectId" | "sessionId" | "connector"> & { readonly now: number };

/** Counts calls before one is written or sent. The caller's transaction holds the lock of the project. */
export const makeCounting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return {
    /** Calls of one project wait for each other here, so that two cannot take the last place. */
    alone: (projectId: string) =>
      sql`SELECT pg_advisory_xact_lock(hashtextextended(${`executor ${projectId}`}, 0))`,
    /** A call that waits for a person counts once it is sent or settled. */
    isConnectorBusy: ({ projectId, connector, now }: Place, { perConnector, windowMs }: CallLimits) =>
      sql<{ readonly count: number }>`
        SELECT count(*)::integer AS count FROM executor_calls
        WHERE project_id = ${projectId} AND connector = ${connector} AND outcome IS DISTINCT FROM 'pending'
          AND (at > ${at(now - windowMs)} OR begun_at > ${at(now - windowMs)})`.pipe(
        Effect.map(([row]) => (row?.count ?? 0) >= perConnector),
      ),
    isSessionBusy: ({ sessionId, now }: Place, { atOnce, openMs }: CallLimits) =>
      sql<{ readonly count: number }>`
        SELECT count(*)::integer AS count FROM executor_calls
        WHERE session_id = ${sessionId} AND outcome IS NULL AND coalesce(begun_at, at) > ${at(now - openMs)}`.pipe(
        Effect.map(([row]) => (row?.count ?? 0) >= atOnce),
      ),
  };
});

/** Writes a call with its outcome, which is null for a call that is sent now. */
export const insertCall = (
  sql: SqlClient.SqlClient,
  call: NewCall,
  first: { readonly outcome: "denied" | "pending" | null; readonly message: string | null },
) => sql`
  INSERT INTO executor_calls (id, project_id, session_id, user_id, started_by, connector, tool, origin, pin, rule,
    arguments_digest, arguments_bytes, arguments_preview, at, ended_at, outcome, message)
  VALUES (${call.id}, ${call.projectId}, ${call.sessionId}, ${call.userId}, ${call.startedBy}, ${call.connector},
    ${call.tool}, ${call.origin}, ${call.pin}, ${call.rule}, ${call.argumentsDigest}, ${call.argumentsBytes},
    ${call.argumentsPreview}, ${at(call.at)}, ${at(first.outcome === "denied" ? call.at : null)}, ${first.outcome},
    ${first.message})`;

const makeWriting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { alone, isConnectorBusy, isSessionBusy } = yield* makeCounting;
  const begin = Effect.fnUntraced(function* (call: NewCall, limits: CallLimits) {
    yield* alone(call.projectId);
    const place = { ...call, now: call.at };
    if (yield* isConnectorBusy(place, limits)) return "connector_busy" as const;
    if (yield* isSessionBusy(place, limits)) return "session_busy" as const;
    yield* insertCall(sql, call, { outcome: null, message: null });
    return "begun" as const;
  });
  const deny = Effect.fnUntraced(function* (call: NewCall, message: string, limits: CallLimits) {
    yield* alone(call.projectId);
    if (yield* isConnectorBusy({ ...call, now: call.at }, limits)) return false;
    yield* insertCall(sql, call, { outcome: "denied", message });
    return true;
  });
  return { begin, deny };
});

export const layer = Layer.effect(
  ExecutorCalls,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { begin, deny } = yield* makeWriting;
    return {
      begin: (call, limits) => sql.withTransaction(begin(call, limits)).pipe(stored("executorCalls.begin")),
      deny: (call, { message, limits }) =>
        sql.withTransaction(deny(call, message, limits)).pipe(stored("executorCalls.deny")),
      end: (id, { outcome, message, upstreamStatus, resultBytes, now }) =>
        sql<{ readonly id: string }>`
          UPDATE executor_calls SET outcome = ${outcome}, message = ${message}, upstream_status = ${upstreamStatus},
            result_bytes = ${resultBytes}, ended_at = ${at(now)}
          WHERE id = ${id} AND outcome IS NULL RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          stored("executorCalls.end"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, sessionId, connector }) {
        const position = yield* positionOf(cursor);
        const ofSession = sessionId === undefined ? sql.literal("") : sql` AND session_id = ${sessionId}`;
        const ofConnector = connector === undefined ? sql.literal("") : sql` AND connector = ${connector}`;
        const rows = yield* sql<ExecutorCall>`
          SELECT ${sql.literal(COLUMNS)} FROM executor_calls
          WHERE project_id = ${projectId}${ofSession}${ofConnector} ${after(sql, { at: "at", id: "id" }, position)}
          ORDER BY at DESC, id DESC ${pageLimit(sql, limit)}`;
        return pageOf(rows, limit, ({ at: instant, id }) => ({ at: instant, id }));
      }, stored("executorCalls.list")),
      abandon: (before, now) =>
        sql<{ readonly id: string }>`
          UPDATE executor_calls SET outcome = 'unknown', message = ${ABANDONED}, ended_at = ${at(now)}
          WHERE outcome IS NULL AND coalesce(begun_at, at) < ${at(before)} RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          stored("executorCalls.abandon"),
        ),
      prune: (before) =>
        sql<{ readonly id: string }>`
          DELETE FROM executor_calls WHERE id IN (
            SELECT id FROM executor_calls
            WHERE at < ${at(before)} AND outcome IS DISTINCT FROM 'pending' LIMIT ${PRUNE_STEP}
          ) RETURNING id`.pipe(
          Effect.map((gone) => gone.length),
          stored("executorCalls.prune"),
        ),
    };
  }),
);
