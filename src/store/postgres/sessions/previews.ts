/** Preview links and the cookies that replace them (api.md 3). */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Previews, PREVIEWS_PER_SESSION, type Preview } from "../../ports/sessions/previews.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, toStored } from "../connection/statement.ts";

export const layer = Layer.effect(
  Previews,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    return {
      // Expired rows are removed as new ones are added, so there are never many. Two concurrent clean-ups skip each
      // other's rows.
      issue: (link) =>
        sql`
          WITH ended AS (
            SELECT hash FROM previews
            WHERE expires_at <= ${at(link.now)} OR hash IN (
              SELECT hash FROM previews WHERE session_id = ${link.sessionId}
              ORDER BY created_at DESC, hash OFFSET ${PREVIEWS_PER_SESSION - 1}
            )
            FOR UPDATE SKIP LOCKED
          ), cleared AS (
            DELETE FROM previews USING ended WHERE previews.hash = ended.hash
          )
          INSERT INTO previews (hash, token_id, session_id, sandbox_id, port, created_at, expires_at)
          VALUES (${link.hash}, ${link.tokenId}, ${link.sessionId}, ${link.sandboxId}, ${link.port},
            ${at(link.now)}, ${at(link.expiresAt)})`.pipe(Effect.asVoid, toStored("previews.issue")),
      // A second opening waits for the first one's row, and then finds another hash in it.
      open: ({ linkHash, cookieHash, sessionId, port, expiresAt, now }) =>
        sql`
          UPDATE previews SET hash = ${cookieHash}, opened_at = ${at(now)}, expires_at = ${at(expiresAt)}
          WHERE hash = ${linkHash} AND opened_at IS NULL AND expires_at > ${at(now)}
            AND session_id = ${sessionId} AND port = ${port}
          RETURNING hash`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("previews.open"),
        ),
      find: (cookieHash, now) =>
        sql<Preview>`
          SELECT session.project_id AS "projectId", preview.session_id AS "sessionId",
            preview.sandbox_id AS "sandboxId", preview.port, token.hash AS "tokenHash",
            preview.expires_at AS "expiresAt"
          FROM previews AS preview
          JOIN project_sessions AS session ON session.id = preview.session_id
          JOIN tokens AS token ON token.id = preview.token_id
          WHERE preview.hash = ${cookieHash} AND preview.opened_at IS NOT NULL
            AND preview.expires_at > ${at(now)}`.pipe(
          Effect.map(([row]) => row ?? null),
          onSharedConnection,
          toStored("previews.find"),
        ),
    };
  }),
);
