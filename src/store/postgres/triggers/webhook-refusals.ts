/** Refused webhooks: the table webhook_refusals. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { News } from "../../../domain/service/news.ts";
import { cutPage, readCursor } from "../../cursor.ts";
import { deliveryRefusedEvent, REFUSAL_NEWS_MS } from "../../event-rows.ts";
import {
  REFUSALS_KEPT_PER_PROJECT,
  WebhookRefusals,
  type WebhookRefusal,
} from "../../ports/triggers/webhook-refusals.ts";
import { EventLog } from "../events/event-log.ts";
import { afterPosition, at, jsonb, pageLimit, toStored } from "../connection/statement.ts";

/** How many rows one step of pruning removes. */
const PRUNE_STEP = 1000;
const REFUSED: News = "delivery.refused";

interface Row extends Omit<WebhookRefusal, "declaredBytes" | "bodyBytes"> {
  /** pg returns bigint as text. */
  readonly declaredBytes: string | null;
  readonly bodyBytes: string | null;
}

const numberOrNull = (text: string | null): number | null => (text === null ? null : Number(text));

const toRefusal = ({ declaredBytes, bodyBytes, ...row }: Row): WebhookRefusal => ({
  ...row,
  declaredBytes: numberOrNull(declaredBytes),
  bodyBytes: numberOrNull(bodyBytes),
});

const makeAdd = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (refusals: readonly WebhookRefusal[]) {
    if (refusals.length === 0) return;
    yield* sql`
      INSERT INTO webhook_refusals (id, project_id, at, slug, status, code, reason, delivery_id, event, declared_bytes,
        body_bytes, address, forwarded_for)
      SELECT r.id, r."projectId", to_timestamp(r.at / 1000.0), r.slug, r.status, r.code, r.reason, r."deliveryId", r.event,
        r."declaredBytes", r."bodyBytes", r.address, r."forwardedFor"
      FROM jsonb_to_recordset(${jsonb(refusals)}::jsonb) AS r(id uuid, "projectId" uuid, at bigint, slug text,
        status integer, code text, reason text, "deliveryId" text, event text, "declaredBytes" bigint, "bodyBytes" bigint,
        address text, "forwardedFor" text)
      JOIN projects ON projects.id = r."projectId"
      ON CONFLICT DO NOTHING`;
    const firsts = new Map(refusals.toReversed().map((refusal) => [refusal.projectId, refusal]));
    const projects = [...firsts.keys()];
    const quiet = yield* sql<{ readonly id: string }>`
      SELECT project.id FROM projects AS project WHERE project.id = ANY(${projects}::uuid[]) AND NOT EXISTS (
        SELECT FROM events WHERE events.project_id = project.id AND news = ${REFUSED}
          AND at > ${at(Math.min(...refusals.map((refusal) => refusal.at)) - REFUSAL_NEWS_MS)}
      )`;
    yield* events.append(quiet.flatMap(({ id }) => firsts.get(id) ?? []).map(deliveryRefusedEvent));
    yield* sql`
      DELETE FROM webhook_refusals USING (
        SELECT surplus.id FROM unnest(${projects}::uuid[]) AS project (id) CROSS JOIN LATERAL (
          SELECT webhook_refusals.id FROM webhook_refusals WHERE project_id = project.id
          ORDER BY at DESC, webhook_refusals.id DESC OFFSET ${REFUSALS_KEPT_PER_PROJECT}
        ) AS surplus
      ) AS doomed WHERE webhook_refusals.id = doomed.id`;
  });
});

export const layer = Layer.effect(
  WebhookRefusals,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const add = yield* makeAdd;
    return {
      add: (refusals) => sql.withTransaction(add(refusals)).pipe(toStored("webhookRefusals.add")),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, slug }) {
        const position = yield* readCursor(cursor);
        const rows = yield* sql<Row>`
          SELECT id, project_id AS "projectId", at, slug, status, code, reason, delivery_id AS "deliveryId", event,
            declared_bytes AS "declaredBytes", body_bytes AS "bodyBytes", address, forwarded_for AS "forwardedFor"
          FROM webhook_refusals WHERE project_id = ${projectId}
            ${slug === undefined ? sql.literal("") : sql`AND slug = ${slug}`} ${afterPosition(sql, { at: "at", id: "id" }, position)}
          ORDER BY at DESC, id DESC ${pageLimit(sql, limit)}`;
        return cutPage(rows.map(toRefusal), limit, ({ at: instant, id }) => ({ at: instant, id }));
      }, toStored("webhookRefusals.list")),
      prune: (before) =>
        sql<{ readonly id: string }>`
          DELETE FROM webhook_refusals WHERE id IN (
            SELECT id FROM webhook_refusals WHERE at < ${at(before)} LIMIT ${PRUNE_STEP}
          ) RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          toStored("webhookRefusals.prune"),
        ),
    };
  }),
);
