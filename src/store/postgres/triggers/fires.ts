/** Reads the ledger of fires and the queue; admissions.ts writes them. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { cutPage, readCursor } from "../../cursor.ts";
import { runOutcome, type RunSession } from "../../../domain/session/run-outcome.ts";
import {
  Fires,
  type Fire,
  type QueuedFire,
  type ShownFire,
  type StoredRequest,
} from "../../ports/triggers/fires.ts";
import { plannedAnew, onSharedConnection } from "../connection/prepared.ts";
import { afterPosition, at, pageLimit, toStored } from "../connection/statement.ts";
import { hasRoleIn } from "../people/roles.ts";

export const FIRE_COLUMNS = `
  id, project_id AS "projectId", trigger_slug AS "triggerSlug", kind, status, reason,
  scheduled_for AS "scheduledFor", received_at AS "receivedAt", delivery_id AS "deliveryId",
  session_id AS "sessionId", attempts, replay_of AS "replayOf", duplicate_of AS "duplicateOf",
  verified_with AS "verifiedWith"`;

/**
 * An account's waiting fires in the order in which they start: every project's oldest, then every project's second, and
 * so on. Among projects, the one that was served longest ago comes first. Serving fires one by one gives the same
 * order. At most `limit` fires of each project are read, so that a long queue costs no more than a short one.
 */
export const queueInOrder = (
  sql: SqlClient.SqlClient,
  { accountId, limit }: { readonly accountId: string; readonly limit: number },
) => sql`
  SELECT waiting.*, project.drained_turn
  FROM projects AS project CROSS JOIN LATERAL (
    SELECT fire_queue.*, row_number() OVER (ORDER BY arrival) AS turn FROM fire_queue
    WHERE account_id = ${accountId} AND project_id = project.id ORDER BY arrival LIMIT ${limit}
  ) AS waiting
  WHERE project.account_id = ${accountId}
  ORDER BY turn, drained_turn, project_id LIMIT ${limit}`;

/** How many ledger rows one step of pruning removes: few enough not to block other statements. */
const PRUNE_STEP = 1000;

/**
 * Removes the stored requests that `doomed` selects (account_id, fire_id), and subtracts their bytes from the accounts'
 * counters. The caller has the accounts' locks.
 */
const removeRequests = (sql: SqlClient.SqlClient, condition: Fragment) =>
  Effect.map(
    sql<{ readonly removed: number }>`
      WITH gone AS (
        DELETE FROM fire_requests WHERE (account_id, fire_id) IN (${condition}) RETURNING account_id, octet_length(body) AS bytes
      ), freed AS (
        SELECT account_id, sum(bytes) AS bytes FROM gone GROUP BY account_id
      ), counted AS (
        UPDATE accounts SET stored_request_bytes = stored_request_bytes - freed.bytes
        FROM freed WHERE accounts.id = freed.account_id
      )
      SELECT count(*)::integer AS removed FROM gone`,
    ([row]) => row?.removed ?? 0,
  );

/** Removes fires that do not wait, with their requests. The caller has the accounts' locks. @returns how many */
export const removeFires = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ids: readonly string[]) {
  if (ids.length === 0) return 0;
  yield* removeRequests(sql, sql`SELECT account_id, id FROM fires WHERE id = ANY(${[...ids]}::uuid[])`);
  const deletedRows =
    yield* sql`DELETE FROM fires WHERE id = ANY(${[...ids]}::uuid[]) AND status <> 'queued' RETURNING id`;
  return deletedRows.length;
});

