/** Kept logs in memory: see postgres/sessions/session-logs.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  LOG_KEPT_BYTES,
  newestPart,
  SessionLogs,
} from "../../../../src/store/ports/sessions/session-logs.ts";
import { Tables, type TableSet } from "../tables.ts";

/** The session's boots, oldest first. */
const bootsOf = (tables: TableSet, sessionId: string): readonly string[] =>
  [...tables.sandboxes.values()]
    .map(({ record }) => record)
    .filter((record) => record.sessionId === sessionId)
    .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id);

const keep = (tables: TableSet, sandboxId: string, text: string): void => {
  const sessionId = tables.sandboxes.get(sandboxId)?.record.sessionId;
  const session = tables.sessions.get(sessionId ?? "")?.record;
  if (sessionId === undefined || session === undefined || session.deletedAt !== null || text === "") return;
  const logs = tables.logs.get(sessionId) ?? new Map<string, Buffer>();
  if (logs.has(sandboxId)) return;
  tables.logs.set(sessionId, logs.set(sandboxId, Buffer.from(text)));
  let room = LOG_KEPT_BYTES;
  for (const id of bootsOf(tables, sessionId).toReversed()) {
    const log = logs.get(id);
    if (log === undefined) continue;
    const kept = newestPart(log, room);
    if (kept.length === 0) logs.delete(id);
    else logs.set(id, kept);
    room -= Math.min(room, log.length);
  }
};

export const layer = Layer.effect(
  SessionLogs,
  Effect.map(Tables, (tables) => ({
    keep: ({ sandboxId, text }) => Effect.sync(() => keep(tables, sandboxId, text)),
    boots: (sessionId) =>
      Effect.sync(() =>
        bootsOf(tables, sessionId)
          .map((sandboxId) => ({
            sandboxId,
            isKept: tables.logs.get(sessionId)?.has(sandboxId) === true,
          }))
          .filter(
            ({ sandboxId, isKept }) =>
              isKept || tables.isSandboxLive(sandboxId) || tables.sandboxOutbox.of(sandboxId).length > 0,
          ),
      ),
    read: (sandboxId) =>
      Effect.sync(() => {
        const sessionId = tables.sandboxes.get(sandboxId)?.record.sessionId ?? "";
        return tables.logs.get(sessionId)?.get(sandboxId)?.toString("utf8") ?? "";
      }),
  })),
);
