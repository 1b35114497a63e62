/** Deliveries of events to receivers: the table outbound_deliveries. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { PersonNow } from "../../../domain/person/role.ts";
import type { Health } from "../rules/outbound-tries.ts";
import { cutNewest, readCursor } from "../../../store/cursor.ts";
import { dueAfter, healthAfterAll, statusAfter } from "../ports/outbound-results.ts";
import {
  DELIVERIES_KEPT_EACH,
  OutboundDeliveries,
  type ClaimedDelivery,
  type DeliveryResult,
  type LastTry,
  type OutboundDelivery,
} from "../ports/outbound-deliveries.ts";
import { makeDisable } from "./outbound-webhooks.ts";
import { PERSON_NOW } from "../../../store/postgres/people/roles.ts";
import { at, jsonb, newestPage, toStored } from "../../../store/postgres/connection/statement.ts";

/** How many deliveries one step of pruning removes. */
const PRUNE_STEP = 1000;

const COLUMNS = `id, outbound_webhook_id AS "webhookId", message_id AS "messageId", type, message, status, tries,
  due_at AS "dueAt", created_at AS "createdAt", ended_at AS "endedAt", tried_at AS "triedAt", took_ms AS "tookMs",
  answer_status AS "answerStatus", answer, error`;

interface Row extends Omit<OutboundDelivery, "lastTry"> {
  readonly triedAt: number | null;
  readonly tookMs: number | null;
  readonly answerStatus: number | null;
  readonly answer: string | null;
  readonly error: string | null;
}

const toLastTry = ({ triedAt, tookMs, answerStatus, answer, error }: Row): LastTry | null =>
  triedAt === null
    ? null
    : { at: triedAt, tookMs: tookMs ?? 0, status: answerStatus, answer: answer ?? "", error };

const toDelivery = (row: Row): OutboundDelivery => {
  const { triedAt: _at, tookMs: _took, answerStatus: _status, answer: _answer, error: _error, ...rest } = row;
  return { ...rest, lastTry: toLastTry(row) };
};

type Service = (typeof OutboundDeliveries)["Service"];

interface ClaimRow extends Omit<ClaimedDelivery, "sealed" | "person"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array | null;
  readonly userId: string | null;
  /** Null for a project's, and if the project is gone. */
  readonly personNow: PersonNow | null;
}

const toClaim = ({ sealedVersion, envelope, userId, personNow, ...row }: ClaimRow): ClaimedDelivery => ({
  ...row,
  person: userId === null ? null : { id: userId, isActive: true, role: null, ...personNow },
  sealed: envelope === null ? null : { version: sealedVersion, envelope },
});

/** What a receiver's person may in the project of a delivery's message. */
const PERSON_OF_RECEIVER = `(
  SELECT to_jsonb(found.*) FROM (
    SELECT ${PERSON_NOW} FROM users
      JOIN projects AS project ON project.id = (delivery.message::jsonb -> 'data' ->> 'project_id')::uuid
    WHERE users.id = webhook.user_id
  ) AS found
)`;

/**
 * Each receiver's due deliveries are locked up to its own free places; two nodes skip each other's. Then the first of
 * every receiver comes before the second of any, and receivers that fail come last.
 */
