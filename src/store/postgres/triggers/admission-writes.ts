/**
 * The writes of admission and drain: one statement for each batch, with a part for each table that gets rows. The
 * statement moves the account's counters first. If they do not move, nothing is written. Its parts see the tables as
 * they were before it; constraints hold after it.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { ForbiddenMove } from "../../../domain/trigger/fire.ts";
import { session as sessionMachine } from "../../../machines/session.ts";
import type { AdmissionPlan, PlannedEntry, PlannedFire, PlannedSession } from "../../admission/plan.ts";
import { admissionEvents } from "../../event-rows.ts";
import { firstTransition, sessionOrigin } from "../../../machines/transition.ts";
import type { StoredRequest } from "../../ports/triggers/fires.ts";
import { EventLog } from "../events/event-log.ts";
import { ALLOWED_MOVES } from "./fire-moves.ts";
import { countersMoved, type CounterMove } from "./slots.ts";
import { jsonb } from "../connection/statement.ts";

/** Goes into the FROM of each part: one row, or none if the counters did not move. */
const IF_COUNTED = "(SELECT FROM counted) AS counted";

/** Every session starts the same way: with the machine's first snapshot and its first commands. */
const START = sessionMachine.start({});
/** The same row for every session, except when and by what it began. */
const FIRST = firstTransition(START, { now: 0 });

const sessionRow = ({ session, fireId, now }: PlannedSession) => ({
  id: session.id,
  project_id: session.projectId,
  account_id: session.accountId,
  base_ref: session.baseRef,
  base_commit: session.baseCommit,
  name: session.name,
  agent_name: session.agentName,
  agent_model: session.agentModel,
  initial_prompt: session.initialPrompt,
  first_message: session.firstMessage ?? null,
  metadata: session.metadata,
  trigger_slug: session.triggerSlug,
  fire_id: fireId,
  created_by: session.createdBy,
  parent: session.parentSessionId ?? null,
  saved: session.saved ?? null,
  origin: session.origin,
  boot_deadline: session.bootDeadlineAt,
  now,
});

const sessionRows = (sql: SqlClient.SqlClient, sessions: readonly PlannedSession[]) => sql`
  INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, base_commit, name,
    agent_name, agent_model, initial_prompt, first_message, metadata, trigger_slug, fire_id, created_by, parent_session_id, origin,
    saved, restore_saved, provisioned_at, boot_deadline_at, created_at, updated_at)
  SELECT id, project_id, account_id, ${START.snapshot.state}, ${jsonb(START.snapshot.context)}::jsonb, base_ref,
    base_commit, name, agent_name, agent_model, initial_prompt, first_message, metadata, trigger_slug, fire_id, created_by, parent,
    origin,
    saved, saved IS NOT NULL, to_timestamp(now / 1000.0), to_timestamp(boot_deadline / 1000.0), to_timestamp(now / 1000.0),
    to_timestamp(now / 1000.0)
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(sessions.map(sessionRow))}::jsonb) AS s(
    id uuid, project_id uuid, account_id uuid, base_ref text, base_commit text, name text, agent_name text,
    agent_model text, initial_prompt text, first_message jsonb, metadata jsonb, trigger_slug text, fire_id uuid, created_by uuid,
    parent uuid, origin text, saved jsonb, boot_deadline bigint, now bigint)`;

/** A session has one first command. */
const commandRows = (sql: SqlClient.SqlClient, sessions: readonly PlannedSession[]) => {
  const rows = sessions.flatMap(({ session, now }) =>
    START.commands.map((command) => ({ actor_id: session.id, command, now })),
  );
  return sql`
    INSERT INTO outbox (actor_kind, actor_id, command, created_at)
    SELECT 'session', actor_id, command, to_timestamp(now / 1000.0)
    FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(rows)}::jsonb) AS c(actor_id uuid, command jsonb, now bigint)`;
};

/** The history of a session begins with its first version. */
const historyRows = (sql: SqlClient.SqlClient, sessions: readonly PlannedSession[]) => {
  const rows = sessions.map(({ session, now }) => ({ id: session.id, now, detail: sessionOrigin(session) }));
  const { event, to, commands } = FIRST;
  return sql`
    INSERT INTO transitions (actor_kind, actor_id, number, at, event, to_state, detail, commands)
    SELECT 'session', id, 1, to_timestamp(now / 1000.0), ${event}, ${to}, detail, ${commands}::text[]
    FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(rows)}::jsonb) AS h(id text, now bigint, detail text)`;
};

const fireRow = (fire: PlannedFire) => ({
  id: fire.id,
  account_id: fire.accountId,
  project_id: fire.projectId,
  trigger_slug: fire.triggerSlug,
  kind: fire.kind,
  status: fire.status,
  reason: fire.reason,
  scheduled_for: fire.scheduledFor,
  received_at: fire.receivedAt,
  delivery_id: fire.deliveryId,
  answers_delivery: fire.answersDelivery,
  session_id: fire.sessionId,
  attempts: fire.attempts,
  replay_of: fire.replayOf,
  duplicate_of: fire.duplicateOf,
  fired_at: fire.firedAt,
  verified_with: fire.verifiedWith,
});

