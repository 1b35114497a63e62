/** The nodes that share this database, with the repositories and sandboxes of each. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import { Nodes, type NodeRecord } from "../ports/nodes.ts";
import { Notifications } from "./connection/notifications.ts";
import { DatabasePulse } from "./connection/pulse.ts";
import { LISTEN_AGAIN_MS } from "./connection/signals.ts";
import { at, toStored } from "./connection/statement.ts";

type Row = Omit<NodeRecord, "beats"> & { readonly beats: string };

const CHANNEL = "platform_beats";

/** The heartbeat, whose notification comes back to this node: its path through the database is the node's health. */
const makeBeat = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const pulse = yield* DatabasePulse;
  const { listen } = yield* Notifications;
  const own = new Set<string>();
  const hear = (id: string | null): void => {
    if (id !== null && own.has(id)) pulse.heard();
  };
  yield* listen(CHANNEL, hear).pipe(Effect.retry(Schedule.spaced(LISTEN_AGAIN_MS)), Effect.forkScoped);
  const write = ({
    id,
    url,
    now,
  }: {
    readonly id: string;
    readonly url: string;
    readonly now: number;
  }) => sql`
    WITH beat AS (
      INSERT INTO nodes AS node (id, url, beats, last_seen_at) VALUES (${id}, ${url}, 1, ${at(now)})
      ON CONFLICT (id) DO UPDATE
      SET url = excluded.url, beats = node.beats + 1, last_seen_at = excluded.last_seen_at, dead_at = NULL
      RETURNING id
    )
    SELECT pg_notify(${CHANNEL}, id) FROM beat`;
  return (node: Parameters<typeof write>[0]) =>
    Effect.suspend(() => {
      own.add(node.id);
      return write(node);
    }).pipe(
      Effect.tap(() => Effect.sync(() => pulse.beat())),
      Effect.tapError(() => Effect.sync(() => pulse.missed())),
      Effect.asVoid,
      toStored("nodes.beat"),
    );
});

export const layer = Layer.effect(
  Nodes,
  Effect.map(Effect.all([SqlClient.SqlClient, makeBeat]), ([sql, beat]) => ({
    beat,
    all: sql<Row>`SELECT id, url, beats, dead_at AS "deadAt" FROM nodes ORDER BY id`.pipe(
      Effect.map((rows) => rows.map((row) => ({ ...row, beats: Number(row.beats) }))),
      toStored("nodes.all"),
    ),
    bury: ({ id, beats, now }) =>
      sql`
        UPDATE nodes SET dead_at = ${at(now)}
        WHERE id = ${id} AND beats = ${beats} AND dead_at IS NULL RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        toStored("nodes.bury"),
      ),
    ownerNode: (projectId) =>
      sql<{ readonly nodeId: string | null }>`
        SELECT node_id AS "nodeId" FROM projects WHERE id = ${projectId}`.pipe(
        Effect.map(([row]) => row?.nodeId ?? null),
        toStored("nodes.ownerOf"),
      ),
    adopt: (nodeId, projectIds) =>
      sql`
        UPDATE projects SET node_id = ${nodeId}
        WHERE id = ANY(${[...projectIds]}::uuid[]) AND node_id IS NULL`.pipe(
        Effect.asVoid,
        toStored("nodes.adopt"),
      ),
  })),
);
