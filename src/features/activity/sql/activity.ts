/** The news of projects: rows of the table events that have a kind of news. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { numberPage, readNumberCursor } from "../../../store/cursor.ts";
import { at, pageLimit, toStored } from "../../../store/postgres/connection/statement.ts";
import { readableProjects } from "../../../store/postgres/people/roles.ts";
import { Activity, type ActivityEntry } from "../ports/activity.ts";

/** Who did it, as an id. `news`: the event, `request`: its change request. */
const DOER = `CASE news.news
  WHEN 'change_request.opened' THEN request.created_by
  WHEN 'change_request.merged' THEN request.merged_by
  WHEN 'change_request.remarked' THEN (news.data ->> 'by')::uuid
  WHEN 'change_request.review_requested' THEN (news.data ->> 'asked_by')::uuid
  WHEN 'fire.expired' THEN (news.data ->> 'requested_by')::uuid
  WHEN 'queue.full' THEN (news.data ->> 'requested_by')::uuid
END`;

const COLUMNS = `news.id::float8 AS number, news.news AS kind, news.at, news.data,
  jsonb_build_object('id', project.id, 'name', project.name) AS project,
  CASE WHEN session.id IS NOT NULL THEN jsonb_build_object('id', session.id, 'name', session.name,
    'triggerSlug', session.trigger_slug, 'prompt', left(session.initial_prompt, 1000)) END AS session,
  CASE WHEN request.id IS NOT NULL THEN jsonb_build_object('number', request.number, 'title', request.title) END AS "changeRequest",
  CASE WHEN person.id IS NOT NULL THEN jsonb_build_object('id', person.id, 'name', person.name) END AS person`;

const JOINS = `
  JOIN projects AS project ON project.id = news.project_id
  LEFT JOIN project_sessions AS session ON session.id = news.session_id AND session.deleted_at IS NULL
  LEFT JOIN change_requests AS request ON request.project_id = news.project_id AND news.news LIKE 'change\\_request.%'
    AND request.number = (news.data ->> 'number')::integer
  LEFT JOIN users AS person ON person.id = ${DOER}`;

export const layer = Layer.effect(
  Activity,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const list: Activity["Service"]["list"] = Effect.fnUntraced(function* (reader, request) {
      const { cursor, limit, personId, isOwn, projectId } = request;
      const before = (yield* readNumberCursor(cursor)) ?? Number.MAX_SAFE_INTEGER;
      const own = sql`coalesce(
        (session.created_by = ${personId} AND session.trigger_slug IS NULL) OR request.created_by = ${personId}
        OR ${personId} IN (news.data ->> 'reviewer_id', news.data ->> 'answers', news.data ->> 'requested_by'), false)`;
      // The newest ones of each project are few, and an index has them. To find a person's own, all are looked at: at most 2,000 of a project.
      const newest = (of: string) =>
        isOwn ? sql.literal("") : sql`ORDER BY ${sql.literal(of)}.id DESC ${pageLimit(sql, limit)}`;
      const rows = yield* sql<ActivityEntry>`
        SELECT ${sql.literal(COLUMNS)}, ${own} AS "isOwn" FROM (
          SELECT newest.* FROM (${readableProjects(sql, reader)}) AS seen CROSS JOIN LATERAL (
            SELECT * FROM events WHERE events.project_id = seen.id AND events.news IS NOT NULL AND events.id < ${before}
            ${newest("events")}
          ) AS newest
          WHERE ${projectId}::uuid IS NULL OR seen.id = ${projectId}::uuid
          ${newest("newest")}
        ) AS news ${sql.literal(JOINS)} WHERE ${isOwn} IS FALSE OR ${own} ORDER BY news.id DESC ${pageLimit(sql, limit)}`;
      return numberPage(rows, limit);
    }, toStored("activity.list"));
    return {
      list,
      seenAt: (personId) =>
        sql<{
          readonly at: number | null;
        }>`SELECT activity_seen_at AS at FROM users WHERE id = ${personId}`.pipe(
          Effect.map(([row]) => row?.at ?? null),
          toStored("activity.seenAt"),
        ),
      see: (personId, seenAt) =>
        sql`UPDATE users SET activity_seen_at = greatest(activity_seen_at, ${at(seenAt)}) WHERE id = ${personId}`.pipe(
          Effect.asVoid,
          toStored("activity.see"),
        ),
    };
  }),
);
