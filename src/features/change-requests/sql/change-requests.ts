/** Change requests (api.md 6), and the memory of their actors. */
import * as Effect from "effect/Effect";
import { identity } from "effect/Function";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type {
  ChangeRequestCommand,
  ChangeRequestEvent,
  ChangeRequestSnapshot,
} from "../../../machines/change-request.ts";
import {
  changeRequestColumns,
  changeRequestEvent,
  changeRequestMoved,
  OPENED,
  type ChangeRequestColumns,
} from "../ports/change-request-steps.ts";
import { cutNewest, readCursor } from "../../../store/cursor.ts";
import { Taken } from "../../../store/ports/errors.ts";
import {
  ChangeRequests,
  type ChangeRequest,
  type ListedRequest,
  type ListRequest,
  type PullBeside,
} from "../ports/change-requests.ts";
import { firstTransition } from "../../../machines/transition.ts";
import { makeActorMemory } from "../../../store/postgres/actor-memory.ts";
import { violatedConstraint } from "../../../store/postgres/connection/errors.ts";
import { EventLog } from "../../../store/postgres/events/event-log.ts";
import { plannedAnew, onSharedConnection } from "../../../store/postgres/connection/prepared.ts";
import { at, jsonb, newestPage, toStored } from "../../../store/postgres/connection/statement.ts";
import { appendFor } from "../../../store/postgres/outbox.ts";
import { hasRoleIn } from "../../../store/postgres/people/roles.ts";
import { hasSpoken } from "./reviewers.ts";
import { keeping } from "../../../store/postgres/events/transition-rows.ts";

const COLUMNS = `
  id, project_id AS "projectId", number, session_id AS "sessionId", head_ref AS "headRef", base_ref AS "baseRef",
  title, description, status, created_by AS "createdBy", created_at AS "createdAt", updated_at AS "updatedAt",
  base_commit AS "baseCommit", head_commit AS "headCommit",
  merged_commit AS "mergedCommit", merged_at AS "mergedAt", merged_by AS "mergedBy",
  base_tip AS "baseTip", head_tip AS "headTip",
  pull_number AS "pullNumber", pull_url AS "pullUrl", pull_status AS "pullStatus"`;

type Row = Omit<ChangeRequest, "mergeSides" | "merged" | "tips" | "pull"> & {
  readonly baseCommit: string | null;
  readonly headCommit: string | null;
  readonly mergedCommit: string | null;
  readonly mergedAt: number | null;
  readonly mergedBy: string | null;
  readonly baseTip: string | null;
  readonly headTip: string | null;
  readonly pullNumber: number | null;
  readonly pullUrl: string | null;
  readonly pullStatus: PullBeside["status"] | null;
};

/** Number and address are set for every status except `wanted` (constraint change_requests_pull_whole). */
const toPull = (status: Row["pullStatus"], number: number | null, url: string | null): PullBeside | null => {
  if (status === null || status === "wanted") return status === null ? null : { status };
  return number === null || url === null ? null : { status, number, url };
};

/**
 * The columns of each of the first two groups are all null or all set, except who merged (constraints
 * change_requests_sides_whole and change_requests_merge_whole).
 */
const toRequest = (row: Row): ChangeRequest => {
  const { baseCommit: base, headCommit: head, mergedCommit: commit, mergedAt, mergedBy: by, ...others } = row;
  const { baseTip, headTip, pullNumber, pullUrl, pullStatus, ...rest } = others;
  return {
    ...rest,
    tips: { base: baseTip, head: headTip },
    pull: toPull(pullStatus, pullNumber, pullUrl),
    mergeSides: base === null || head === null ? null : { base, head },
    merged: commit === null || mergedAt === null ? null : { commit, at: mergedAt, by },
  };
};

type Service = (typeof ChangeRequests)["Service"];
type OpenRequest = Parameters<Service["open"]>[0];

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (request: OpenRequest) {
    const { id, projectId, sessionId, now } = request;
    const actorRow = { kind: "change_request", id, version: 1, given: "opened" } as const;
    const [row] = yield* sql<Row>`
      WITH numbered AS (
        UPDATE projects SET change_requests = change_requests + 1 WHERE id = ${projectId}
        RETURNING change_requests AS number
      ), opened AS (
      INSERT INTO change_requests (id, project_id, number, session_id, head_ref, base_ref, title, description,
        status, state, state_context, created_by, created_at, updated_at, base_tip, head_tip)
      SELECT ${id}::uuid, ${projectId}::uuid, number, ${sessionId}::uuid, ${request.headRef},
        ${request.baseRef}, ${request.title}, ${request.description}, 'open', ${OPENED.snapshot.state},
        ${jsonb(OPENED.snapshot.context)}::jsonb, ${request.createdBy}::uuid,
        ${at(now)}::timestamptz, ${at(now)}::timestamptz, ${request.tips.base}, ${request.tips.head}
      FROM numbered RETURNING ${sql.literal(COLUMNS)}
      )${keeping(sql, firstTransition(OPENED, { now }), actorRow)}
      SELECT * FROM opened`;
    if (row === undefined) return yield* Effect.die(new Error("a change request of an unknown project"));
    const opening = toRequest(row);
    yield* appendFor(sql, { kind: "change_request", id: opening.id }, { commands: OPENED.commands, now });
    yield* events.append([changeRequestEvent(opening)]);
    return opening;
  });
});

