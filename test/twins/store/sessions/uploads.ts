/** Files for sessions that do not exist yet, in memory: see postgres/sessions/uploads.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { UPLOAD_UNUSED_MS, Uploads, UPLOADS_KEPT_MAX } from "../../../../src/store/ports/sessions/uploads.ts";
import { Tables, type TableSet, type UploadRow } from "../tables.ts";

const isOver = ({ fires }: TableSet, { fireId, expiresAt }: UploadRow, now: number): boolean =>
  expiresAt <= now || ["cancelled", "expired"].includes(fires.get(fireId ?? "")?.status ?? "");

export const layer = Layer.effect(
  Uploads,
  Effect.map(Tables, (tables) => ({
    keep: ({ now, projectId, createdBy, ...attachment }) =>
      Effect.sync(() => {
        const others = [...tables.uploads.values()].filter((row) => row.projectId === projectId);
        const bytes = others.reduce((sum, row) => sum + row.attachment.content.length, 0);
        if (bytes + attachment.content.length > UPLOADS_KEPT_MAX) return "full";
        const expiresAt = now + UPLOAD_UNUSED_MS;
        tables.uploads.set(attachment.id, { projectId, createdBy, attachment, fireId: null, expiresAt });
        return "kept";
      }),
    heads: ({ projectId, createdBy }, ids) =>
      Effect.sync(() =>
        ids.flatMap((named) => {
          const row = tables.uploads.get(named);
          if (row?.projectId !== projectId || row.createdBy !== createdBy) return [];
          const { id, name, mediaType, sha256, content } = row.attachment;
          return [{ id, name, media_type: mediaType, sha256, bytes: content.length }];
        }),
      ),
    claim: (ids, { fireId, until }) =>
      Effect.sync(() => {
        for (const id of ids) {
          const row = tables.uploads.get(id);
          if (row !== undefined)
            tables.uploads.set(id, { ...row, fireId, expiresAt: Math.max(row.expiresAt, until) });
        }
      }),
    get: (id) => Effect.sync(() => tables.uploads.get(id)?.attachment ?? null),
    handedOver: (sessionId, ids) =>
      Effect.sync(() => {
        const row = tables.sessions.get(sessionId);
        if (row !== undefined)
          tables.sessions.set(sessionId, { ...row, record: { ...row.record, firstMessage: null } });
        for (const id of ids) tables.uploads.delete(id);
      }),
    prune: (now) =>
      Effect.sync(() => {
        const over = [...tables.uploads].filter(([, row]) => isOver(tables, row, now));
        for (const [id] of over) tables.uploads.delete(id);
        return over.length;
      }),
  })),
);
