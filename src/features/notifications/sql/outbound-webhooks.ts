/** Receivers of a project's events: the table outbound_webhooks. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { RECEIVERS_MAX, sealedName } from "../rules/outbound-receiver.ts";
import type { DisabledReason } from "../rules/outbound-tries.ts";
import { cutNewest, readCursor } from "../../../store/cursor.ts";
import { webhookDisabledEvent } from "../../../store/event-rows.ts";
import { Fenced } from "../../../store/ports/journal.ts";
import {
  DELIVERIES_WAITING_MAX,
  OutboundWebhooks,
  ReceiversFull,
  type NewDelivery,
  type OutboundWebhook,
  type ReceiverBehind,
} from "../ports/outbound-webhooks.ts";
import { EventLog } from "../../../store/postgres/events/event-log.ts";
import { at, jsonb, newestPage, toStored } from "../../../store/postgres/connection/statement.ts";
import { type Resealing, resealRows } from "../../../store/postgres/reseal.ts";

const COLUMNS = `id, project_id AS "projectId", format, shown_url AS "shownUrl", events, sealed_version AS "sealedVersion",
  envelope, previous_secret_until AS "previousSecretUntil", status, disabled_reason AS "disabledReason",
  failing_since AS "failingSince", warned_at AS "warnedAt", created_at AS "createdAt", updated_at AS "updatedAt"`;

export const SEALED_COLUMNS = ["outbound_webhooks.envelope"] as const;
/** Addresses and signing secrets of receivers, which belong to projects or to people. @returns how many */
export const resealReceivers = <E>(reseal: Resealing<E>["reseal"]) =>
  Effect.zipWith(
    resealRows({ table: "outbound_webhooks", owner: "project_id", before: sealedName("") })(reseal),
    resealRows({ table: "outbound_webhooks", owner: "user_id", before: sealedName("") })(reseal),
    (projects, people) => projects + people,
  );

interface Row extends Omit<OutboundWebhook, "sealed"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array;
}

const toWebhook = ({ sealedVersion, envelope, ...row }: Row): OutboundWebhook => ({
  ...row,
  sealed: { version: sealedVersion, envelope },
});
const firstWebhook = ([row]: readonly Row[]) => (row === undefined ? null : toWebhook(row));

type Service = (typeof OutboundWebhooks)["Service"];

/** A cursor of the events as its two columns (events.ts). */
export const parsePlace = (cursor: string): { readonly tx: string; readonly row: string } => {
  const [tx = "0", row = "0"] = cursor.split(".");
  return { tx, row };
};

/**
 * Disables an enabled receiver inside the caller's transaction: cancels what waits, and writes the event of its project
 * (ports/outbound-webhooks.ts O3). A person's own receiver has no project.
 */
export const makeDisable = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (id: string, reason: DisabledReason, now: number) {
    const [disabled] = yield* sql<{ readonly projectId: string | null }>`
      UPDATE outbound_webhooks SET status = 'disabled', disabled_reason = ${reason}, updated_at = ${at(now)}
      WHERE id = ${id} AND status = 'enabled' RETURNING project_id AS "projectId"`;
    if (disabled === undefined) return;
    yield* sql`
      UPDATE outbound_deliveries SET status = 'cancelled', due_at = NULL, leased_until = NULL, ended_at = ${at(now)}
      WHERE outbound_webhook_id = ${id} AND status = 'pending'`;
    const { projectId } = disabled;
    if (projectId !== null) yield* events.append([webhookDisabledEvent({ id, projectId }, reason, now)]);
  });
});

const makeWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);

  const create = Effect.fnUntraced(function* (webhook: Parameters<Service["create"]>[0]) {
    const { id, projectId, sealed, now } = webhook;
    const { tx, row } = parsePlace(webhook.cursor);
    // Two requests for one project wait for each other, and the second one counts the first one's row.
    yield* sql`SELECT id FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`;
    const [held] = yield* sql<{ readonly count: number }>`
      SELECT count(*)::integer AS count FROM outbound_webhooks WHERE project_id = ${projectId}`;
    if ((held?.count ?? 0) >= RECEIVERS_MAX) return yield* new ReceiversFull({ limit: RECEIVERS_MAX });
    const result = firstWebhook(
      yield* sql<Row>`
        INSERT INTO outbound_webhooks (id, project_id, format, shown_url, events, sealed_version, envelope, status,
          cursor_tx, cursor_row, created_at, updated_at)
        VALUES (${id}, ${projectId}, ${webhook.format}, ${webhook.shownUrl}, ${[...webhook.events]}, ${sealed.version},
          ${Buffer.from(sealed.envelope)}, 'enabled', ${tx}::text::xid8, ${row}::bigint, ${at(now)}, ${at(now)})
        RETURNING ${columns}`,
    );
    return result ?? (yield* Effect.die(new Error("an inserted row was not returned")));
  });

  const get = (projectId: string, id: string) =>
    Effect.map(
      sql<Row>`SELECT ${columns} FROM outbound_webhooks WHERE project_id = ${projectId} AND id = ${id}`,
      firstWebhook,
    );

  const change = Effect.fnUntraced(function* (wish: Parameters<Service["change"]>[0]) {
    const { projectId, id, events, secrets, now } = wish;
    const result = firstWebhook(
      yield* sql<Row>`
        UPDATE outbound_webhooks SET ${sql.update({
          updated_at: at(now),
          ...(events !== undefined && { events: [...events] }),
          ...(secrets !== undefined && {
            shown_url: secrets.shownUrl,
            sealed_version: secrets.version,
            envelope: Buffer.from(secrets.envelope),
            previous_secret_until: at(secrets.previousSecretUntil),
          }),
        })} WHERE project_id = ${projectId} AND id = ${id}
          ${secrets === undefined ? sql.literal("") : sql`AND sealed_version = ${secrets.version - 1}`}
        RETURNING ${columns}`,
    );
    if (result === null && (yield* get(projectId, id)) !== null) return yield* new Fenced({ id });
    return result;
  });

  const enable = Effect.fnUntraced(function* (...[projectId, id, from]: Parameters<Service["enable"]>) {
    const { tx, row } = parsePlace(from.cursor);
    yield* sql`
      UPDATE outbound_webhooks SET status = 'enabled', disabled_reason = NULL, failing_since = NULL, warned_at = NULL,
        cursor_tx = ${tx}::text::xid8, cursor_row = ${row}::bigint, updated_at = ${at(from.now)}
      WHERE project_id = ${projectId} AND id = ${id} AND status = 'disabled'`;
    return yield* get(projectId, id);
  });
  return { create, get, change, enable };
});

