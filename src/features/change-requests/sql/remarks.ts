/** What people say of a change request. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { changeRequestMoved, remarkMade } from "../ports/change-request-steps.ts";
import type { ChangeRequest } from "../ports/change-requests.ts";
import {
  Remarks,
  REMARKS_MAX,
  type NamedVerdict,
  type NewRemark,
  type Remark,
  type RemarkPlace,
} from "../ports/remarks.ts";
import { cutNewest, readCursor } from "../../../store/cursor.ts";
import { onSharedConnection } from "../../../store/postgres/connection/prepared.ts";
import { at, pageLimit, toStored } from "../../../store/postgres/connection/statement.ts";
import { PERSON_NOW } from "../../../store/postgres/people/roles.ts";
import { EventLog } from "../../../store/postgres/events/event-log.ts";

const COLUMNS = `
  remark.id, change_request_id AS "requestId", kind, body, commit, file, side, first_line AS "firstLine", last_line AS "lastLine",
  reply_to AS "replyTo", remark.created_by AS "createdBy", users.name AS "createdByName", remark.created_at AS "createdAt",
  edited_at AS "editedAt", resolved_by AS "resolvedBy", resolved_at AS "resolvedAt"`;

interface Row extends Omit<Remark, "place" | "resolved"> {
  readonly file: string | null;
  readonly side: RemarkPlace["side"] | null;
  readonly firstLine: number | null;
  readonly lastLine: number | null;
  readonly resolvedBy: string | null;
  readonly resolvedAt: number | null;
}

/** The columns of a place, and of a resolution, are all null or all set (constraints of the table). */
const toRemark = ({ file, side, firstLine, lastLine, resolvedBy, resolvedAt, ...row }: Row): Remark => ({
  ...row,
  place:
    file === null || side === null || firstLine === null || lastLine === null
      ? null
      : { file, side, firstLine, lastLine },
  resolved: resolvedBy === null || resolvedAt === null ? null : { by: resolvedBy, at: resolvedAt },
});

const first = ([row]: readonly Row[]): Remark | null => (row === undefined ? null : toRemark(row));

/** Adds the row, unless the request has too many, or none that the remark could answer. */
const insertRemark = (sql: SqlClient.SqlClient, remark: NewRemark) => {
  const { id, requestId, kind, body, commit, place, replyTo, createdBy, createdAt } = remark;
  return sql<{ readonly id: string }>`
    INSERT INTO change_request_remarks (id, change_request_id, kind, body, commit, file, side, first_line, last_line,
      reply_to, created_by, created_at)
    SELECT ${id}::uuid, ${requestId}::uuid, ${kind}, ${body}, ${commit}, ${place?.file ?? null}, ${place?.side ?? null},
      ${place?.firstLine ?? null}::integer, ${place?.lastLine ?? null}::integer, ${replyTo}::uuid, ${createdBy}::uuid,
      ${at(createdAt)}::timestamptz
    WHERE (SELECT count(*) FROM change_request_remarks WHERE change_request_id = ${requestId}) < ${REMARKS_MAX}
      AND (${replyTo}::uuid IS NULL OR EXISTS (
        SELECT 1 FROM change_request_remarks
        WHERE change_request_id = ${requestId} AND id = ${replyTo}::uuid AND reply_to IS NULL))
    RETURNING id`;
};

/**
 * Stores what the row of a session shows: how many threads of others are open, and who asks for changes, the newest one of those
 * whose newest verdict it is.
 */
