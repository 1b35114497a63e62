/** Receivers of people: rows of the table outbound_webhooks with a person, and the table own_notices_place. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { SourceEvent } from "../rules/outbound-event.ts";
import { NOTICE_NEWS, type NoticedSession } from "../rules/own-notice.ts";
import {
  OwnReceivers,
  type OwnNewsWithReceivers,
  type OwnReceiver,
  type NewOwnReceiver,
} from "../ports/own-receivers.ts";
import { at, toStored } from "../../../store/postgres/connection/statement.ts";
import { makeInsertDeliveries, parsePlace } from "./outbound-webhooks.ts";

type Service = (typeof OwnReceivers)["Service"];

const COLUMNS = `id, user_id AS "userId", format, shown_url AS "shownUrl", events AS tells, sealed_version AS "sealedVersion", envelope,
  status, disabled_reason AS "disabledReason", failing_since AS "failingSince", warned_at AS "warnedAt",
  created_at AS "createdAt", updated_at AS "updatedAt"`;

interface Row extends Omit<OwnReceiver, "sealed"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array | null;
}

/** The constraint outbound_webhooks_addressed holds what the type says of format and address. */
const toReceiver = ({ sealedVersion: version, envelope, ...row }: Row): OwnReceiver =>
  ({ ...row, sealed: envelope === null ? null : { version, envelope } }) as OwnReceiver;

const makeAddress = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return (userId: string) =>
    Effect.map(
      sql<{ readonly email: string }>`
        SELECT email FROM identities WHERE user_id = ${userId} AND email IS NOT NULL
        ORDER BY signed_in_at DESC NULLS LAST, id LIMIT 1`,
      ([row]) => row?.email ?? null,
    );
});

