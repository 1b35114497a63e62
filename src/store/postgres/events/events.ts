/** Reads the event rows in commit order (api.md 1 "Live data"), and prunes them. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import {
  EVENTS_KEPT_MS,
  EVENTS_KEPT_PER_PROJECT,
  Events,
  NEWS_KEPT_MS,
  NEWS_KEPT_PER_PROJECT,
  type StoredEvent,
} from "../../ports/events.ts";
import { readableProjects } from "../people/roles.ts";
import { EventLog } from "./event-log.ts";
import { at, toStored } from "../connection/statement.ts";

/** A place in a project's events: the ids of the transaction and of the row, both as decimal text. */
interface Place {
  readonly tx: string;
  readonly id: string;
}

/** Both numbers fit their columns. Only at the very end of its range would a xid8 have more digits. */
const FORM = /^(\d{1,18})\.(\d{1,18})$/;
/** Whether an enabled receiver has yet to read the event (features/notifications/ports/outbound-webhooks.ts O1). */
const AWAITED = `EXISTS (
  SELECT FROM outbound_webhooks AS webhook WHERE webhook.project_id = events.project_id AND webhook.status = 'enabled'
    AND (webhook.cursor_tx, webhook.cursor_row) < (events.tx, events.id)
)`;
/** News and other events: how long they stay, and how many of each project. */
const KEPT = [
  { rows: "news IS NULL", ms: EVENTS_KEPT_MS, perProject: EVENTS_KEPT_PER_PROJECT },
  { rows: "news IS NOT NULL", ms: NEWS_KEPT_MS, perProject: NEWS_KEPT_PER_PROJECT },
] as const;
/** How many rows one statement removes: few enough not to block other statements. */
const PRUNE_STEP = 1_000;

const parseCursor = (cursor: string | null): Place | null => {
  const [, tx, id] = FORM.exec(cursor ?? "") ?? [];
  return tx === undefined || id === undefined ? null : { tx, id };
};

const laterPlace = (a: Place | undefined, b: Place): Place =>
  a !== undefined && BigInt(a.tx) >= BigInt(b.tx) ? a : b;

const isLater = (cursor: string, than: string): boolean => {
  const [a, b] = [parseCursor(cursor), parseCursor(than)];
  if (a === null || b === null) return true;
  return a.tx === b.tx ? BigInt(a.id) > BigInt(b.id) : BigInt(a.tx) > BigInt(b.tx);
};

interface Bounds {
  /** The oldest running transaction: readers may see everything before it. */
  readonly end: string;
  /** The place lies before the pruned rows' end, or in this server's future. */
  readonly lost: boolean;
  readonly isHeldBack: boolean;
}

type AfterRequest = Parameters<(typeof Events)["Service"]["after"]>[0];

const makeAfter = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* ({ cursor, limit, ...scope }: AfterRequest) {
    const from = parseCursor(cursor);
    const isIn =
      "reader" in scope
        ? sql`project_id IN (${readableProjects(sql, scope.reader)})`
        : sql`project_id = ${scope.projectId}`;
    const isOfSession =
      "reader" in scope || scope.sessionId === null
        ? sql.literal("")
        : sql`AND session_id = ${scope.sessionId}`;
    const [bounds] = yield* sql<Bounds>`
      SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS end,
        coalesce(${from?.tx ?? null}::text::xid8 > pg_snapshot_xmin(pg_current_snapshot()), false)
          OR EXISTS (
            SELECT FROM event_horizons WHERE ${isIn}
              AND (tx, id) > (${from?.tx ?? null}::text::xid8, ${from?.id ?? null}::bigint)
          ) AS lost,
        EXISTS (
          SELECT FROM events WHERE ${isIn} AND tx >= pg_snapshot_xmin(pg_current_snapshot())
        ) AS "isHeldBack"`;
    const end = `${bounds?.end ?? "0"}.0`;
    const reset = cursor !== null && (from === null || bounds?.lost === true);
    const isHeldBack = bounds?.isHeldBack === true;
    if (from === null || reset) return { events: [], cursor: end, reset, isHeldBack };
    const rows = yield* sql<Omit<StoredEvent, "cursor"> & Place>`
      SELECT tx::text, id, type, at, project_id AS "projectId", session_id AS "sessionId", data
      FROM events
      WHERE ${isIn} AND (tx, id) > (${from.tx}::text::xid8, ${from.id}::bigint)
        AND tx < pg_snapshot_xmin(pg_current_snapshot())
        ${isOfSession}
      ORDER BY tx, id LIMIT ${limit}`;
    // If nothing more was found, the cursor moves to the end, so that pruning does not overtake the reader.
    const events = rows.map(({ tx, id, ...event }) => Object.assign(event, { cursor: `${tx}.${id}` }));
    const last =
      rows.length < limit ? laterPlace(rows.at(-1), { tx: bounds?.end ?? from.tx, id: "0" }) : rows.at(-1);
    return { events, cursor: `${last?.tx ?? from.tx}.${last?.id ?? from.id}`, reset: false, isHeldBack };
  });
});