const assignments = ({ mergeSides, status, updatedAt, merged }: ChangeRequestColumns) => ({
  base_commit: mergeSides?.base ?? null,
  head_commit: mergeSides?.head ?? null,
  ...(status !== undefined && { status }),
  ...(updatedAt !== undefined && { updated_at: at(updatedAt) }),
  ...(merged && { merged_commit: merged.commit, merged_at: at(merged.at), merged_by: merged.by }),
});

const makeMemory = Effect.gen(function* () {
  const events = yield* EventLog;
  return yield* makeActorMemory<ChangeRequestSnapshot, ChangeRequestEvent, ChangeRequestCommand, Row>({
    kind: "change_request",
    name: "changeRequests",
    table: "change_requests",
    key: "id",
    state: "state",
    returning: COLUMNS,
    isOneStatement: (change) => changeRequestColumns(change).status === undefined,
    writes: (change) => {
      const columns = changeRequestColumns(change);
      const isMoved = change.before.state !== change.after.state;
      return Effect.succeed({
        columns: assignments(columns),
        finish: (row) =>
          columns.status !== undefined
            ? events.append([changeRequestEvent(toRequest(row))])
            : isMoved
              ? events.wake(row.projectId)
              : Effect.void,
      });
    },
  });
});

const first = ([row]: readonly Row[]): ChangeRequest | null => (row === undefined ? null : toRequest(row));

/** Reads of one request. */
const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  const get: Service["get"] = (projectId, number) =>
    sql<Row>`SELECT ${columns} FROM change_requests WHERE project_id = ${projectId} AND number = ${number}`.pipe(
      Effect.map(first),
      onSharedConnection,
      toStored("changeRequests.get"),
    );
  const byId: Service["byId"] = (id) =>
    sql<Row>`SELECT ${columns} FROM change_requests WHERE id = ${id}`.pipe(
      Effect.map(first),
      onSharedConnection,
      toStored("changeRequests.byId"),
    );
  return { get, byId };
});

/** Reads open requests, and records where their branches are. */
const makeLooks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const columns = sql.literal(COLUMNS);
  const byPull: Service["byPull"] = (projectId, pullNumber) =>
    sql<Row>`
      SELECT ${columns} FROM change_requests
      WHERE project_id = ${projectId} AND pull_number = ${pullNumber} ORDER BY number DESC LIMIT 1`.pipe(
      Effect.map(([row]) => (row === undefined ? null : toRequest(row))),
      toStored("changeRequests.byPull"),
    );
  const findOpen: Service["findOpen"] = (projectId, headRef) =>
    sql<Row>`
      SELECT ${columns} FROM change_requests
      WHERE project_id = ${projectId} AND head_ref = ${headRef} AND status = 'open'`.pipe(
      Effect.map(([row]) => (row === undefined ? null : toRequest(row))),
      toStored("changeRequests.findOpen"),
    );
  const findMerged: Service["findMerged"] = (projectId, { headRef, baseRef, before = null }) =>
    sql<Row>`
      SELECT ${columns} FROM change_requests
      WHERE project_id = ${projectId} AND head_ref = ${headRef} AND base_ref = ${baseRef} AND status = 'merged'
        AND (${before}::integer IS NULL OR number < ${before})
      ORDER BY number DESC LIMIT 1`.pipe(
      Effect.map(([row]) => (row === undefined ? null : toRequest(row))),
      toStored("changeRequests.findMerged"),
    );
  const allOpen: Service["allOpen"] = ({ projectId, after: last, limit }) =>
    sql<Row>`
      SELECT ${columns} FROM change_requests
      WHERE status = 'open' AND (${projectId}::uuid IS NULL OR project_id = ${projectId})
        AND (${last === null} OR (project_id, head_ref) > (${last?.projectId ?? null}::uuid, ${last?.headRef ?? null}))
      ORDER BY project_id, head_ref LIMIT ${limit}`.pipe(
      Effect.map((rows) => rows.map(toRequest)),
      toStored("changeRequests.allOpen"),
    );
  const noteTips: Service["noteTips"] = (projectId, number, { tips: { base, head }, now }) =>
    Effect.gen(function* () {
      const [row] = yield* sql<Row>`
        UPDATE change_requests SET base_tip = ${base}, head_tip = ${head}
        WHERE project_id = ${projectId} AND number = ${number} AND status = 'open'
          AND (base_tip, head_tip) IS DISTINCT FROM (${base}, ${head}) RETURNING ${columns}`;
      if (row !== undefined) yield* events.append([changeRequestMoved(toRequest(row), now)]);
    }).pipe(sql.withTransaction, toStored("changeRequests.noteTips"));
  const edit: Service["edit"] = (projectId, number, { title, description, now }) =>
    Effect.gen(function* () {
      const [row] = yield* sql<Row>`
        UPDATE change_requests SET title = coalesce(${title ?? null}, title),
          description = coalesce(${description ?? null}, description), updated_at = ${at(now)}
        WHERE project_id = ${projectId} AND number = ${number} RETURNING ${columns}`;
      if (row === undefined) return null;
      const result = toRequest(row);
      yield* events.append([changeRequestMoved(result, now)]);
      return result;
    }).pipe(sql.withTransaction, toStored("changeRequests.edit"));
  return { byPull, findOpen, findMerged, allOpen, noteTips, edit };
});