const makePrune = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;

  /**
   * Locks the accounts before their requests, as admission does, and in a fixed order, since another node may prune
   * too.
   */
  const lockAccounts = (ids: Fragment) =>
    sql`SELECT id FROM accounts WHERE id IN (${ids}) ORDER BY id FOR NO KEY UPDATE`;

  const overfull = (bytes: number) =>
    Effect.map(
      sql<{ readonly id: string }>`SELECT id FROM accounts WHERE stored_request_bytes > ${bytes} LIMIT 1`,
      ([row]) => row?.id ?? null,
    );

  return Effect.fnUntraced(function* ({ before, requestBytes }: { before: number; requestBytes: number }) {
    const account = yield* overfull(requestBytes);
    const old = yield* sql<{ readonly id: string }>`
      SELECT id FROM fires WHERE received_at < ${at(before)} AND status <> 'queued' LIMIT ${PRUNE_STEP}`;
    const ids = old.map(({ id }) => id);
    yield* lockAccounts(
      sql`SELECT ${account}::uuid UNION SELECT account_id FROM fires WHERE id = ANY(${ids}::uuid[])`,
    );
    const tooMany =
      account === null
        ? 0
        : yield* removeRequests(
            sql,
            sql`
            SELECT ${account}::uuid, fire_id FROM (
              SELECT fire_id, sum(octet_length(body)) OVER (ORDER BY fire_id) AS until, octet_length(body) AS own
              FROM (
                SELECT * FROM fire_requests WHERE account_id = ${account} ORDER BY fire_id LIMIT ${PRUNE_STEP}
              ) AS oldest
            ) AS doomed
            WHERE until - own < (SELECT stored_request_bytes FROM accounts WHERE id = ${account}) - ${requestBytes}`,
          );
    return tooMany + (yield* removeFires(sql, ids));
  });
});

/** How many characters of a prompt stand for the name of a session that waits. */
const TITLE_LENGTH = 200;

/** An account's waiting fires, each with its place among all of them. */
const placedFires = (sql: SqlClient.SqlClient, accountId: string) => sql`
  SELECT *, row_number() OVER (ORDER BY turn, drained_turn, project_id)::integer AS position
  FROM (${queueInOrder(sql, { accountId, limit: QUEUE_SHOWN })}) AS ordered`;

/** How many waiting fires are listed: the default of PLATFORM_QUEUE_MAX. A larger setting lists no more. */
const QUEUE_SHOWN = 10_000;

/** Waiting fires are found through the queue. The other statuses have a partial index where rows are few. */
const ofStatus = (sql: SqlClient.SqlClient, projectId: string, status: string | null) => {
  if (status === null) return sql.literal("true");
  return status === "queued"
    ? sql`id IN (SELECT fire_id FROM fire_queue WHERE project_id = ${projectId})`
    : sql`status = ${status}`;
};

/** A fire with its session: what decides its outcome, and names. */
type ShownRow = Fire & {
  readonly session: (RunSession & { readonly name: string | null; readonly startedBy: string | null }) | null;
};

const toShownFire = ({ session, ...fire }: ShownRow): ShownFire => ({
  ...fire,
  outcome: session === null ? null : runOutcome(session),
  sessionName: session?.name ?? null,
  startedBy: session?.startedBy ?? null,
});

/** A delivery that its sender repeats has a signature. */
const REPLAYED_BY_HAND = `(fire."replayOf" IS NOT NULL AND fire."verifiedWith" IS NULL)`;

/** The fires that a statement selects, with their outcomes. Each session is found by its key. */
const showing = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (fires: Fragment, isPlannedAnew = false) {
    const rows = yield* sql<ShownRow>`
      SELECT fire.*, (
        SELECT jsonb_build_object('status', status, 'failureCode', failure ->> 'code', 'stopReason', stop_reason,
          'lastTurn', last_turn, 'isAtWork', EXISTS (
            SELECT FROM conversations WHERE session_id = project_sessions.id AND turn_state <> 'idle'
          ), 'name', name, 'startedBy', CASE WHEN fire.kind = 'manual' OR ${sql.literal(REPLAYED_BY_HAND)}
            THEN (SELECT creator.name FROM users AS creator WHERE creator.id = created_by) END)
        FROM project_sessions WHERE id = fire."sessionId"
      ) AS session
      FROM (${fires}) AS fire ORDER BY "receivedAt" DESC, id DESC`.pipe(
      isPlannedAnew ? plannedAnew : onSharedConnection,
    );
    return rows.map(toShownFire);
  });

/**
 * Writes whether the fire's session failed, after a change of the session. In a transaction that has the session's row; an
 * account's row is locked before this one, as in `prune`.
 */
export const noteFailure = (sql: SqlClient.SqlClient, sessionId: string) => sql`
  UPDATE fires SET session_failed = NOT session_failed
  FROM project_sessions AS session
  WHERE session.id = ${sessionId} AND fires.id = session.fire_id
    AND session_failed <> (session.status = 'failed' OR coalesce(session.last_turn ->> 'state' = 'failed', false))`;