const makeClaim = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return ({ now, leaseUntil, room }: Parameters<Service["claim"]>[0]) =>
    Effect.map(
      sql<ClaimRow>`
        WITH receivers AS (
          SELECT webhook.id, webhook.failing_since IS NOT NULL AS failing,
            CASE WHEN webhook.failing_since IS NULL THEN ${room.each}::bigint ELSE 1 END - (
              SELECT count(*) FROM outbound_deliveries
              WHERE outbound_webhook_id = webhook.id AND status = 'pending' AND leased_until > ${at(now)}
            ) AS free
          FROM outbound_webhooks AS webhook WHERE webhook.status = 'enabled' AND EXISTS (
            SELECT FROM outbound_deliveries
            WHERE outbound_webhook_id = webhook.id AND status = 'pending' AND due_at <= ${at(now)}
          )
        ), due AS (
          SELECT found.id, failing, found.due_at, row_number() OVER (PARTITION BY receivers.id ORDER BY found.due_at, found.id) AS turn
          FROM receivers CROSS JOIN LATERAL (
            SELECT id, due_at FROM outbound_deliveries
            WHERE outbound_webhook_id = receivers.id AND status = 'pending' AND due_at <= ${at(now)}
              AND (leased_until IS NULL OR leased_until <= ${at(now)})
            ORDER BY due_at, id LIMIT greatest(receivers.free, 0) FOR UPDATE SKIP LOCKED
          ) AS found
        ), placed AS (
          SELECT id, failing, turn, due_at,
            row_number() OVER (PARTITION BY failing ORDER BY turn, due_at, id) AS place FROM due
        ), chosen AS (
          SELECT id FROM placed WHERE NOT failing OR place <= ${room.failing}
          ORDER BY failing, turn, due_at, id LIMIT ${room.all}
        )
        UPDATE outbound_deliveries AS delivery
        SET leased_until = ${at(leaseUntil)}, claim = claim + 1, tries = tries + 1
        FROM chosen, outbound_webhooks AS webhook
        WHERE delivery.id = chosen.id AND webhook.id = delivery.outbound_webhook_id
        RETURNING delivery.id, delivery.outbound_webhook_id AS "webhookId", delivery.message_id AS "messageId",
          delivery.message, delivery.tries, delivery.claim, 
          coalesce(webhook.project_id, webhook.user_id) AS "ownerId", webhook.user_id AS "userId", webhook.format,
          CASE WHEN webhook.user_id IS NOT NULL THEN ${sql.literal(PERSON_OF_RECEIVER)} END AS "personNow",
          webhook.sealed_version AS "sealedVersion", webhook.envelope,
          webhook.failing_since IS NOT NULL AS "isFailing"`,
      (rows) => rows.map(toClaim),
    );
});

const resultRow = (result: DeliveryResult, now: number) => ({
  id: result.id,
  claim: result.claim,
  status: statusAfter(result),
  due_at: dueAfter(result),
  ended_at: dueAfter(result) === null ? now : null,
  took_ms: Math.round(result.outcome.tookMs),
  answer_status: result.outcome.status,
  answer: result.outcome.answer,
  error: result.outcome.error,
});

const makeRecord = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const disable = yield* makeDisable;

  /**
   * Locks the receivers whose health may change. They come before their deliveries, as where one is disabled: the
   * reverse order could deadlock.
   */
  const lockHealth = (results: readonly DeliveryResult[]) => {
    const all = [...new Set(results.map(({ webhookId }) => webhookId))];
    const failing = results.flatMap(({ verdict, webhookId }) =>
      verdict.is === "delivered" ? [] : [webhookId],
    );
    return sql<Health & { readonly id: string }>`
      SELECT id, failing_since AS "failingSince", warned_at AS "warnedAt" FROM outbound_webhooks
      WHERE id = ANY(${all}::uuid[]) AND (failing_since IS NOT NULL OR id = ANY(${failing}::uuid[]))
      ORDER BY id FOR NO KEY UPDATE`;
  };

  return Effect.fnUntraced(function* (results: readonly DeliveryResult[], now: number) {
    const receivers = yield* lockHealth(results);
    const updates = yield* sql<{ readonly id: string }>`
      UPDATE outbound_deliveries AS delivery
      SET status = r.status, due_at = to_timestamp(r.due_at / 1000.0), ended_at = to_timestamp(r.ended_at / 1000.0),
        leased_until = NULL, tried_at = ${at(now)}, took_ms = r.took_ms, answer_status = r.answer_status,
        answer = r.answer, error = r.error
      FROM jsonb_to_recordset(${jsonb(results.map((result) => resultRow(result, now)))}::jsonb) AS r(id uuid,
        claim integer, status text, due_at bigint, ended_at bigint, took_ms integer, answer_status integer, answer text,
        error text)
      WHERE delivery.id = r.id AND delivery.claim = r.claim AND delivery.status = 'pending'
      RETURNING delivery.id`;
    const ids = new Set(updates.map(({ id }) => id));
    for (const { id, ...before } of receivers) {
      const own = results.filter((result) => result.webhookId === id && ids.has(result.id));
      const health = healthAfterAll(before, own, now);
      yield* sql`
        UPDATE outbound_webhooks SET failing_since = ${at(health.failingSince)}, warned_at = ${at(health.warnedAt)}
        WHERE id = ${id}`;
      if (health.disable !== null) yield* disable(id, health.disable, now);
    }
  });
});

