/** The audit record. The rules are those of src/store/ports/audit.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { cutPage, readCursor, type Position } from "../cursor.ts";
import { Audit, type AuditEvent, type AuditRequest, type NewAuditEvent } from "../ports/audit.ts";
import { plannedAnew } from "./connection/prepared.ts";
import { afterPosition, at, jsonb, pageLimit, toStored } from "./connection/statement.ts";

/** How many rows one step of pruning removes at most. */
const PRUNE_STEP = 1000;

/** The second number of the locks of targets. */
const TARGET_LOCKS = 7_120_315_005;

interface Row extends Omit<AuditEvent, "actor"> {
  readonly actorKind: AuditEvent["actor"]["kind"];
  readonly actorId: string | null;
  readonly actorName: string | null;
  readonly tokenId: string | null;
}

const COLUMNS = `
  id, at, account_id AS "accountId", project_id AS "projectId", actor_kind AS "actorKind", actor_id AS "actorId",
  actor_name AS "actorName", token_id AS "tokenId", action, target, outcome, address, user_agent AS "userAgent",
  request_id AS "requestId", changes`;

const toEvent = ({ actorKind, actorId, actorName, tokenId, ...row }: Row): AuditEvent => ({
  ...row,
  actor: { kind: actorKind, id: actorId, name: actorName, tokenId },
});

/** Writes a row, in the transaction of what it records. */
export const insertAudit = (sql: SqlClient.SqlClient, event: NewAuditEvent) => {
  const { actor } = event;
  const personId = actor.kind === "person" ? actor.id : null;
  return sql`
    INSERT INTO audit_events (id, at, account_id, project_id, actor_kind, actor_id, actor_name, token_id, action,
      target, outcome, address, user_agent, request_id, changes)
    VALUES (${event.id}, ${at(event.at)},
      coalesce(${event.accountId}::uuid, (SELECT account_id FROM users WHERE id = ${personId}::uuid),
        (SELECT id FROM accounts ORDER BY created_at, id LIMIT 1)),
      ${event.projectId}, ${actor.kind}, ${actor.id},
      coalesce(${actor.name}, (SELECT name FROM users WHERE id = ${personId}::uuid)), ${actor.tokenId}, ${event.action},
      ${event.target}, ${event.outcome}, ${event.address}, ${event.userAgent}, ${event.requestId},
      ${jsonb(event.changes)}::jsonb)`;
};

/** The rows of a page and one more. Exported for the test of its plans. */
export const pageRows = (sql: SqlClient.SqlClient, request: AuditRequest, position: Position | null) => {
  const { accountId, projectId, actorId, action, since, until, limit } = request;
  const always = sql.literal("");
  return sql<Row>`
    SELECT ${sql.literal(COLUMNS)} FROM audit_events
    WHERE account_id = ${accountId}
      ${projectId === null ? always : sql`AND project_id = ${projectId}`}
      ${actorId === null ? always : sql`AND actor_id = ${actorId}`}
      ${action === null ? always : sql`AND action = ${action}`}
      ${since === null ? always : sql`AND at >= ${at(since)}`}
      ${until === null ? always : sql`AND at < ${at(until)}`}
      ${afterPosition(sql, { at: "at", id: "id" }, position)}
    ORDER BY at DESC, id DESC ${pageLimit(sql, limit)}`;
};

const makeList = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (request: AuditRequest) {
    const rows = yield* pageRows(sql, request, yield* readCursor(request.cursor)).pipe(plannedAnew);
    return cutPage(rows.map(toEvent), request.limit, ({ at: instant, id }) => ({ at: instant, id }));
  }, toStored("audit.list"));

export const layer = Layer.effect(
  Audit,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    recorded: (change, rowOf) =>
      Effect.tap(change, (result) => {
        const event = rowOf(result);
        return event === null ? Effect.void : Effect.asVoid(insertAudit(sql, event));
      }).pipe(sql.withTransaction, toStored("audit.recorded")),
    alone: (target) =>
      sql`SELECT pg_advisory_xact_lock(hashtextextended(${target}, ${TARGET_LOCKS}))`.pipe(
        Effect.asVoid,
        toStored("audit.alone"),
      ),
    append: (event) => Effect.asVoid(insertAudit(sql, event)).pipe(toStored("audit.append")),
    list: makeList(sql),
    prune: (before) =>
      sql<{ readonly id: string }>`
        DELETE FROM audit_events WHERE id IN (
          SELECT id FROM audit_events WHERE at < ${at(before)} LIMIT ${sql.literal(String(PRUNE_STEP))}
        ) RETURNING id`.pipe(
        Effect.map((rows) => rows.length),
        toStored("audit.prune"),
      ),
  })),
);
