/** Calls that wait for a person (src/features/approvals/ports/approvals.ts): the table approvals, each row with its call. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { askedNote, decidedNote } from "../ports/approval-notes.ts";
import { approvalWaitingEvent, movedBy, moveEvents } from "../ports/approval-steps.ts";
import { cutPage, readCursor } from "../../../store/cursor.ts";
import {
  Approvals,
  type Approval,
  type ApprovalLimits,
  type ApprovalMove,
  type ApprovalRow,
  type NewApproval,
} from "../ports/approvals.ts";
import type { CallLimits, ExecutorCall } from "../../../store/ports/connectors/executor-calls.ts";
import { onSharedConnection } from "../../../store/postgres/connection/prepared.ts";
import { afterPosition, at, pageLimit, toStored } from "../../../store/postgres/connection/statement.ts";
import { putNote } from "../../../store/postgres/conversations/rows.ts";
import { EventLog } from "../../../store/postgres/events/event-log.ts";
import { insertCall, readRoom } from "../../../store/postgres/connectors/executor-calls.ts";

/** How many results one step of pruning removes. */
const PRUNE_STEP = 1000;

const COLUMNS = `
  approvals.id, approvals.project_id AS "projectId", approvals.status, arguments_envelope AS "sealedArguments",
  result_envelope AS "sealedResult", approvals.message AS reason, asked_at AS "askedAt", expires_at AS "expiresAt",
  decided_by AS "decidedBy", decided_at AS "decidedAt", moved_at AS "movedAt", attended_until AS "attendedUntil",
  delivered_at AS "deliveredAt", session_id AS "sessionId", user_id AS "userId", started_by AS "startedBy", connector,
  tool, origin, pin, rule, arguments_digest AS "argumentsDigest", arguments_bytes AS "argumentsBytes",
  arguments_preview AS "argumentsPreview", at, begun_at AS "begunAt", approver_id AS approver, ended_at AS "endedAt",
  outcome, executor_calls.message, upstream_status AS "upstreamStatus", result_bytes AS "resultBytes"`;

type JoinedRow = Omit<ApprovalRow, "message"> & ExecutorCall & { readonly reason: string | null };

const toApproval = (row: JoinedRow): Approval => {
  const { status, sealedArguments, sealedResult, reason, askedAt, expiresAt, decidedBy, decidedAt, ...rest } =
    row;
  const { movedAt, attendedUntil, deliveredAt, ...call } = rest;
  const { id, projectId } = call;
  const times = { askedAt, expiresAt, decidedAt, movedAt, attendedUntil, deliveredAt };
  return { id, projectId, status, sealedArguments, sealedResult, message: reason, decidedBy, ...times, call };
};

const firstApproval = ([row]: readonly JoinedRow[]): Approval | null =>
  row === undefined ? null : toApproval(row);

const buffer = (bytes: Uint8Array | null): Buffer | null => (bytes === null ? null : Buffer.from(bytes));

const makeReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const from = sql.literal(
    `SELECT ${COLUMNS} FROM approvals JOIN executor_calls ON executor_calls.id = approvals.id`,
  );
  return {
    sql,
    from,
    get: (id: string) => Effect.map(sql<JoinedRow>`${from} WHERE approvals.id = ${id}`, firstApproval),
    /** Holds the approval until the transaction ends. */
    locked: (id: string) =>
      Effect.map(sql<JoinedRow>`${from} WHERE approvals.id = ${id} FOR UPDATE OF approvals`, firstApproval),
  };
});

