/** Reading the ledger of fires and the queue; admissions.ts writes them. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { pageOf, positionOf } from "../cursor.ts";
import { Fires } from "../port.ts";
import type { Fire, QueuedFire } from "../records.ts";
import { after, stored } from "./statement.ts";

export const FIRE_COLUMNS = `
  id, project_id AS "projectId", trigger_slug AS "triggerSlug", kind, status, reason,
  scheduled_for AS "scheduledFor", received_at AS "receivedAt", delivery_id AS "deliveryId",
  session_id AS "sessionId", attempts, replay_of AS "replayOf"`;

/**
 * An account's waiting fires in the order in which they start: every project's oldest, then every project's second, and
 * so on; among projects the one that was served longest ago is first. Serving them one by one gives the same order.
 */
export const queueInOrder = (sql: SqlClient.SqlClient, accountId: string) => sql`
  SELECT waiting.*, project.drained_turn,
    row_number() OVER (PARTITION BY waiting.project_id ORDER BY waiting.arrival) AS turn
  FROM fire_queue AS waiting JOIN projects AS project ON project.id = waiting.project_id
  WHERE waiting.account_id = ${accountId}
  ORDER BY turn, project.drained_turn, waiting.project_id`;

export const layer = Layer.effect(
  Fires,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(FIRE_COLUMNS);
    return {
      get: (id) =>
        sql<Fire>`SELECT ${columns} FROM fires WHERE id = ${id}`.pipe(
          Effect.map(([row]) => row ?? null),
          stored("fires.get"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, slug, status }) {
        const position = yield* positionOf(cursor);
        const rows = yield* sql<Fire>`
          SELECT ${columns} FROM fires
          WHERE project_id = ${projectId}
            AND (${slug}::text IS NULL OR trigger_slug = ${slug})
            AND (${status}::text IS NULL OR status = ${status})
            ${after(sql, { at: "received_at", id: "id" }, position)}
          ORDER BY received_at DESC, id DESC LIMIT ${limit + 1}`;
        return pageOf(rows, limit, ({ receivedAt, id }) => ({ at: receivedAt, id }));
      }, stored("fires.list")),
      lastBySlug: (projectId) =>
        sql<Fire>`
          SELECT DISTINCT ON (trigger_slug) ${columns} FROM fires
          WHERE project_id = ${projectId} ORDER BY trigger_slug, received_at DESC, id DESC`.pipe(
          Effect.map((rows) => new Map(rows.map((fire) => [fire.triggerSlug, fire]))),
          stored("fires.lastBySlug"),
        ),
      queue: (accountId) =>
        sql<Omit<QueuedFire, "position">>`
          SELECT fire_id AS "fireId", project_id AS "projectId", trigger_slug AS "triggerSlug",
            queued_at AS "queuedAt", expires_at AS "expiresAt"
          FROM (${queueInOrder(sql, accountId)}) AS waiting
          ORDER BY turn, drained_turn, project_id`.pipe(
          Effect.map((rows) => rows.map((row, index) => ({ ...row, position: index + 1 }))),
          stored("fires.queue"),
        ),
    };
  }),
);