const makeReplay = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (...[webhookId, id, now]: Parameters<Service["replay"]>) {
    const [found] = yield* sql<{ readonly isEnabled: boolean; readonly isSending: boolean }>`
      SELECT webhook.status = 'enabled' AS "isEnabled", coalesce(leased_until > ${at(now)}, false) AS "isSending"
      FROM outbound_webhooks AS webhook
      JOIN outbound_deliveries AS delivery ON delivery.outbound_webhook_id = webhook.id
      WHERE webhook.id = ${webhookId} AND delivery.id = ${id} FOR NO KEY UPDATE`;
    if (found === undefined) return null;
    if (!found.isEnabled) return "disabled" as const;
    if (found.isSending) return "sending" as const;
    const [row] = yield* sql<Row>`
      UPDATE outbound_deliveries SET status = 'pending', due_at = ${at(now)}, ended_at = NULL, leased_until = NULL,
        tries = CASE WHEN status = 'pending' THEN tries ELSE 0 END
      WHERE id = ${id} RETURNING ${sql.literal(COLUMNS)}`;
    return row === undefined ? null : toDelivery(row);
  });
});

const makePrune = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return (before: number) =>
    Effect.map(
      sql`
        DELETE FROM outbound_deliveries WHERE id IN (
          (SELECT id FROM outbound_deliveries WHERE ended_at < ${at(before)} LIMIT ${PRUNE_STEP})
          UNION ALL
          (SELECT surplus.id FROM outbound_webhooks AS webhook CROSS JOIN LATERAL (
            SELECT id FROM outbound_deliveries WHERE outbound_webhook_id = webhook.id AND ended_at IS NOT NULL
            ORDER BY created_at DESC, id DESC OFFSET ${DELIVERIES_KEPT_EACH}
          ) AS surplus LIMIT ${PRUNE_STEP})
        ) AND ended_at IS NOT NULL RETURNING id`,
      (rows) => rows.length,
    );
});

export const layer = Layer.effect(
  OutboundDeliveries,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const [claim, record] = [yield* makeClaim, yield* makeRecord];
    const [replay, prune] = [yield* makeReplay, yield* makePrune];
    return {
      claim: (request) => claim(request).pipe(toStored("outboundDeliveries.claim")),
      record: (results, now) =>
        results.length === 0
          ? Effect.void
          : sql.withTransaction(record(results, now)).pipe(toStored("outboundDeliveries.record")),
      list: Effect.fnUntraced(function* (webhookId, { cursor, limit }) {
        const position = yield* readCursor(cursor);
        const rows = yield* sql<Row>`
          SELECT ${columns} FROM outbound_deliveries
          WHERE outbound_webhook_id = ${webhookId} ${newestPage(sql, position, limit)}`;
        return cutNewest(rows.map(toDelivery), limit);
      }, toStored("outboundDeliveries.list")),
      newest: (webhookIds) =>
        sql<Row>`
          SELECT newest.* FROM unnest(${[...webhookIds]}::uuid[]) AS webhook (id) CROSS JOIN LATERAL (
            SELECT ${columns} FROM outbound_deliveries WHERE outbound_webhook_id = webhook.id
            ORDER BY created_at DESC, outbound_deliveries.id DESC LIMIT 1
          ) AS newest`.pipe(
          Effect.map((rows) => new Map(rows.map((row) => [row.webhookId, toDelivery(row)]))),
          toStored("outboundDeliveries.newest"),
        ),
      replay: (...args) => sql.withTransaction(replay(...args)).pipe(toStored("outboundDeliveries.replay")),
      prune: (before) => prune(before).pipe(toStored("outboundDeliveries.prune")),
      waiting: sql<{ readonly count: number; readonly oldestAt: number | null }>`
        SELECT count(*)::integer AS count, min(created_at) AS "oldestAt" FROM outbound_deliveries
        WHERE status = 'pending'`.pipe(
        Effect.map(([row]) => row ?? { count: 0, oldestAt: null }),
        toStored("outboundDeliveries.waiting"),
      ),
    };
  }),
);