/** Each of these runs in a transaction of its caller. */
const makeWriting = Effect.gen(function* () {
  const { sql, locked } = yield* makeReading;
  const events = yield* EventLog;
  const joinApproval = ({ call }: NewApproval) => sql<{ readonly id: string }>`
    SELECT approvals.id FROM approvals JOIN executor_calls ON executor_calls.id = approvals.id
    WHERE delivered_at IS NULL AND approvals.project_id = ${call.projectId} AND session_id = ${call.sessionId}
      AND connector = ${call.connector} AND tool = ${call.tool} AND origin = ${call.origin}
      AND pin IS NOT DISTINCT FROM ${call.pin} AND arguments_digest = ${call.argumentsDigest}`;
  const countPending = (sessionId: string, projectId: string) => sql<{ readonly count: number }>`
    SELECT count(*)::integer AS count FROM approvals JOIN executor_calls ON executor_calls.id = approvals.id
    WHERE delivered_at IS NULL AND status = 'pending' AND approvals.project_id = ${projectId}
      AND session_id = ${sessionId}`;
  const ask = Effect.fnUntraced(function* (approval: NewApproval, limits: ApprovalLimits) {
    const { call, sealedArguments, expiresAt, attendedUntil } = approval;
    const room = yield* readRoom(sql, { ...call, sessionId: null, now: call.at }, limits);
    const [held] = yield* joinApproval(approval);
    if (held !== undefined) return { id: held.id, isNew: false };
    const [waiting] = yield* countPending(call.sessionId, call.projectId);
    if ((waiting?.count ?? 0) >= limits.open) return "session_full" as const;
    if (room !== "free") return "connector_busy" as const;
    yield* insertCall(sql, call, { outcome: "pending", message: null, from: "" });
    yield* sql`
      INSERT INTO approvals (id, project_id, status, arguments_envelope, asked_at, expires_at, moved_at, attended_until)
      VALUES (${call.id}, ${call.projectId}, 'pending', ${buffer(sealedArguments)}, ${at(call.at)}, ${at(expiresAt)},
        ${at(call.at)}, ${at(attendedUntil)})`;
    yield* putNote(sql, askedNote(call));
    yield* events.append([approvalWaitingEvent(call)]);
    return { id: call.id, isNew: true };
  });

  const write = Effect.fnUntraced(function* (row: Approval) {
    const { call } = row;
    yield* sql`
      UPDATE approvals SET status = ${row.status}, arguments_envelope = ${buffer(row.sealedArguments)},
        result_envelope = ${buffer(row.sealedResult)}, message = ${row.message}, decided_by = ${row.decidedBy},
        decided_at = ${at(row.decidedAt)}, moved_at = ${at(row.movedAt)}, delivered_at = ${at(row.deliveredAt)}
      WHERE id = ${row.id}`;
    yield* sql`
      UPDATE executor_calls SET begun_at = ${at(call.begunAt)}, approver_id = ${call.approver},
        ended_at = ${at(call.endedAt)}, outcome = ${call.outcome}, message = ${call.message},
        upstream_status = ${call.upstreamStatus}, result_bytes = ${call.resultBytes}
      WHERE id = ${row.id}`;
  });
  const readNames = (userId: string) => sql<{ readonly name: string }>`
    SELECT name FROM users WHERE id = ${userId}`;
  const move = Effect.fnUntraced(function* (id: string, change: ApprovalMove) {
    const before = yield* locked(id);
    const next = before === null ? null : movedBy(before, change);
    if (before === null || next === null) return null;
    yield* write(next);
    const [decider] = next.decidedBy === null ? [] : yield* readNames(next.decidedBy);
    const note = decidedNote(next, change, () => decider?.name ?? "A person");
    if (note !== null) yield* putNote(sql, note);
    yield* events.append(moveEvents(before, next));
    return next;
  });
  const begin = Effect.fnUntraced(function* (id: string, limits: CallLimits, now: number) {
    const approval = yield* locked(id);
    if (approval?.status !== "approved") return "moved" as const;
    if ((yield* readRoom(sql, { ...approval.call, now }, limits)) !== "free") return "busy" as const;
    return (yield* move(id, { type: "call.begun", now })) === null ? ("moved" as const) : ("begun" as const);
  });
  return { ask, move, begin };
});

export const layer = Layer.effect(
  Approvals,
  Effect.gen(function* () {
    const { sql, from, get } = yield* makeReading;
    const { ask, move, begin } = yield* makeWriting;
    return {
      ask: (approval, limits) => sql.withTransaction(ask(approval, limits)).pipe(toStored("approvals.ask")),
      find: (projectId, id) =>
        get(id).pipe(
          Effect.map((approval) => (approval?.projectId === projectId ? approval : null)),
          onSharedConnection,
          toStored("approvals.find"),
        ),
      get: (id) => get(id).pipe(onSharedConnection, toStored("approvals.get")),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, sessionId, status }) {
        const position = yield* readCursor(cursor);
        const ofSession = sessionId === undefined ? sql.literal("") : sql` AND session_id = ${sessionId}`;
        const inStatus = status === undefined ? sql.literal("") : sql` AND status = ${status}`;
        const place = afterPosition(sql, { at: "asked_at", id: "approvals.id" }, position);
        const rows = yield* sql<JoinedRow>`
          ${from} WHERE approvals.project_id = ${projectId}${ofSession}${inStatus} ${place}
          ORDER BY asked_at DESC, approvals.id DESC ${pageLimit(sql, limit)}`;
        return cutPage(rows.map(toApproval), limit, ({ askedAt, id }) => ({ at: askedAt, id }));
      }, toStored("approvals.list")),
      move: (id, change) => sql.withTransaction(move(id, change)).pipe(toStored("approvals.move")),
      begin: (id, { limits, now }) =>
        sql.withTransaction(begin(id, limits, now)).pipe(toStored("approvals.begin")),
      attend: (id, until) =>
        sql`UPDATE approvals SET attended_until = ${at(until)} WHERE id = ${id}`.pipe(
          Effect.asVoid,
          toStored("approvals.attend"),
        ),
      due: (now, lostBefore, limit) =>
        sql<Pick<ApprovalRow, "id" | "status">>`
          SELECT id, status FROM approvals
          WHERE delivered_at IS NULL AND CASE status
            WHEN 'approved' THEN true
            WHEN 'calling' THEN moved_at < ${at(lostBefore)}
            WHEN 'pending' THEN expires_at <= ${at(now)}
            ELSE attended_until <= ${at(now)}
          END
          ORDER BY moved_at ${sql.literal(`LIMIT ${limit}`)}`.pipe(toStored("approvals.due")),
      pruneResults: (before) =>
        sql<{ readonly id: string }>`
          UPDATE approvals SET result_envelope = NULL WHERE id IN (
            SELECT id FROM approvals WHERE result_envelope IS NOT NULL AND delivered_at < ${at(before)}
            LIMIT ${PRUNE_STEP}
          ) RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          toStored("approvals.pruneResults"),
        ),
    };
  }),
);