const makeSave = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* ({ id, userId, format, shownUrl, sealed, tells, now }: NewOwnReceiver) {
    // Two requests of one person wait for each other (ports/own-receivers.ts R1).
    yield* sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`;
    yield* sql`
      DELETE FROM outbound_webhooks
      WHERE user_id = ${userId} AND (format = 'mail') = ${format === "mail"} AND id <> ${id}`;
    // The place takes its default: the end of the events (ports/own-receivers.ts R3).
    const [row] = yield* sql<Row>`
      INSERT INTO outbound_webhooks (id, user_id, format, shown_url, events, sealed_version, envelope, status, created_at, updated_at)
      VALUES (${id}, ${userId}, ${format}, ${shownUrl}, ${[...tells]}, ${sealed?.version ?? 1},
        ${sealed === null ? null : Buffer.from(sealed.envelope)}, 'enabled', ${at(now)}, ${at(now)})
      ON CONFLICT (id) DO UPDATE SET events = excluded.events, status = 'enabled', disabled_reason = NULL, failing_since = NULL,
        warned_at = NULL, cursor_tx = excluded.cursor_tx, cursor_row = excluded.cursor_row, updated_at = excluded.updated_at
      RETURNING ${sql.literal(COLUMNS)}`;
    return row === undefined
      ? yield* Effect.die(new Error("an inserted row was not returned"))
      : toReceiver(row);
  });
});

interface NewsRow extends Omit<SourceEvent, "cursor"> {
  readonly tx: string;
  readonly id: string;
  readonly projectName: string;
  readonly session: NoticedSession | null;
  readonly receivers: OwnNewsWithReceivers["receivers"];
}

/** The people whose messages a session has. */
const WRITERS = `ARRAY(
  SELECT DISTINCT item.record -> 'author' ->> 'userId' FROM conversation_items AS item
  WHERE item.session_id = news.session_id AND item.kind = 'message' AND item.record -> 'author' ->> 'kind' = 'user'
)`;

const makeNews = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const writers = sql.literal(WRITERS);
  return Effect.fnUntraced(function* (limit: number) {
    const rows = yield* sql<NewsRow>`
      WITH since AS (
        SELECT tx, id FROM (
          SELECT tx, id FROM own_notices_place
          UNION ALL (
            SELECT cursor_tx, cursor_row FROM outbound_webhooks WHERE user_id IS NOT NULL AND status = 'enabled'
            ORDER BY cursor_tx, cursor_row LIMIT 1
          )
        ) AS places ORDER BY tx DESC, id DESC LIMIT 1
      ), news AS (
        SELECT events.* FROM since CROSS JOIN LATERAL (
          SELECT * FROM events WHERE events.news IS NOT NULL AND (events.tx, events.id) > (since.tx, since.id)
            AND events.tx < pg_snapshot_xmin(pg_current_snapshot())
          ORDER BY events.tx, events.id LIMIT ${limit}
        ) AS events
        WHERE EXISTS (SELECT FROM outbound_webhooks WHERE user_id IS NOT NULL AND status = 'enabled')
      )
      SELECT news.tx::text, news.id::text, news.type, news.at, news.project_id AS "projectId", news.session_id AS "sessionId", news.data,
        project.name AS "projectName", found.session,
        coalesce(listening.receivers, '[]'::jsonb) AS receivers
      FROM news JOIN projects AS project ON project.id = news.project_id
      LEFT JOIN LATERAL (
        SELECT jsonb_build_object('name', coalesce(session.name, session.trigger_slug), 'createdBy', session.created_by,
          'triggerSlug', session.trigger_slug, 'parentSessionId', session.parent_session_id, 'writers', ${writers}) AS session
        FROM project_sessions AS session
        WHERE session.id = news.session_id AND session.deleted_at IS NULL AND news.news = ANY(${[...NOTICE_NEWS]}::text[])
      ) AS found ON true
      LEFT JOIN LATERAL (
        SELECT jsonb_agg(jsonb_build_object('id', webhook.id, 'userId', webhook.user_id, 'tells', webhook.events)
          ORDER BY webhook.id) AS receivers
        FROM outbound_webhooks AS webhook
        WHERE news.news = ANY(${[...NOTICE_NEWS]}::text[]) AND webhook.user_id IS NOT NULL AND webhook.status = 'enabled'
          AND (webhook.cursor_tx, webhook.cursor_row) < (news.tx, news.id)
          AND (webhook.user_id::text IN (news.data ->> 'reviewer_id', found.session ->> 'createdBy')
            OR found.session -> 'writers' ? webhook.user_id::text)
      ) AS listening ON true
      ORDER BY news.tx, news.id`;
    const last = rows.at(-1);
    if (last === undefined) return null;
    const news = rows.map(({ tx, id, projectName, session, receivers, ...event }) => ({
      event: { ...event, cursor: `${tx}.${id}` },
      projectName,
      session,
      receivers,
    }));
    return { news, to: `${last.tx}.${last.id}` };
  });
});

const makeCollect = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const insert = yield* makeInsertDeliveries;
  return Effect.fnUntraced(function* ({ to, deliveries, now }: Parameters<Service["collect"]>[0]) {
    const { tx, row } = parsePlace(to);
    const moves = yield* sql`
      INSERT INTO own_notices_place AS place (tx, id) VALUES (${tx}::text::xid8, ${row}::bigint)
      ON CONFLICT (is_only) DO UPDATE SET tx = excluded.tx, id = excluded.id
      WHERE (place.tx, place.id) < (excluded.tx, excluded.id) RETURNING is_only`;
    if (moves.length === 0) return false;
    // Always in one order, so that two nodes cannot wait for each other.
    const byReceiver = Map.groupBy(deliveries, ({ receiverId }) => receiverId);
    for (const [id, own] of [...byReceiver].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      // One that was removed or disabled meanwhile is told nothing.
      const receivers = yield* sql`
        SELECT id FROM outbound_webhooks WHERE id = ${id} AND status = 'enabled' FOR NO KEY UPDATE`;
      if (receivers.length > 0) yield* insert(id, own, now);
    }
    return true;
  });
});

export const layer = Layer.effect(
  OwnReceivers,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const [save, news, collect] = [yield* makeSave, yield* makeNews, yield* makeCollect];
    const address = yield* makeAddress;
    return {
      list: (userId) =>
        sql<Row>`SELECT ${sql.literal(COLUMNS)} FROM outbound_webhooks WHERE user_id = ${userId} ORDER BY id`.pipe(
          Effect.map((rows) => rows.map(toReceiver)),
          toStored("ownReceivers.list"),
        ),
      save: (receiver) => sql.withTransaction(save(receiver)).pipe(toStored("ownReceivers.save")),
      remove: (userId, place) =>
        sql`
          DELETE FROM outbound_webhooks WHERE user_id = ${userId} AND (format = 'mail') = ${place === "mail"} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("ownReceivers.remove"),
        ),
      address: (userId) => address(userId).pipe(toStored("ownReceivers.address")),
      news: (limit) => news(limit).pipe(toStored("ownReceivers.news")),
      collect: (collection) =>
        sql.withTransaction(collect(collection)).pipe(toStored("ownReceivers.collect")),
    };
  }),
);
