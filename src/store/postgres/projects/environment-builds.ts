/** Builds of environments, with their logs and the memory of their actors. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type {
  EnvironmentBuildCommand,
  EnvironmentBuildContext,
  EnvironmentBuildEvent,
  EnvironmentBuildSnapshot,
} from "../../../machines/environment-build.ts";
import { firstTransition } from "../../../machines/transition.ts";
import { cutNewest, readCursor } from "../../cursor.ts";
import { buildEvent, buildInstants, logPiece, NEW_BUILD } from "../../environment-build-columns.ts";
import {
  BUILDS_KEPT,
  EnvironmentBuilds,
  type EnvironmentBuild,
  type LogPiece,
  type NewBuild,
} from "../../ports/projects/environment-builds.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { at, jsonb, newestPage, toStored } from "../connection/statement.ts";
import { EventLog } from "../events/event-log.ts";
import { appendFor } from "../outbox.ts";
import { keeping } from "../events/transition-rows.ts";

const KIND = "environment_build";
const LIVE = "status IN ('queued', 'resolving', 'building', 'exporting')";

const COLUMNS = `
  id, project_id AS "projectId", node_id AS "nodeId", source, cause, requested_by AS "requestedBy", status,
  state_context AS context, step, bases, created_at AS "createdAt", begun_at AS "begunAt", ended_at AS "endedAt"`;

type Row = Omit<EnvironmentBuild, "tries" | "image" | "failure"> & {
  readonly context: EnvironmentBuildContext;
};

const toBuild = ({ context, ...row }: Row): EnvironmentBuild => ({ ...row, ...context });
const first = ([row]: readonly Row[]): EnvironmentBuild | null => (row === undefined ? null : toBuild(row));

const makeMemory = Effect.gen(function* () {
  const events = yield* EventLog;
  return yield* makeActorMemory<
    EnvironmentBuildSnapshot,
    EnvironmentBuildEvent,
    EnvironmentBuildCommand,
    Pick<Row, "id" | "projectId" | "status">
  >({
    kind: KIND,
    name: "environmentBuilds",
    table: "environment_builds",
    key: "id",
    state: "status",
    returning: `id, project_id AS "projectId", status`,
    isOneStatement: ({ before, after: next }) => before.state === next.state,
    writes: (change) => {
      const { before, after: next, now } = change;
      const { begunAt, endedAt } = buildInstants(change);
      return Effect.succeed({
        columns: {
          ...(begunAt !== undefined && { begun_at: at(begunAt), step: null }),
          ...(endedAt !== undefined && { ended_at: at(endedAt) }),
        },
        finish: (row) =>
          before.state === next.state
            ? Effect.void
            : events.append([buildEvent(row, { previous: before.state, at: now })]),
      });
    },
  });
});

type Service = (typeof EnvironmentBuilds)["Service"];

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* ({
    id,
    projectId,
    nodeId,
    source,
    cause,
    requestedBy,
    now,
  }: NewBuild): Effect.fn.Return<
    Effect.Success<ReturnType<Service["open"]>>,
    import("effect/sql/SqlError").SqlError
  > {
    // Requests for builds of a project wait for each other. The rows that refer to the project do not.
    const [project] = yield* sql`SELECT id FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`;
    if (project === undefined) return null;
    const live = yield* sql<Row>`
      SELECT ${sql.literal(COLUMNS)} FROM environment_builds
      WHERE project_id = ${projectId} AND node_id = ${nodeId} AND key = ${source.key} AND ${sql.literal(LIVE)}`;
    const liveBuild = first(live);
    if (liveBuild !== null) return { build: liveBuild, isNew: false };
    const { snapshot, commands } = NEW_BUILD;
    const history = { kind: KIND, id, version: 1, given: "opened" } as const;
    const rows = yield* sql<Row>`
      WITH opened AS (
        INSERT INTO environment_builds
          (id, project_id, node_id, key, source, cause, requested_by, status, state_context, created_at)
        VALUES (${id}, ${projectId}, ${nodeId}, ${source.key}, ${jsonb(source)}::jsonb, ${cause}, ${requestedBy},
          ${snapshot.state}, ${jsonb(snapshot.context)}::jsonb, ${at(now)})
        RETURNING ${sql.literal(COLUMNS)}
      )${keeping(sql, firstTransition(NEW_BUILD, { now }), history)}
      SELECT * FROM opened`;
    const build = first(rows);
    if (build === null) return null;
    yield* appendFor(sql, { kind: KIND, id }, { commands, now });
    yield* events.append([buildEvent(build, { previous: null, at: now })]);
    return { build, isNew: true };
  });
});

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  const get: Service["get"] = (id) =>
    sql<Row>`SELECT ${columns} FROM environment_builds WHERE id = ${id}`.pipe(
      Effect.map(first),
      toStored("environmentBuilds.get"),
    );
  const newest: Service["newest"] = ({ projectId, nodeId, key }) =>
    sql<Row>`
      SELECT ${columns} FROM environment_builds
      WHERE project_id = ${projectId} AND key = ${key}${nodeId === undefined ? sql`` : sql` AND node_id = ${nodeId}`}
      ORDER BY created_at DESC, id DESC LIMIT 1`.pipe(
      Effect.map(first),
      toStored("environmentBuilds.newestOf"),
    );
  const ready: Service["ready"] = ({ projectId, nodeId, limit }) =>
    sql<Row>`
      SELECT ${columns} FROM environment_builds
      WHERE project_id = ${projectId} AND node_id = ${nodeId} AND status = 'ready' AND NOT is_forgotten
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`.pipe(
      Effect.map((rows) => rows.map(toBuild)),
      toStored("environmentBuilds.ready"),
    );
  const newestReady: Service["newestReady"] = (nodeId) =>
    sql<Row>`
      SELECT DISTINCT ON (project_id) ${columns} FROM environment_builds
      WHERE node_id = ${nodeId} AND status = 'ready' AND NOT is_forgotten
      ORDER BY project_id, created_at DESC, id DESC`.pipe(
      Effect.map((rows) => rows.map(toBuild)),
      toStored("environmentBuilds.newestReady"),
    );
  const list: Service["list"] = Effect.fnUntraced(function* (projectId, { cursor, limit }) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Row>`
      SELECT ${columns} FROM environment_builds
      WHERE project_id = ${projectId} ${newestPage(sql, position, limit)}`;
    return cutNewest(rows.map(toBuild), limit);
  }, toStored("environmentBuilds.list"));
  return { get, newest, ready, newestReady, list };
});

const makeLogs = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const append = Effect.fnUntraced(function* (id: string, text: string) {
    const [row] = yield* sql<{ readonly bytes: number; readonly pieces: number }>`
      SELECT log_bytes::float8 AS bytes, log_pieces AS pieces FROM environment_builds WHERE id = ${id} FOR NO KEY UPDATE`;
    if (row === undefined) return;
    const piece = logPiece(text, row.bytes);
    const number = row.pieces + 1;
    yield* sql`
      UPDATE environment_builds SET log_bytes = ${piece.bytes}, log_pieces = ${piece.text === null ? row.pieces : number}
      WHERE id = ${id}`;
    if (piece.text !== null)
      yield* sql`INSERT INTO environment_build_logs (build_id, number, text) VALUES (${id}, ${number}, ${piece.text})`;
  });
  const appendLog: Service["appendLog"] = (id, text) =>
    sql.withTransaction(append(id, text)).pipe(toStored("environmentBuilds.appendLog"));
  const clearLog: Service["clearLog"] = (id) =>
    Effect.gen(function* () {
      yield* sql`DELETE FROM environment_build_logs WHERE build_id = ${id}`;
      yield* sql`UPDATE environment_builds SET log_bytes = 0, log_pieces = 0 WHERE id = ${id}`;
    }).pipe(sql.withTransaction, toStored("environmentBuilds.clearLog"));
  const log: Service["log"] = (id, { after: number, limit }) =>
    sql<LogPiece>`
      SELECT number, text FROM environment_build_logs WHERE build_id = ${id} AND number > ${number}
      ORDER BY number LIMIT ${limit}`.pipe(toStored("environmentBuilds.log"));
  return { appendLog, clearLog, log };
});

/** Removes old builds, and knows which images must stay. */
const makeUpkeep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const inUse: Service["inUse"] = (nodeId) =>
    sql<{ readonly id: string }>`
      SELECT DISTINCT environment_build_id AS id FROM session_sandboxes
      WHERE environment_build_id IS NOT NULL AND node_id = ${nodeId} AND status IN ('provisioning', 'active')
      UNION
      (SELECT DISTINCT ON (project_id) id FROM environment_builds
      WHERE node_id = ${nodeId} AND status = 'ready' AND NOT is_forgotten
      ORDER BY project_id, created_at DESC, id DESC)`.pipe(
      Effect.map((rows) => new Set(rows.map(({ id }) => id))),
      toStored("environmentBuilds.inUse"),
    );
  const unheld: Service["unheld"] = (ids) =>
    sql<{ readonly id: string }>`
      SELECT id FROM unnest(${[...ids]}::uuid[]) AS listed (id)
      WHERE NOT EXISTS (SELECT FROM environment_builds AS build WHERE build.id = listed.id)`.pipe(
      Effect.map((rows) => rows.map(({ id }) => id)),
      toStored("environmentBuilds.unheld"),
    );
  const forgetImages: Service["forgetImages"] = (ids) =>
    sql`UPDATE environment_builds SET is_forgotten = true WHERE id = ANY(${[...ids]}::uuid[])`.pipe(
      Effect.asVoid,
      toStored("environmentBuilds.forgetImages"),
    );
  const prune: Service["prune"] = sql`
    DELETE FROM environment_builds WHERE id IN (
      SELECT id FROM (
        SELECT id, status, is_forgotten,
          row_number() OVER (PARTITION BY project_id, node_id ORDER BY created_at DESC, id DESC) AS place
        FROM environment_builds
      ) AS ranked
      WHERE place > ${BUILDS_KEPT} AND (status IN ('failed', 'cancelled') OR status = 'ready' AND is_forgotten)
        AND NOT EXISTS (SELECT FROM outbox WHERE actor_kind = ${KIND} AND actor_id = ranked.id)
        AND NOT EXISTS (
          SELECT FROM session_sandboxes
          WHERE environment_build_id = ranked.id AND status IN ('provisioning', 'active')
        )
    )`.pipe(Effect.asVoid, toStored("environmentBuilds.prune"));
  return { inUse, unheld, forgetImages, prune };
});

export const layer = Layer.effect(
  EnvironmentBuilds,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const open = yield* makeOpen;
    return {
      ...(yield* makeMemory),
      open: (build) => sql.withTransaction(open(build)).pipe(toStored("environmentBuilds.open")),
      noteStep: (id, step) =>
        sql`UPDATE environment_builds SET step = ${jsonb(step)}::jsonb WHERE id = ${id} AND ${sql.literal(LIVE)}`.pipe(
          Effect.asVoid,
          toStored("environmentBuilds.noteStep"),
        ),
      noteBases: (id, bases) =>
        sql`UPDATE environment_builds SET bases = ${jsonb(bases)}::jsonb WHERE id = ${id} AND ${sql.literal(LIVE)}`.pipe(
          Effect.asVoid,
          toStored("environmentBuilds.noteBases"),
        ),
      ...(yield* makeReads),
      ...(yield* makeLogs),
      ...(yield* makeUpkeep),
    };
  }),
);