const noteSaid = (sql: SqlClient.SqlClient, requestId: string) => sql`
  UPDATE change_requests AS request SET
    open_threads = (SELECT count(*) FROM change_request_remarks AS remark
      WHERE remark.change_request_id = request.id AND remark.kind = 'comment' AND remark.reply_to IS NULL
        AND remark.resolved_at IS NULL AND remark.created_by IS DISTINCT FROM request.created_by),
    changes_asked_by = (SELECT newest.created_by FROM (
        SELECT DISTINCT ON (remark.created_by) remark.kind, remark.created_at, remark.id, remark.created_by
        FROM change_request_remarks AS remark
        WHERE remark.change_request_id = request.id AND remark.kind <> 'comment'
        ORDER BY remark.created_by, remark.created_at DESC, remark.id DESC
      ) AS newest WHERE newest.kind = 'changes_requested' ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1)
  WHERE id = ${requestId}`;

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  const get = (requestId: string, id: string) =>
    sql<Row>`
      SELECT ${columns} FROM change_request_remarks remark JOIN users ON users.id = remark.created_by
      WHERE change_request_id = ${requestId} AND remark.id = ${id}`.pipe(
      Effect.map(first),
      onSharedConnection,
      toStored("remarks.get"),
    );
  const list: Remarks["Service"]["list"] = Effect.fnUntraced(function* (requestId, { cursor, limit }) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Row>`
      SELECT ${columns} FROM change_request_remarks remark JOIN users ON users.id = remark.created_by
      WHERE change_request_id = ${requestId}
        ${
          position === null
            ? sql.literal("")
            : sql`AND (remark.created_at, remark.id) > (${at(position.at)}, ${position.id}::uuid)`
        }
      ORDER BY remark.created_at, remark.id ${pageLimit(sql, limit)}`;
    return cutNewest(rows.map(toRemark), limit);
  }, toStored("remarks.list"));
  const verdicts: Remarks["Service"]["verdicts"] = (requestId) =>
    sql<NamedVerdict>`
      SELECT * FROM (
        SELECT DISTINCT ON (remark.created_by) kind, remark.created_by AS by, users.name, remark.created_at AS at, commit,
          ${sql.literal(PERSON_NOW)}
        FROM change_request_remarks remark JOIN users ON users.id = remark.created_by
        JOIN change_requests AS request ON request.id = change_request_id
        JOIN projects AS project ON project.id = request.project_id
        WHERE change_request_id = ${requestId} AND kind <> 'comment'
        ORDER BY remark.created_by, remark.created_at DESC, remark.id DESC
      ) newest ORDER BY at, by`.pipe(onSharedConnection, toStored("remarks.verdicts"));
  return { get, list, verdicts };
});

export const layer = Layer.effect(
  Remarks,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const events = yield* EventLog;
    const reads = yield* makeReads;

    const noteChange = Effect.fnUntraced(function* (request: ChangeRequest, now: number) {
      yield* noteSaid(sql, request.id);
      yield* events.append([changeRequestMoved(request, now)]);
    });
    /** The row of the request is locked, so that each writer counts the remarks of those before it. */
    const writing = <A, E>(requestId: string, write: Effect.Effect<A, E>) =>
      sql.withTransaction(
        Effect.andThen(sql`SELECT 1 FROM change_requests WHERE id = ${requestId} FOR UPDATE`, write),
      );
    const add = Effect.fnUntraced(function* (request: ChangeRequest, remark: NewRemark) {
      const { id, replyTo, createdAt } = remark;
      const additions = yield* insertRemark(sql, remark);
      if (additions.length === 0) return null;
      yield* noteChange(request, createdAt);
      const above = replyTo === null ? null : yield* reads.get(request.id, replyTo);
      yield* events.append([remarkMade(request, remark, above?.createdBy ?? null)]);
      return yield* reads.get(request.id, id);
    });
    const change = (
      request: ChangeRequest,
      { id, now }: { readonly id: string; readonly now: number },
      set: ReturnType<typeof sql.literal>,
    ) =>
      Effect.gen(function* () {
        const rows = yield* sql`
          UPDATE change_request_remarks SET ${set} WHERE change_request_id = ${request.id} AND id = ${id} RETURNING id`;
        if (rows.length === 0) return null;
        yield* noteChange(request, now);
        return yield* reads.get(request.id, id);
      });
    return {
      ...reads,
      add: (request, remark) => writing(request.id, add(request, remark)).pipe(toStored("remarks.add")),
      edit: (request, id, { body, at: now }) =>
        writing(request.id, change(request, { id, now }, sql`body = ${body}, edited_at = ${at(now)}`)).pipe(
          toStored("remarks.edit"),
        ),
      resolve: (request, id, { by, at: now }) =>
        writing(
          request.id,
          change(
            request,
            { id, now },
            sql`resolved_by = ${by}::uuid, resolved_at = ${by === null ? null : at(now)}::timestamptz`,
          ),
        ).pipe(toStored("remarks.resolve")),
      remove: (request, id, now) =>
        writing(
          request.id,
          Effect.gen(function* () {
            const rows = yield* sql`
              DELETE FROM change_request_remarks WHERE change_request_id = ${request.id} AND id = ${id} RETURNING id`;
            if (rows.length > 0) yield* noteChange(request, now);
            return rows.length > 0;
          }),
        ).pipe(toStored("remarks.remove")),
    };
  }),
);