const deliveryRow = ({ id, messageId, type, message }: NewDelivery) => ({
  id,
  message_id: messageId,
  type,
  message,
});

/** Writes deliveries of a receiver, due now, inside the caller's transaction. Beyond `DELIVERIES_WAITING_MAX` it is disabled. */
export const makeInsertDeliveries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const disable = yield* makeDisable;
  return Effect.fnUntraced(function* (id: string, deliveries: readonly NewDelivery[], now: number) {
    yield* sql`
      INSERT INTO outbound_deliveries (id, outbound_webhook_id, message_id, type, message, status, due_at, created_at)
      SELECT d.id, ${id}::uuid, d.message_id, d.type, d.message, 'pending', ${at(now)}::timestamptz, ${at(now)}::timestamptz
      FROM jsonb_to_recordset(${jsonb(deliveries.map(deliveryRow))}::jsonb)
        AS d(id uuid, message_id text, type text, message text)
      ON CONFLICT (outbound_webhook_id, message_id) DO NOTHING`;
    const [waiting] = yield* sql<{ readonly count: number }>`
      SELECT count(*)::integer AS count FROM outbound_deliveries
      WHERE outbound_webhook_id = ${id} AND status = 'pending'`;
    if ((waiting?.count ?? 0) > DELIVERIES_WAITING_MAX) yield* disable(id, "backlog", now);
  });
});

const makeCollect = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const insert = yield* makeInsertDeliveries;
  return Effect.fnUntraced(function* (collection: Parameters<Service["collect"]>[0]) {
    const { id, deliveries, now } = collection;
    const [from, to] = [parsePlace(collection.from), parsePlace(collection.to)];
    const moves = yield* sql`
      UPDATE outbound_webhooks SET cursor_tx = ${to.tx}::text::xid8, cursor_row = ${to.row}::bigint
      WHERE id = ${id} AND status = 'enabled' AND cursor_tx = ${from.tx}::text::xid8 AND cursor_row = ${from.row}::bigint
      RETURNING id`;
    if (moves.length === 0) return false;
    if (deliveries.length > 0) yield* insert(id, deliveries, now);
    return true;
  });
});

export const layer = Layer.effect(
  OutboundWebhooks,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { create, get, change, enable } = yield* makeWrites;
    const disable = yield* makeDisable;
    const collect = yield* makeCollect;
    return {
      create: (webhook) => sql.withTransaction(create(webhook)).pipe(toStored("outboundWebhooks.create")),
      change: (wish) => sql.withTransaction(change(wish)).pipe(toStored("outboundWebhooks.change")),
      enable: (...args) => sql.withTransaction(enable(...args)).pipe(toStored("outboundWebhooks.enable")),
      disable: (projectId, id, { reason, now }) =>
        Effect.gen(function* () {
          if ((yield* get(projectId, id)) === null) return null;
          yield* disable(id, reason, now);
          return yield* get(projectId, id);
        }).pipe(sql.withTransaction, toStored("outboundWebhooks.disable")),
      remove: (projectId, id) =>
        sql`DELETE FROM outbound_webhooks WHERE project_id = ${projectId} AND id = ${id} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("outboundWebhooks.remove"),
        ),
      get: (projectId, id) => get(projectId, id).pipe(toStored("outboundWebhooks.get")),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit }) {
        const position = yield* readCursor(cursor);
        const rows = yield* sql<Row>`
          SELECT ${sql.literal(COLUMNS)} FROM outbound_webhooks
          WHERE project_id = ${projectId} ${newestPage(sql, position, limit)}`;
        return cutNewest(rows.map(toWebhook), limit);
      }, toStored("outboundWebhooks.list")),
      behind: (limit) =>
        sql<ReceiverBehind>`
          SELECT webhook.id, webhook.project_id AS "projectId", project.name AS "projectName", webhook.events,
            cursor_tx::text || '.' || cursor_row::text AS cursor
          FROM outbound_webhooks AS webhook JOIN projects AS project ON project.id = webhook.project_id
          WHERE webhook.status = 'enabled' AND EXISTS (
            SELECT FROM events WHERE events.project_id = webhook.project_id
              AND (events.tx, events.id) > (webhook.cursor_tx, webhook.cursor_row)
              AND events.tx < pg_snapshot_xmin(pg_current_snapshot())
          ) ORDER BY cursor_tx, webhook.id LIMIT ${limit}`.pipe(toStored("outboundWebhooks.behind")),
      collect: (collection) =>
        sql.withTransaction(collect(collection)).pipe(toStored("outboundWebhooks.collect")),
    };
  }),
);