/** The account's queue. */
const makeQueue = (sql: SqlClient.SqlClient): Pick<Fires["Service"], "queue" | "position"> => ({
  queue: ({ accountId, userId }) =>
    sql<QueuedFire>`
      SELECT fire_id AS "fireId", project_id AS "projectId", trigger_slug AS "triggerSlug", kind,
        queued_at AS "queuedAt", expires_at AS "expiresAt", position,
        coalesce(session ->> 'name', left(session ->> 'initialPrompt', ${TITLE_LENGTH}::integer)) AS title,
        coalesce(jsonb_array_length(session -> 'firstMessage' -> 'attachments'), 0) AS files,
        CASE WHEN kind = 'session' THEN (
          SELECT jsonb_build_object('id', id, 'name', name) FROM users
          WHERE id = (waiting.session ->> 'createdBy')::uuid
        ) END AS person
      FROM (${placedFires(sql, accountId)}) AS waiting JOIN projects AS project ON project.id = waiting.project_id
      WHERE ${userId === null ? sql`true` : hasRoleIn(sql, userId)}
      ORDER BY position`.pipe(toStored("fires.queue")),
  position: (accountId, id) =>
    sql<{ readonly position: number }>`
      SELECT position FROM (${placedFires(sql, accountId)}) AS waiting WHERE fire_id = ${id}`.pipe(
      Effect.map(([row]) => row?.position ?? null),
      toStored("fires.position"),
    ),
});

export const layer = Layer.effect(
  Fires,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(FIRE_COLUMNS);
    const prune = yield* makePrune;
    const showFires = showing(sql);
    return {
      prune: (limits) => sql.withTransaction(prune(limits)).pipe(toStored("fires.prune")),
      request: (id) =>
        sql<StoredRequest>`
          SELECT body, encoding, headers FROM fire_requests
          WHERE (account_id, fire_id) = (SELECT account_id, id FROM fires WHERE id = ${id})`.pipe(
          Effect.map(([row]) => row ?? null),
          toStored("fires.request"),
        ),
      prompt: (id) =>
        sql<{ readonly prompt: string | null }>`
          SELECT initial_prompt AS prompt FROM project_sessions WHERE fire_id = ${id}
          UNION ALL
          SELECT coalesce(session ->> 'initialPrompt', session -> 'firstMessage' ->> 'text') FROM fire_queue WHERE fire_id = ${id}`.pipe(
          Effect.map(([row]) => row?.prompt ?? null),
          toStored("fires.prompt"),
        ),
      requester: (id) =>
        sql<{ readonly by: string }>`
          SELECT session ->> 'createdBy' AS by FROM fire_queue WHERE fire_id = ${id} AND kind = 'session'`.pipe(
          Effect.map(([row]) => row?.by ?? null),
          toStored("fires.requester"),
        ),
      get: (id) =>
        showFires(sql`SELECT ${columns} FROM fires WHERE id = ${id}`).pipe(
          Effect.map(([row]) => row ?? null),
          onSharedConnection,
          toStored("fires.get"),
        ),
      list: Effect.fnUntraced(function* (projectId, { cursor, limit, slug, status, hasFailed = false }) {
        const position = yield* readCursor(cursor);
        const rows = yield* showFires(
          sql`
            SELECT ${columns} FROM fires
            WHERE project_id = ${projectId} AND kind <> 'session'
              ${slug === null ? sql.literal("") : sql`AND trigger_slug = ${slug}`}
              AND ${ofStatus(sql, projectId, status)}
              ${hasFailed ? sql`AND (status = 'failed' OR session_failed)` : sql.literal("")}
              ${afterPosition(sql, { at: "received_at", id: "id" }, position)}
            ORDER BY received_at DESC, id DESC ${pageLimit(sql, limit)}`,
          status !== null || hasFailed,
        );
        return cutPage(rows, limit, ({ receivedAt, id }) => ({ at: receivedAt, id }));
      }, toStored("fires.list")),
      lastBySlug: (projectId, slugs) =>
        showFires(sql`
          SELECT newest.* FROM unnest(${[...slugs]}::text[]) AS wanted (slug) CROSS JOIN LATERAL (
            SELECT ${columns} FROM fires
            WHERE project_id = ${projectId} AND trigger_slug = wanted.slug AND status <> 'duplicate'
            ORDER BY received_at DESC, id DESC LIMIT 1
          ) AS newest`).pipe(
          Effect.map((rows) => new Map(rows.map((fire) => [fire.triggerSlug ?? "", fire]))),
          toStored("fires.lastBySlug"),
        ),
      ...makeQueue(sql),
    };
  }),
);
