/** Change requests (api.md 6). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import { pageOf, positionOf } from "../cursor.ts";
import { changeRequestEvent } from "../event-rows.ts";
import { Taken } from "../port.ts";
import { ChangeRequests } from "../change-requests.ts";
import type { ChangeRequest } from "../records.ts";
import { violatedConstraint } from "./errors.ts";
import { EventLog } from "./event-log.ts";
import { after, at, stored } from "./statement.ts";

const COLUMNS = `
  id, project_id AS "projectId", number, session_id AS "sessionId", head_ref AS "headRef", base_ref AS "baseRef",
  title, description, status, created_by AS "createdBy", created_at AS "createdAt", updated_at AS "updatedAt",
  base_commit AS "baseCommit", head_commit AS "headCommit",
  merged_commit AS "mergedCommit", merged_at AS "mergedAt", merged_by AS "mergedBy"`;

type Row = Omit<ChangeRequest, "mergeSides" | "merged"> & {
  readonly baseCommit: string | null;
  readonly headCommit: string | null;
  readonly mergedCommit: string | null;
  readonly mergedAt: number | null;
  readonly mergedBy: string | null;
};

/** The columns of each of the two are all null or none (constraints of migration 0010). */
const requestOf = (row: Row): ChangeRequest => {
  const { baseCommit: base, headCommit: head, mergedCommit: commit, mergedAt, mergedBy: by, ...rest } = row;
  return {
    ...rest,
    mergeSides: base === null || head === null ? null : { base, head },
    merged: commit === null || mergedAt === null || by === null ? null : { commit, at: mergedAt, by },
  };
};

type Service = (typeof ChangeRequests)["Service"];
type OpenRequest = Parameters<Service["open"]>[0];

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (request: OpenRequest) {
    const { projectId, sessionId, now } = request;
    const [row] = yield* sql<Row>`
      WITH numbered AS (
        UPDATE projects SET change_requests = change_requests + 1 WHERE id = ${projectId}
        RETURNING change_requests AS number
      )
      INSERT INTO change_requests (id, project_id, number, session_id, head_ref, base_ref, title, description,
        status, created_by, created_at, updated_at)
      SELECT ${request.id}::uuid, ${projectId}::uuid, number, ${sessionId}::uuid, ${request.headRef},
        ${request.baseRef}, ${request.title}, ${request.description}, 'open', ${request.createdBy}::uuid,
        ${at(now)}::timestamptz, ${at(now)}::timestamptz
      FROM numbered RETURNING ${sql.literal(COLUMNS)}`;
    if (row === undefined) return yield* Effect.die(new Error("a change request of an unknown project"));
    const opened = requestOf(row);
    yield* events.append([changeRequestEvent(opened)]);
    return opened;
  });
});

/** The two ways out of `open`. Each is one conditional update: a second one of the same kind changes nothing. */
const makeMoves = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const columns = sql.literal(COLUMNS);
  const get: Service["get"] = (projectId, number) =>
    sql<Row>`SELECT ${columns} FROM change_requests WHERE project_id = ${projectId} AND number = ${number}`.pipe(
      Effect.map(([row]) => (row === undefined ? null : requestOf(row))),
      stored("changeRequests.get"),
    );
  /** Tells of the row that a move changed; where it changed none, the request is read as it is. */
  const moved = <E>(
    changed: Effect.Effect<readonly Row[], E>,
    [projectId, number]: readonly [string, number],
  ) =>
    Effect.gen(function* () {
      const [row] = yield* changed;
      if (row === undefined) return yield* get(projectId, number);
      const request = requestOf(row);
      yield* events.append([changeRequestEvent(request)]);
      return request;
    }).pipe(sql.withTransaction);
  const recordMerge: Service["recordMerge"] = (projectId, number, { base, head, commit, by, now }) =>
    moved(
      sql<Row>`
        UPDATE change_requests SET status = 'merged', base_commit = ${base}, head_commit = ${head},
          merged_commit = ${commit}, merged_at = ${at(now)}, merged_by = ${by}, updated_at = ${at(now)}
        WHERE project_id = ${projectId} AND number = ${number} AND status <> 'merged' RETURNING ${columns}`,
      [projectId, number],
    ).pipe(stored("changeRequests.recordMerge"));
  const close: Service["close"] = (projectId, number, now) =>
    moved(
      sql<Row>`
        UPDATE change_requests SET status = 'closed', updated_at = ${at(now)}
        WHERE project_id = ${projectId} AND number = ${number} AND status = 'open' RETURNING ${columns}`,
      [projectId, number],
    ).pipe(stored("changeRequests.close"));
  return { get, recordMerge, close };
});

export const layer = Layer.effect(
  ChangeRequests,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const open = yield* makeOpen;
    return {
      ...(yield* makeMoves),
      open: (request) =>
        sql.withTransaction(open(request)).pipe(
          Effect.mapError((error) =>
            isSqlError(error) && violatedConstraint(error) === "change_requests_open_head_key"
              ? new Taken({ what: request.headRef })
              : error,
          ),
          stored("changeRequests.open"),
        ),
      beginMerge: (projectId, number, { base, head }) =>
        sql`
          UPDATE change_requests SET base_commit = ${base}, head_commit = ${head}
          WHERE project_id = ${projectId} AND number = ${number} AND status = 'open' RETURNING number`.pipe(
          Effect.map((rows) => rows.length > 0),
          stored("changeRequests.beginMerge"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, status }) {
        const position = yield* positionOf(cursor);
        const rows = yield* sql<Row>`
          SELECT ${columns} FROM change_requests
          WHERE project_id = ${projectId} AND (${status}::text IS NULL OR status = ${status})
            ${after(sql, { at: "created_at", id: "id" }, position)}
          ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`;
        return pageOf(rows.map(requestOf), limit, ({ createdAt, id }) => ({ at: createdAt, id }));
      }, stored("changeRequests.list")),
    };
  }),
);
