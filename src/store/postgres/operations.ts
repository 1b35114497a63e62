/** The operator's reads over the whole installation. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  BOOTS_LOOKED_AT,
  Operations,
  type Backlog,
  type Boots,
  type DatabaseFacts,
  type Spread,
  type Watch,
} from "../ports/operations.ts";
import { at, toStored } from "./connection/statement.ts";

const EMPTY: Backlog = { waiting: 0, oldestAt: null };

type SpreadRow = { readonly count: number; readonly p50Ms: number | null; readonly p95Ms: number | null };

const toSpread = ({ count, p50Ms, p95Ms }: SpreadRow): Spread | null =>
  p50Ms === null || p95Ms === null ? null : { count, p50Ms, p95Ms };

interface BootsRow {
  readonly started: number;
  readonly failures: Boots["failures"] | null;
  readonly waited: SpreadRow;
  readonly booted: SpreadRow;
}

const bootsSince = (sql: SqlClient.SqlClient, since: number) => sql<BootsRow>`
  WITH newest AS (
    SELECT status, failure, created_at, boot_started_at, active_at FROM session_sandboxes
    ORDER BY id DESC LIMIT ${BOOTS_LOOKED_AT}
  ), boot AS (
    SELECT failure ->> 'code' AS code,
      round(extract(epoch FROM boot_started_at - created_at) * 1000)::float8 AS waited,
      round(extract(epoch FROM active_at - boot_started_at) * 1000)::float8 AS booted,
      -- An active sandbox that was lost later has booted.
      status = 'error' AND active_at IS NULL AS failed
    FROM newest WHERE created_at >= ${at(since)}
  )
  SELECT count(*)::integer AS started,
    (
      SELECT json_agg(json_build_object('code', code, 'count', count) ORDER BY count DESC, code)
      FROM (SELECT code, count(*)::integer AS count FROM boot WHERE failed GROUP BY code) AS failures
    ) AS failures,
    json_build_object('count', count(waited), 'p50Ms', percentile_disc(0.5) WITHIN GROUP (ORDER BY waited),
      'p95Ms', percentile_disc(0.95) WITHIN GROUP (ORDER BY waited)) AS waited,
    json_build_object('count', count(booted), 'p50Ms', percentile_disc(0.5) WITHIN GROUP (ORDER BY booted),
      'p95Ms', percentile_disc(0.95) WITHIN GROUP (ORDER BY booted)) AS booted
  FROM boot`;

type LiveCount = ["provisioning" | "running", number];
type WatchRow = Omit<Watch, "sessions"> & Readonly<Record<"provisioning" | "running", number>>;

/** Work that is left. A sandbox is watched as long as it lives, so that command waits for nothing. */
const LEFT = "command ->> 'type' <> 'watchSandbox'";

/** Indexes of live rows bound each part, but for the outbox, whose rows are all work that is left. */
const watchRows = (sql: SqlClient.SqlClient) => sql<WatchRow>`
  SELECT
    (SELECT count(*)::integer FROM project_sessions WHERE status = 'provisioning') AS provisioning,
    (SELECT count(*)::integer FROM project_sessions WHERE status = 'running') AS running,
    (SELECT count(*)::integer FROM project_sessions WHERE status = 'running' AND unsaved IS NOT NULL) AS unsaved,
    (SELECT min(queued_at) FROM fire_queue) AS "oldestFireAt",
    (SELECT min(created_at) FROM outbox WHERE ${sql.literal(LEFT)}) AS "oldestCommandAt",
    (SELECT min(created_at) FROM outbound_deliveries WHERE status = 'pending') AS "oldestDeliveryAt",
    (
      SELECT min(turn_since) FROM project_sessions AS session
      JOIN conversations ON conversations.session_id = session.id
      WHERE session.status IN ('provisioning', 'running') AND turn_state = 'requires_action'
    ) AS "oldestRequestAt"`;

export const layer = Layer.effect(
  Operations,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    database: sql<DatabaseFacts>`
      SELECT current_setting('server_version') AS version,
        pg_database_size(current_database())::float8 AS "sizeBytes",
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer AS connections,
        current_setting('max_connections')::integer AS "connectionsMax"`.pipe(
      Effect.flatMap(([row]) =>
        row === undefined
          ? Effect.die(new Error("a select without a table returned no row"))
          : Effect.succeed(row),
      ),
      toStored("operations.database"),
    ),
    backlogs: Effect.gen(function* () {
      const [fires] = yield* sql<Backlog>`
        SELECT count(*)::integer AS waiting, min(queued_at) AS "oldestAt" FROM fire_queue`;
      const [commands] = yield* sql<Backlog>`
        SELECT count(*)::integer AS waiting, min(created_at) AS "oldestAt" FROM outbox
        WHERE ${sql.literal(LEFT)}`;
      return { fires: fires ?? EMPTY, commands: commands ?? EMPTY };
    }).pipe(toStored("operations.backlogs")),
    watch: watchRows(sql).pipe(
      Effect.map(([row]): Watch => {
        if (row === undefined) throw new Error("a select without a table returned no row");
        const { provisioning, running, ...oldest } = row;
        return { sessions: new Map(Object.entries({ provisioning, running }) as LiveCount[]), ...oldest };
      }),
      toStored("operations.watch"),
    ),
    boots: (since) =>
      bootsSince(sql, since).pipe(
        Effect.map(([row]): Boots => ({
          started: row?.started ?? 0,
          failures: row?.failures ?? [],
          waited: row === undefined ? null : toSpread(row.waited),
          booted: row === undefined ? null : toSpread(row.booted),
        })),
        toStored("operations.boots"),
      ),
    sandboxesByNode: sql<{ readonly nodeId: string; readonly count: number }>`
      SELECT node_id AS "nodeId", count(*)::integer AS count FROM session_sandboxes
      WHERE status IN ('provisioning', 'active') GROUP BY node_id`.pipe(
      Effect.map((rows) => new Map(rows.map(({ nodeId, count }) => [nodeId, count]))),
      toStored("operations.sandboxesByNode"),
    ),
    operatorAccount: sql<{ readonly id: string }>`
      SELECT id FROM accounts ORDER BY created_at, id LIMIT 1`.pipe(
      Effect.map(([row]) => row?.id ?? null),
      toStored("operations.operatorAccount"),
    ),
  })),
);