const makePrune = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;

  /**
   * Removes the rows that `doomed` selects and moves the horizons of their projects. Rows are named by their ctid,
   * which never changes since they are never updated. By their key, the planner would prefer a full scan.
   */
  const removeStep = (condition: Fragment) =>
    Effect.map(
      sql<{ readonly removed: number }>`
        WITH gone AS (
          DELETE FROM events WHERE ctid = ANY(ARRAY(${condition})) RETURNING project_id, tx, id
        ), moved AS (
          INSERT INTO event_horizons AS horizon (project_id, tx, id)
          SELECT DISTINCT ON (project_id) project_id, tx, id FROM gone ORDER BY project_id, tx DESC, id DESC
          ON CONFLICT (project_id) DO UPDATE SET tx = excluded.tx, id = excluded.id
          WHERE (horizon.tx, horizon.id) < (excluded.tx, excluded.id)
        )
        SELECT count(*)::integer AS removed FROM gone`,
      ([row]) => row?.removed ?? 0,
    );
  const untilFew = (step: ReturnType<typeof removeStep>) =>
    Effect.repeat(step, { until: (count) => count < PRUNE_STEP });

  const pruneKind = Effect.fnUntraced(function* (
    { rows, ms, perProject }: (typeof KEPT)[number],
    now: number,
  ) {
    const isKind = sql.literal(rows);
    yield* untilFew(
      removeStep(
        sql`
          SELECT ctid FROM events WHERE at < ${at(now - ms)} AND ${isKind} AND NOT ${sql.literal(AWAITED)}
          ORDER BY at LIMIT ${PRUNE_STEP}`,
      ),
    );
    const projects = yield* sql<{ readonly projectId: string }>`
      SELECT project_id AS "projectId" FROM events WHERE ${isKind}
      GROUP BY project_id HAVING count(*) > ${perProject}`;
    for (const { projectId } of projects) {
      yield* untilFew(
        removeStep(sql`
          SELECT ctid FROM (
            SELECT ctid, tx, id, project_id FROM events WHERE project_id = ${projectId} AND ${isKind}
            ORDER BY tx DESC, id DESC OFFSET ${perProject}
          ) AS events WHERE NOT ${sql.literal(AWAITED)} ORDER BY tx, id LIMIT ${PRUNE_STEP}`),
      );
    }
  });

  return Effect.fnUntraced(function* (now: number) {
    for (const kind of KEPT) yield* pruneKind(kind, now);
  });
});

export const layer = Layer.effect(
  Events,
  Effect.gen(function* () {
    const { changed } = yield* EventLog;
    const after = yield* makeAfter;
    const prune = yield* makePrune;
    return {
      after: (request) => after(request).pipe(toStored("events.after")),
      changed,
      isLater,
      prune: (now) => prune(now).pipe(toStored("events.prune")),
    };
  }),
);
