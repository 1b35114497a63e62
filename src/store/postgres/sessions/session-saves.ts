/** What sessions say of their saved work, beside the steps of their actors. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { isSafe } from "../../../domain/save/saved.ts";
import { sessionSavedEvent } from "../../event-rows.ts";
import type { Sessions } from "../../ports/sessions/sessions.ts";
import { jsonb, toStored } from "../connection/statement.ts";
import { EventLog } from "../events/event-log.ts";

type Notes = Pick<Sessions["Service"], "noteSaved" | "noteRestored" | "forgetEarlier" | "nodesWithSaves">;

const noteSavedIn = (sql: SqlClient.SqlClient, events: (typeof EventLog)["Service"]): Notes["noteSaved"] =>
  Effect.fnUntraced(
    function* (id, { sandboxId, saved }) {
      const [noted] = yield* sql<{ readonly projectId: string }>`
        UPDATE project_sessions SET saved = ${jsonb(saved)}::jsonb,
          unsaved = CASE WHEN ${isSafe(saved)}::boolean THEN NULL ELSE unsaved END
        WHERE id = ${id} AND state_context ->> 'sandboxId' = ${sandboxId} AND saved IS DISTINCT FROM ${jsonb(saved)}::jsonb
        RETURNING project_id AS "projectId"`;
      if (noted === undefined) return;
      const place = { projectId: noted.projectId, sessionId: id, at: yield* Clock.currentTimeMillis };
      yield* events.append([sessionSavedEvent(place, saved)]);
    },
    (write) => sql.withTransaction(write).pipe(toStored("sessionSaves.noteSaved")),
  );

const noteRestoredIn =
  (sql: SqlClient.SqlClient): Notes["noteRestored"] =>
  (id, { sandboxId, restored }) =>
    sql`UPDATE project_sessions SET restored = ${jsonb(restored)}
      WHERE id = ${id} AND state_context ->> 'sandboxId' = ${sandboxId}`.pipe(
      Effect.asVoid,
      toStored("sessionSaves.noteRestored"),
    );

const forgetEarlierIn =
  (sql: SqlClient.SqlClient): Notes["forgetEarlier"] =>
  (id, saveId) =>
    sql`UPDATE project_sessions SET saved = jsonb_set(saved, '{earlier}', jsonb_path_query_array(
        saved -> 'earlier', '$[*] ? (@.id != $id)', ${jsonb({ id: saveId })}::jsonb))
      WHERE id = ${id} AND saved ? 'earlier'`.pipe(Effect.asVoid, toStored("sessionSaves.forgetEarlier"));

const nodesWithSavesIn =
  (sql: SqlClient.SqlClient): Notes["nodesWithSaves"] =>
  (projectId) =>
    sql<{ readonly node: string }>`SELECT DISTINCT node FROM project_sessions,
        LATERAL (SELECT saved ->> 'node' UNION ALL
          SELECT save ->> 'node' FROM jsonb_array_elements(COALESCE(saved -> 'earlier', '[]')) save) AS named (node)
      WHERE project_id = ${projectId} AND deleted_at IS NULL AND node IS NOT NULL ORDER BY node`.pipe(
      Effect.map((rows) => rows.map(({ node }) => node)),
      toStored("sessionSaves.nodesWithSaves"),
    );

export const makeNoteSaves = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return {
    noteSaved: noteSavedIn(sql, events),
    noteRestored: noteRestoredIn(sql),
    forgetEarlier: forgetEarlierIn(sql),
    nodesWithSaves: nodesWithSavesIn(sql),
  } satisfies Notes;
});