type ListedRow = Row & Pick<ListedRequest, "reviewAsked">;

/** Who asked the reader for a review that she still owes. */
const reviewAsked = (sql: SqlClient.SqlClient, reader: string | null): Fragment => sql`(
  SELECT jsonb_build_object('by', asked_by, 'name', asker.name, 'at', extract(epoch FROM asked_at) * 1000)
  FROM change_request_reviewers AS reviewer JOIN users AS asker ON asker.id = asked_by
  WHERE reviewer.change_request_id = change_requests.id AND user_id = ${reader}::uuid AND status = 'open'
    AND NOT ${sql.literal(hasSpoken("reviewer"))})`;

const makeLists = (sql: SqlClient.SqlClient): Pick<Service, "list" | "listForReader"> => {
  const listIn = Effect.fnUntraced(function* (scope: Fragment, request: ListRequest) {
    const { cursor, limit, status, sessionId, reader = null, isReviewAsked = false } = request;
    const position = yield* readCursor(cursor);
    const ofReviewer = sql`AND id IN (SELECT change_request_id FROM change_request_reviewers WHERE user_id = ${reader}::uuid)
      AND ${reviewAsked(sql, reader)} IS NOT NULL`;
    const rows = yield* sql<ListedRow>`
      SELECT ${sql.literal(COLUMNS)}, ${reviewAsked(sql, reader)} AS "reviewAsked" FROM change_requests
      WHERE ${scope} ${status === null ? sql.literal("") : sql`AND status = ${status}`}
        ${sessionId === undefined ? sql.literal("") : sql`AND session_id = ${sessionId}::uuid`}
        ${isReviewAsked ? ofReviewer : sql.literal("")} ${newestPage(sql, position, limit)}`.pipe(
      status === null && sessionId === undefined && !isReviewAsked ? identity : plannedAnew,
    );
    const items = rows.map(({ reviewAsked: asking, ...row }) =>
      Object.assign(toRequest(row), { reviewAsked: asking }),
    );
    return cutNewest(items, limit);
  });
  return {
    list: (projectId, request) =>
      listIn(sql`project_id = ${projectId}`, request).pipe(toStored("changeRequests.list")),
    listForReader: ({ accountId, userId }, request) =>
      listIn(
        sql`project_id IN (
          SELECT project.id FROM projects AS project
          WHERE project.account_id = ${accountId} AND ${userId === null ? sql`true` : hasRoleIn(sql, userId)})`,
        request,
      ).pipe(toStored("changeRequests.listForReader")),
  };
};

export const layer = Layer.effect(
  ChangeRequests,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const open = yield* makeOpen;
    return {
      ...(yield* makeMemory),
      ...(yield* makeReads),
      ...(yield* makeLooks),
      ...makeLists(sql),
      open: (request) =>
        sql.withTransaction(open(request)).pipe(
          Effect.mapError((error) =>
            isSqlError(error) && violatedConstraint(error) === "change_requests_open_head_key"
              ? new Taken({ what: request.headRef })
              : error,
          ),
          toStored("changeRequests.open"),
        ),
      withPulls: (projectId, limit) =>
        sql<Row>`
          SELECT ${columns} FROM change_requests
          WHERE project_id = ${projectId} AND (status = 'open' OR pull_status IN ('wanted', 'open'))
          ORDER BY status = 'open', number LIMIT ${limit}`.pipe(
          Effect.map((rows) => rows.map(toRequest)),
          toStored("changeRequests.withPulls"),
        ),
      recordPull: (projectId, number, pull) => {
        const pullPage = pull === null || pull.status === "wanted" ? null : pull;
        return sql`
          UPDATE change_requests SET pull_status = ${pull?.status ?? null}, pull_number = ${pullPage?.number ?? null},
            pull_url = ${pullPage?.url ?? null}
          WHERE project_id = ${projectId} AND number = ${number}`.pipe(
          Effect.asVoid,
          toStored("changeRequests.recordPull"),
        );
      },
    };
  }),
);