const FIRE_FIELDS = `id uuid, account_id uuid, project_id uuid, trigger_slug text, kind text, status text, reason text,
  scheduled_for bigint, received_at bigint, delivery_id text, answers_delivery boolean, session_id uuid, attempts integer,
  replay_of uuid, duplicate_of uuid, fired_at bigint, verified_with text`;

const newFireRows = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, reason, scheduled_for, received_at,
    delivery_id, answers_delivery, session_id, attempts, replay_of, duplicate_of, fired_at,
    verified_with)
  SELECT id, account_id, project_id, trigger_slug, kind, status, reason, to_timestamp(scheduled_for / 1000.0),
    to_timestamp(received_at / 1000.0), delivery_id, answers_delivery, session_id, attempts, replay_of,
    duplicate_of, to_timestamp(fired_at / 1000.0), verified_with
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(fires.map(fireRow))}::jsonb) AS f(${sql.literal(FIRE_FIELDS)})`;

/** Fires that are retried, or have waited, keep their rows and ids. The table of moves must allow the change. */
const movedFireRows = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  UPDATE fires SET status = f.status, reason = f.reason, received_at = to_timestamp(f.received_at / 1000.0),
    session_id = f.session_id, attempts = f.attempts, fired_at = to_timestamp(f.fired_at / 1000.0),
    verified_with = f.verified_with
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(fires.map(fireRow))}::jsonb) AS f(${sql.literal(FIRE_FIELDS)})
  WHERE fires.id = f.id AND (fires.status, f.status) IN (${sql.literal(ALLOWED_MOVES)})
  RETURNING fires.id`;

const triggerInstants = (fires: readonly PlannedFire[], instantOf: (fire: PlannedFire) => number | null) =>
  jsonb(fires.map((fire) => ({ project_id: fire.projectId, slug: fire.triggerSlug, at: instantOf(fire) })));

/** last_fired_at is the only runtime state (spec 2.3), and never moves back (threats.md I14). */
const lastFired = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  INSERT INTO project_trigger_runtime AS runtime (project_id, slug, last_fired_at)
  SELECT project_id, slug, max(to_timestamp(at / 1000.0))
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${triggerInstants(fires, ({ firedAt }) => firedAt)}::jsonb)
    AS f(project_id uuid, slug text, at bigint)
  GROUP BY project_id, slug
  ON CONFLICT (project_id, slug) DO UPDATE
  SET last_fired_at = greatest(runtime.last_fired_at, excluded.last_fired_at)`;

/** Moves the triggers' cursors to the cron instants that now have their rows. */
const cursorMoves = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  UPDATE trigger_cursors AS cursor
  SET accounted_until = greatest(cursor.accounted_until, moved.accounted_until)
  FROM (
    SELECT project_id, slug, max(to_timestamp(at / 1000.0)) AS accounted_until
    FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${triggerInstants(fires, ({ scheduledFor }) => scheduledFor)}::jsonb)
      AS f(project_id uuid, slug text, at bigint)
    GROUP BY project_id, slug
  ) AS moved
  WHERE cursor.project_id = moved.project_id AND cursor.slug = moved.slug`;

const entryRow = ({ fire, session, template, replaces, queuedAt, expiresAt }: PlannedEntry) => ({
  fire_id: fire.id,
  account_id: fire.accountId,
  project_id: fire.projectId,
  trigger_slug: fire.triggerSlug,
  kind: fire.kind,
  session,
  template,
  replaces,
  queued_at: queuedAt,
  expires_at: expiresAt,
});

/** In order: rows get their place in the queue as they are inserted. */
const queueRows = (sql: SqlClient.SqlClient, entries: readonly PlannedEntry[]) => sql`
  INSERT INTO fire_queue (fire_id, account_id, project_id, trigger_slug, kind, session, template, queued_at, expires_at)
  SELECT fire_id, account_id, project_id, trigger_slug, kind, session, template,
    to_timestamp(queued_at / 1000.0), to_timestamp(expires_at / 1000.0)
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(entries.map(entryRow))}::jsonb) AS e(fire_id uuid, account_id uuid, project_id uuid,
    trigger_slug text, kind text, session jsonb, template jsonb, queued_at bigint, expires_at bigint)`;

/**
 * A later instant takes over the waiting row and its place in the queue. Otherwise the trigger would never come first.
 */
const replacedQueueRows = (sql: SqlClient.SqlClient, entries: readonly PlannedEntry[]) => sql`
  UPDATE fire_queue AS waiting SET fire_id = e.fire_id, session = e.session, template = e.template,
    queued_at = to_timestamp(e.queued_at / 1000.0), expires_at = to_timestamp(e.expires_at / 1000.0)
  FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(entries.map(entryRow))}::jsonb) AS e(fire_id uuid, session jsonb, template jsonb,
    replaces uuid, queued_at bigint, expires_at bigint)
  WHERE waiting.fire_id = e.replaces`;

/**
 * Bodies are sent as one binary value and cut by their lengths. Sent as text, they would be half of a webhook's cost
 * here.
 */
