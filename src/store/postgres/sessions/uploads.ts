/** Files for sessions that do not exist yet: the table uploads. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { AttachmentHead } from "../../../domain/conversation/attachment.ts";
import type { Attachment } from "../../ports/sessions/conversations.ts";
import { UPLOAD_UNUSED_MS, Uploads, UPLOADS_KEPT_MAX } from "../../ports/sessions/uploads.ts";
import { at, toStored } from "../connection/statement.ts";

/** How many uploads one step of pruning removes: each has up to 10 MiB. */
const PRUNE_STEP = 20;

type Service = Uploads["Service"];

export const layer = Layer.effect(
  Uploads,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    /** The project's row is locked, so that concurrent uploads are counted. */
    const keep = Effect.fnUntraced(function* (upload: Parameters<Service["keep"]>[0]) {
      const { projectId, now, content } = upload;
      yield* sql`SELECT 1 FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`;
      const rows = yield* sql`
        INSERT INTO uploads (id, project_id, created_by, name, media_type, sha256, content, created_at, expires_at)
        SELECT ${upload.id}::uuid, ${projectId}::uuid, ${upload.createdBy}::uuid, ${upload.name}, ${upload.mediaType},
          ${upload.sha256}, ${Buffer.from(content)}::bytea, ${at(now)}::timestamptz,
          ${at(now + UPLOAD_UNUSED_MS)}::timestamptz
        WHERE ${content.length}::bigint + (SELECT coalesce(sum(octet_length(content)), 0) FROM uploads
          WHERE project_id = ${projectId}) <= ${UPLOADS_KEPT_MAX}::bigint
        RETURNING id`;
      return rows.length === 0 ? ("full" as const) : ("kept" as const);
    });
    return {
      keep: (upload) => sql.withTransaction(keep(upload)).pipe(toStored("uploads.keep")),
      heads: ({ projectId, createdBy }, ids) =>
        sql<AttachmentHead>`
          SELECT id, name, media_type, sha256, octet_length(content) AS bytes FROM uploads
          WHERE project_id = ${projectId} AND created_by = ${createdBy} AND id::text = ANY(${[...ids]}::text[])
          ORDER BY array_position(${[...ids]}::text[], id::text)`.pipe(toStored("uploads.heads")),
      claim: (ids, { fireId, until }) =>
        sql`
          UPDATE uploads SET fire_id = ${fireId}::uuid, expires_at = greatest(expires_at, ${at(until)})
          WHERE id::text = ANY(${[...ids]}::text[])`.pipe(Effect.asVoid, toStored("uploads.claim")),
      get: (id) =>
        sql<Attachment>`
          SELECT id, name, media_type AS "mediaType", sha256, content FROM uploads WHERE id = ${id}`.pipe(
          Effect.map(([row]) => row ?? null),
          toStored("uploads.get"),
        ),
      handedOver: (sessionId, ids) =>
        sql
          .withTransaction(
            Effect.gen(function* () {
              yield* sql`UPDATE project_sessions SET first_message = NULL WHERE id = ${sessionId}`;
              yield* sql`DELETE FROM uploads WHERE id::text = ANY(${[...ids]}::text[])`;
            }),
          )
          .pipe(toStored("uploads.handedOver")),
      prune: (now) =>
        sql`
          DELETE FROM uploads WHERE id IN (
            SELECT id FROM uploads
            WHERE expires_at <= ${at(now)} OR EXISTS (
              SELECT FROM fires WHERE fires.id = uploads.fire_id AND status IN ('cancelled', 'expired'))
            LIMIT ${PRUNE_STEP})
          RETURNING id`.pipe(
          Effect.map((rows) => rows.length),
          toStored("uploads.prune"),
        ),
    };
  }),
);
