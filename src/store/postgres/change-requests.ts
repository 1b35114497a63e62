/** Change requests (api.md 6). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import { pageOf, positionOf } from "../cursor.ts";
import { changeRequestEvent } from "../event-rows.ts";
import { ChangeRequests, Taken } from "../port.ts";
import type { ChangeRequest } from "../records.ts";
import { violatedConstraint } from "./errors.ts";
import { EventLog } from "./event-log.ts";
import { after, at, stored } from "./statement.ts";

const COLUMNS = `
  id, project_id AS "projectId", number, session_id AS "sessionId", head_ref AS "headRef", base_ref AS "baseRef",
  title, description, status, created_by AS "createdBy", created_at AS "createdAt", updated_at AS "updatedAt"`;

type OpenRequest = Parameters<(typeof ChangeRequests)["Service"]["open"]>[0];

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (request: OpenRequest) {
    const { projectId, sessionId, now } = request;
    const [opened] = yield* sql<ChangeRequest>`
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
    if (opened === undefined) return yield* Effect.die(new Error("a change request of an unknown project"));
    yield* events.append([
      changeRequestEvent({ projectId, sessionId, at: now }, { number: opened.number, status: "open" }),
    ]);
    return opened;
  });
});

export const layer = Layer.effect(
  ChangeRequests,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const open = yield* makeOpen;
    return {
      open: (request) =>
        sql.withTransaction(open(request)).pipe(
          Effect.mapError((error) =>
            isSqlError(error) && violatedConstraint(error) === "change_requests_open_head_key"
              ? new Taken({ what: request.headRef })
              : error,
          ),
          stored("changeRequests.open"),
        ),
      get: (projectId, number) =>
        sql<ChangeRequest>`
          SELECT ${columns} FROM change_requests WHERE project_id = ${projectId} AND number = ${number}`.pipe(
          Effect.map(([row]) => row ?? null),
          stored("changeRequests.get"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, status }) {
        const position = yield* positionOf(cursor);
        const rows = yield* sql<ChangeRequest>`
          SELECT ${columns} FROM change_requests
          WHERE project_id = ${projectId} AND (${status}::text IS NULL OR status = ${status})
            ${after(sql, { at: "created_at", id: "id" }, position)}
          ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`;
        return pageOf(rows, limit, ({ createdAt, id }) => ({ at: createdAt, id }));
      }, stored("changeRequests.list")),
    };
  }),
);