const requestRows = (
  sql: SqlClient.SqlClient,
  accountId: string,
  requests: ReadonlyMap<string, StoredRequest>,
) => {
  let from = 1;
  const rows = [...requests].map(([id, { body, encoding, headers }]) => {
    const row = { fire_id: id, begins: from, bytes: body.byteLength, encoding, headers };
    from += body.byteLength;
    return row;
  });
  const bodies = Buffer.concat([...requests.values()].map(({ body }) => body));
  return sql`
    INSERT INTO fire_requests (fire_id, account_id, body, encoding, headers)
    SELECT fire_id, ${accountId}, substring(${bodies}::bytea FROM begins FOR bytes), encoding, headers
    FROM ${sql.literal(IF_COUNTED)}, jsonb_to_recordset(${jsonb(rows)}::jsonb)
      AS r(fire_id uuid, begins integer, bytes integer, encoding text, headers jsonb)`;
};

/** Everything that one decision writes. */
export interface Batch {
  readonly sessions: readonly PlannedSession[];
  /** New rows of the ledger. */
  readonly fires: readonly PlannedFire[];
  /** Rows that exist already. */
  readonly moved: readonly PlannedFire[];
  readonly queue: readonly PlannedEntry[];
  readonly requests: ReadonlyMap<string, StoredRequest>;
  readonly move: CounterMove;
}

/**
 * The writes that carry out a plan.
 *
 * @param ledger which rows exist already, and how many bytes of their stored requests were removed.
 */
export const admissionBatch = (
  { sessions, fires, queue, requests, overlapped }: AdmissionPlan,
  ledger: { readonly has: ReadonlySet<string>; readonly removedBytes: number },
): Batch => {
  const bytes = [...requests.values()].reduce((sum, { body }) => sum + body.byteLength, 0);
  return {
    sessions,
    fires: fires.filter(({ id }) => !ledger.has.has(id)),
    moved: fires.filter(({ id }) => ledger.has.has(id)),
    queue,
    requests,
    move: {
      sessions: sessions.length,
      queued: queue.length - overlapped.length,
      requestBytes: bytes - ledger.removedBytes,
    },
  };
};

export const makeWrite = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const log = yield* EventLog;

  const batchParts = (accountId: string, { sessions, fires: added, moved, queue, requests }: Batch) => {
    const fires = [...added, ...moved];
    const newSessionFires = fires.filter(({ status, kind }) => status === "fired" && kind !== "session");
    const due = fires.filter(({ kind, replayOf }) => kind === "cron" && replayOf === null);
    const events = admissionEvents({ sessions, fires, queue });
    const [last, replacing] = [
      queue.filter(({ replaces }) => replaces === null),
      queue.filter(({ replaces }) => replaces !== null),
    ];
    const parts: readonly (readonly [boolean, string, () => Fragment])[] = [
      [sessions.length > 0, "sessions", () => sessionRows(sql, sessions)],
      [sessions.length > 0, "commands", () => commandRows(sql, sessions)],
      [sessions.length > 0, "history", () => historyRows(sql, sessions)],
      [added.length > 0, "ledger", () => newFireRows(sql, added)],
      [moved.length > 0, "moved", () => movedFireRows(sql, moved)],
      [newSessionFires.length > 0, "fired", () => lastFired(sql, newSessionFires)],
      [due.length > 0, "accounted", () => cursorMoves(sql, due)],
      [last.length > 0, "waiting", () => queueRows(sql, last)],
      [replacing.length > 0, "replaced", () => replacedQueueRows(sql, replacing)],
      [requests.size > 0, "kept", () => requestRows(sql, accountId, requests)],
      [events.length > 0, "news", () => log.insertion(events, sql.literal(IF_COUNTED))],
    ];
    const wantedParts = parts.filter(([isWanted]) => isWanted);
    return { events, written: wantedParts.map(([, name, part]) => sql`${sql.literal(name)} AS (${part()})`) };
  };

  /**
   * Writes a batch with the account's counters.
   *
   * @param only a condition on the account's row, for a caller without its lock.
   * @returns `refused` if the counters did not move, so that nothing was written: the cap has no room for the sessions,
   * or the condition is false. A move that the table forbids is a defect, which rolls the transaction back.
   */
  return Effect.fnUntraced(function* (accountId: string, batch: Batch, only?: Fragment) {
    const { events, written } = batchParts(accountId, batch);
    if (written.length === 0) return "nothing to write";
    const move = only === undefined ? batch.move : { ...batch.move, only };
    const counters = sql`counted AS (${countersMoved(sql, accountId, move)})`;
    const carriedOver =
      batch.moved.length === 0 ? sql.literal("0") : sql.literal("(SELECT count(*) FROM moved)");
    const [done] = yield* sql<{
      readonly moved: string | number;
    }>`WITH ${sql.join(", ", false)([counters, ...written])} SELECT id, ${carriedOver} AS moved FROM counted`;
    if (done === undefined) return "refused";
    if (Number(done.moved) !== batch.moved.length)
      return yield* Effect.die(new ForbiddenMove("its status", batch.moved[0]?.status ?? "fired"));
    yield* log.tell(events);
    return "written";
  });
});
