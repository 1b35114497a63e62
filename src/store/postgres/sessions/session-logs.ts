/** Logs that outlive their sandboxes: the table session_logs. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  LOG_KEPT_BYTES,
  newestPart,
  SessionLogs,
  type LoggedBoot,
} from "../../ports/sessions/session-logs.ts";
import { at, toStored } from "../connection/statement.ts";

type KeepRequest = Parameters<(typeof SessionLogs)["Service"]["keep"]>[0];

const makeKeep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;

  /** Logs of the session beyond the kept size, each with the number of bytes that still fit. */
  const surplus = (sessionId: string) => sql<{ readonly sandboxId: string; readonly room: number }>`
    SELECT sandbox_id AS "sandboxId", greatest(0, bytes - (upto - ${LOG_KEPT_BYTES}))::integer AS room
    FROM (
      SELECT sandbox_id, octet_length(text) AS bytes, sum(octet_length(text)) OVER (
        ORDER BY sandbox.created_at DESC, sandbox.id DESC
      ) AS upto
      FROM session_logs JOIN session_sandboxes AS sandbox ON sandbox.id = sandbox_id
      WHERE session_logs.session_id = ${sessionId}
    ) AS log WHERE upto > ${LOG_KEPT_BYTES}`;

  const cut = Effect.fnUntraced(function* (sandboxId: string, room: number) {
    const rows = room === 0 ? [] : yield* selectText(sql, sandboxId);
    const newestText = newestPart(rows[0]?.text ?? Buffer.alloc(0), room);
    yield* newestText.length === 0
      ? sql`DELETE FROM session_logs WHERE sandbox_id = ${sandboxId}`
      : sql`UPDATE session_logs SET text = ${newestText} WHERE sandbox_id = ${sandboxId}`;
  });

  return Effect.fnUntraced(function* ({ sandboxId, text, now }: KeepRequest) {
    // Locks the session's row first, as its saves do: a second boot that ends, or a deletion, waits here.
    const [session] = yield* sql<{ readonly id: string }>`
      SELECT id FROM project_sessions
      WHERE id = (SELECT session_id FROM session_sandboxes WHERE id = ${sandboxId}) AND deleted_at IS NULL
      FOR NO KEY UPDATE`;
    if (session === undefined || text === "") return;
    const rows = yield* sql`
      INSERT INTO session_logs (sandbox_id, session_id, text, kept_at)
      VALUES (${sandboxId}, ${session.id}, ${newestPart(Buffer.from(text), LOG_KEPT_BYTES)}, ${at(now)})
      ON CONFLICT (sandbox_id) DO NOTHING RETURNING sandbox_id`;
    if (rows.length === 0) return;
    for (const { sandboxId: other, room } of yield* surplus(session.id)) yield* cut(other, room);
  });
});

const selectText = (sql: SqlClient.SqlClient, sandboxId: string) =>
  sql<{ readonly text: Buffer }>`SELECT text FROM session_logs WHERE sandbox_id = ${sandboxId}`;

export const layer = Layer.effect(
  SessionLogs,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const keep = yield* makeKeep;
    return {
      keep: (request) => sql.withTransaction(keep(request)).pipe(toStored("sessionLogs.keep")),
      boots: (sessionId) =>
        sql<LoggedBoot>`
          SELECT sandbox.id AS "sandboxId", log.sandbox_id IS NOT NULL AS "isKept"
          FROM session_sandboxes AS sandbox LEFT JOIN session_logs AS log ON log.sandbox_id = sandbox.id
          WHERE sandbox.session_id = ${sessionId} AND (
            log.sandbox_id IS NOT NULL OR sandbox.status IN ('provisioning', 'active')
            OR EXISTS (SELECT FROM outbox WHERE actor_kind = 'sandbox' AND actor_id = sandbox.id)
          )
          ORDER BY sandbox.created_at, sandbox.id`.pipe(toStored("sessionLogs.boots")),
      read: (sandboxId) =>
        selectText(sql, sandboxId).pipe(
          Effect.map(([row]) => row?.text.toString("utf8") ?? ""),
          toStored("sessionLogs.read"),
        ),
    };
  }),
);
