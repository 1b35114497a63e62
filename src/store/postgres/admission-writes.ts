/** What admission and drain write, a whole batch a statement. Used inside their transactions, under the account's lock. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { session as sessionMachine } from "../../machines/session.ts";
import {
  answersDelivery,
  type AdmissionPlan,
  type PlannedEntry,
  type PlannedFire,
  type PlannedSession,
} from "../admission-plan.ts";
import { admissionEvents } from "../event-rows.ts";
import { EventLog } from "./event-log.ts";
import { appendCommands } from "./outbox.ts";
import { json } from "./statement.ts";

/** Every session starts alike: the machine's first snapshot, and its first commands. */
const START = sessionMachine.start({});

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
  metadata: session.metadata,
  trigger_slug: session.triggerSlug,
  fire_id: fireId,
  created_by: session.createdBy,
  origin: session.origin,
  boot_deadline: session.bootDeadlineAt,
  now,
});

const insertSessions = (sql: SqlClient.SqlClient, sessions: readonly PlannedSession[]) => sql`
  INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, base_commit, name,
    agent_name, agent_model, initial_prompt, metadata, trigger_slug, fire_id, created_by, origin,
    provisioned_at, boot_deadline_at, created_at, updated_at)
  SELECT id, project_id, account_id, ${START.snapshot.state}, ${json(START.snapshot.context)}::jsonb, base_ref,
    base_commit, name, agent_name, agent_model, initial_prompt, metadata, trigger_slug, fire_id, created_by, origin,
    to_timestamp(now / 1000.0), to_timestamp(boot_deadline / 1000.0), to_timestamp(now / 1000.0),
    to_timestamp(now / 1000.0)
  FROM jsonb_to_recordset(${json(sessions.map(sessionRow))}::jsonb) AS s(
    id uuid, project_id uuid, account_id uuid, base_ref text, base_commit text, name text, agent_name text,
    agent_model text, initial_prompt text, metadata jsonb, trigger_slug text, fire_id uuid, created_by uuid,
    origin text, boot_deadline bigint, now bigint)`;

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
  answers_delivery: answersDelivery(fire),
  session_id: fire.sessionId,
  attempts: fire.attempts,
  replay_of: fire.replayOf,
  fired_at: fire.firedAt,
});

/** Inserts ledger rows; a row that is tried again is overwritten under its id. */
export const writeFires = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, reason, scheduled_for, received_at,
    delivery_id, answers_delivery, session_id, attempts, replay_of, fired_at)
  SELECT id, account_id, project_id, trigger_slug, kind, status, reason, to_timestamp(scheduled_for / 1000.0),
    to_timestamp(received_at / 1000.0), delivery_id, answers_delivery, session_id, attempts, replay_of,
    to_timestamp(fired_at / 1000.0)
  FROM jsonb_to_recordset(${json(fires.map(fireRow))}::jsonb) AS f(
    id uuid, account_id uuid, project_id uuid, trigger_slug text, kind text, status text, reason text,
    scheduled_for bigint, received_at bigint, delivery_id text, answers_delivery boolean, session_id uuid,
    attempts integer, replay_of uuid, fired_at bigint)
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, reason = excluded.reason,
    received_at = excluded.received_at, session_id = excluded.session_id, attempts = excluded.attempts,
    fired_at = excluded.fired_at`;

const entryRow = ({ fire, session, template, queuedAt, expiresAt }: PlannedEntry) => ({
  fire_id: fire.id,
  account_id: fire.accountId,
  project_id: fire.projectId,
  trigger_slug: fire.triggerSlug,
  kind: fire.kind,
  session,
  template,
  queued_at: queuedAt,
  expires_at: expiresAt,
});

export const enqueue = (sql: SqlClient.SqlClient, entries: readonly PlannedEntry[]) => sql`
  INSERT INTO fire_queue (fire_id, account_id, project_id, trigger_slug, kind, session, template, queued_at, expires_at)
  SELECT e.fire_id, e.account_id, e.project_id, e.trigger_slug, e.kind, e.session, e.template,
    to_timestamp(e.queued_at / 1000.0), to_timestamp(e.expires_at / 1000.0)
  FROM jsonb_array_elements(${json(entries.map(entryRow))}::jsonb) WITH ORDINALITY AS entry(fields, place),
    jsonb_to_record(fields) AS e(fire_id uuid, account_id uuid, project_id uuid, trigger_slug text, kind text,
      session jsonb, template jsonb, queued_at bigint, expires_at bigint)
  ORDER BY entry.place`;

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Stores what the fires of a batch came with. @returns by how many bytes the account's store of them grew. */
export const writeRequests = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  accountId: string,
  { requests, fires }: AdmissionPlan,
) {
  if (requests.size === 0) return 0;
  const retried = fires.filter(({ id, attempts }) => attempts > 1 && requests.has(id)).map(({ id }) => id);
  const former =
    retried.length === 0
      ? []
      : yield* sql<{ readonly bytes: number }>`
          SELECT octet_length(body) AS bytes FROM fire_requests WHERE fire_id = ANY(${retried}::uuid[])`;
  const receivedAt = new Map(fires.map((fire) => [fire.id, fire.receivedAt]));
  const rows = [...requests].map(([id, { body, encoding, headers }]) => ({
    fire_id: id,
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64"),
    encoding,
    headers,
    stored_at: receivedAt.get(id) ?? 0,
  }));
  yield* sql`
    INSERT INTO fire_requests (fire_id, account_id, body, encoding, headers, stored_at)
    SELECT fire_id, ${accountId}, decode(body, 'base64'), encoding, headers, to_timestamp(stored_at / 1000.0)
    FROM jsonb_to_recordset(${json(rows)}::jsonb)
      AS r(fire_id uuid, body text, encoding text, headers jsonb, stored_at bigint)
    ON CONFLICT (fire_id) DO UPDATE SET body = excluded.body, encoding = excluded.encoding,
      headers = excluded.headers, stored_at = excluded.stored_at`;
  const written = sumOf([...requests.values()].map(({ body }) => body.byteLength));
  return written - sumOf(former.map(({ bytes }) => bytes));
});

/** The cron instants of a batch have their rows: their triggers are accounted for up to them. */
export const moveCursors = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  fires: readonly PlannedFire[],
) {
  const due = fires.filter(({ kind, replayOf }) => kind === "cron" && replayOf === null);
  if (due.length === 0) return;
  yield* sql`
    UPDATE trigger_cursors AS cursor
    SET accounted_until = greatest(cursor.accounted_until, moved.accounted_until)
    FROM (
      SELECT project_id, trigger_slug, max(to_timestamp(scheduled_for / 1000.0)) AS accounted_until
      FROM jsonb_to_recordset(${json(due.map(fireRow))}::jsonb)
        AS f(project_id uuid, trigger_slug text, scheduled_for bigint)
      GROUP BY project_id, trigger_slug
    ) AS moved
    WHERE cursor.project_id = moved.project_id AND cursor.slug = moved.trigger_slug`;
});

/** last_fired_at is the only runtime state (spec 2.3), and never moves back (threats.md I14). */
const moveLastFired = (sql: SqlClient.SqlClient, fires: readonly PlannedFire[]) => sql`
  INSERT INTO project_trigger_runtime AS runtime (project_id, slug, last_fired_at)
  SELECT project_id, trigger_slug, max(to_timestamp(fired_at / 1000.0))
  FROM jsonb_to_recordset(${json(fires.map(fireRow))}::jsonb)
    AS f(project_id uuid, trigger_slug text, fired_at bigint)
  GROUP BY project_id, trigger_slug
  ON CONFLICT (project_id, slug) DO UPDATE
  SET last_fired_at = greatest(runtime.last_fired_at, excluded.last_fired_at)`;

/** Sessions with their first commands, ledger rows, last_fired_at and the events of all that. */
export const makeStart = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (sessions: readonly PlannedSession[], fires: readonly PlannedFire[]) {
    if (sessions.length > 0) {
      yield* insertSessions(sql, sessions);
      yield* appendCommands(
        sql,
        "session",
        sessions.flatMap(({ session, now }) =>
          START.commands.map((command) => ({ actorId: session.id, command, now })),
        ),
      );
    }
    if (fires.length > 0) yield* writeFires(sql, fires);
    const fired = fires.filter(({ status }) => status === "fired");
    if (fired.length > 0) yield* moveLastFired(sql, fired);
    yield* events.append(admissionEvents(sessions, fires));
  });
});
