/**
 * Admission and drain (api.md 4): one transaction each, under the lock of the account's row, so that everything about
 * one account's slots, queue and duplicates is decided by one writer at a time. The slot counter's conditional update and
 * the ledger's unique indexes stand behind that.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  identityOf,
  planAdmissions,
  planFailure,
  type AdmissionFacts,
  type PlannedFire,
} from "../admission-plan.ts";
import { Admissions, type AdmissionRequest } from "../port.ts";
import type { Fire, NewFire, NewSession } from "../records.ts";
import { enqueue, makeStart, writeFires } from "./admission-writes.ts";
import { FIRE_COLUMNS, queueInOrder } from "./fires.ts";
import { lockAccount, reserveSlots } from "./slots.ts";
import { at, json, stored } from "./statement.ts";

type DrainRequest = Parameters<(typeof Admissions)["Service"]["drain"]>[1];

/** The ledger rows that may be the same fires as these, and the waiting ones of their triggers. */
const makeLookUp = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(FIRE_COLUMNS);

  const known = (fires: readonly NewFire[]) => {
    const sought = fires.filter((fire) => identityOf(fire) !== null);
    if (sought.length === 0) return Effect.succeed<readonly Fire[]>([]);
    const wanted = json(
      sought.map((fire) => ({
        project_id: fire.projectId,
        trigger_slug: fire.triggerSlug,
        delivery_id: fire.kind === "cron" ? null : fire.deliveryId,
        instant: fire.kind === "cron" ? fire.scheduledFor : null,
      })),
    );
    return sql<Fire>`
      WITH wanted AS (
        SELECT project_id, trigger_slug, delivery_id, to_timestamp(instant / 1000.0) AS instant
        FROM jsonb_to_recordset(${wanted}::jsonb)
          AS w(project_id uuid, trigger_slug text, delivery_id text, instant bigint)
      )
      SELECT ${columns} FROM fires WHERE answers_delivery
        AND (project_id, trigger_slug, delivery_id) IN (SELECT project_id, trigger_slug, delivery_id FROM wanted)
      UNION ALL
      SELECT ${columns} FROM fires WHERE kind = 'cron' AND replay_of IS NULL AND status <> 'duplicate'
        AND (project_id, trigger_slug, scheduled_for) IN (SELECT project_id, trigger_slug, instant FROM wanted)`;
  };
  const waitingCron = (accountId: string) =>
    sql<AdmissionFacts["waitingCron"][number]>`
      SELECT fire_id AS id, project_id AS "projectId", trigger_slug AS "triggerSlug"
      FROM fire_queue WHERE account_id = ${accountId} AND kind = 'cron'`;
  const waiting = (accountId: string) =>
    Effect.map(
      sql<{ readonly waiting: number }>`
        SELECT count(*)::integer AS waiting FROM fire_queue WHERE account_id = ${accountId}`,
      ([row]) => row?.waiting ?? 0,
    );
  const activeProjects = (accountId: string, ids: readonly string[]) =>
    Effect.map(
      sql<{ readonly id: string }>`
        SELECT id FROM projects
        WHERE account_id = ${accountId} AND status = 'active' AND id = ANY(${ids}::uuid[])`,
      (rows) => new Set(rows.map(({ id }) => id)),
    );
  return { known, waitingCron, waiting, activeProjects };
});

const makeAdmit = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const lookUp = yield* makeLookUp;
  const start = yield* makeStart;

  const gather = Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    const fires = requests.flatMap(({ fire }) => (fire === null ? [] : [fire]));
    const account = yield* lockAccount(sql, accountId);
    const projects = [...new Set(requests.map(({ session }) => session.projectId))];
    const activeProjects =
      account === null ? new Set<string>() : yield* lookUp.activeProjects(accountId, projects);
    const cap = account?.cap ?? 0;
    const activeSessions = account?.activeSessions ?? 0;
    // Only a batch that does not fit looks at the queue.
    const mayWait = fires.length > 0 && activeSessions + requests.length > cap;
    const facts: AdmissionFacts = {
      cap,
      activeSessions,
      activeProjects,
      known: yield* lookUp.known(fires),
      waiting: mayWait ? yield* lookUp.waiting(accountId) : 0,
      waitingCron: mayWait ? yield* lookUp.waitingCron(accountId) : [],
    };
    return facts;
  });

  return Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    if (requests.length === 0) return [];
    const plan = planAdmissions(yield* gather(accountId, requests), requests);
    if (plan.outlived.length > 0) {
      yield* sql`UPDATE fires SET answers_delivery = false WHERE id = ANY(${plan.outlived}::uuid[])`;
    }
    if (plan.overlapped.length > 0) {
      yield* sql`
        WITH gone AS (DELETE FROM fire_queue WHERE fire_id = ANY(${plan.overlapped}::uuid[]) RETURNING fire_id)
        UPDATE fires SET status = 'skipped', reason = 'overlapped' FROM gone WHERE id = gone.fire_id`;
    }
    if (plan.sessions.length > 0) {
      // Cannot fail under the lock; if it ever did, nothing of the batch would be written.
      yield* Effect.orDie(reserveSlots(sql, accountId, plan.sessions.length));
    }
    yield* start(plan.sessions, plan.fires);
    if (plan.queue.length > 0) yield* enqueue(sql, plan.queue);
    return plan.answers;
  });
});

type Drafted = Omit<NewSession, "id" | "bootDeadlineAt">;

const makeDrain = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const start = yield* makeStart;

  const expire = (accountId: string, now: number) => sql`
    WITH gone AS (
      DELETE FROM fire_queue WHERE account_id = ${accountId} AND expires_at <= ${at(now)} RETURNING fire_id
    )
    UPDATE fires SET status = 'expired', reason = 'queue_ttl' FROM gone WHERE id = gone.fire_id`;

  /** Takes the next fires out of the queue, with their rows; each project's turn is noted. */
  const take = Effect.fnUntraced(function* (accountId: string, count: number, drainedTurns: bigint) {
    const next = yield* sql<Fire & { readonly session: Drafted }>`
      WITH ordered AS (${queueInOrder(sql, accountId)} LIMIT ${count}),
      gone AS (DELETE FROM fire_queue WHERE fire_id IN (SELECT fire_id FROM ordered))
      SELECT fire.*, ordered.session FROM ordered
      JOIN (SELECT ${sql.literal(FIRE_COLUMNS)} FROM fires) AS fire ON fire.id = ordered.fire_id
      ORDER BY ordered.turn, ordered.drained_turn, ordered.project_id`;
    const turns = new Map(next.map(({ projectId }, index) => [projectId, drainedTurns + BigInt(index + 1)]));
    yield* sql`
      UPDATE projects SET drained_turn = turn.value
      FROM unnest(${[...turns.keys()]}::uuid[], ${[...turns.values()].map(String)}::bigint[]) AS turn (id, value)
      WHERE projects.id = turn.id`;
    yield* sql`UPDATE accounts SET drained_turns = drained_turns + ${next.length} WHERE id = ${accountId}`;
    return next;
  });

  return Effect.fnUntraced(function* (accountId: string, request: DrainRequest) {
    const { sessionIds, now, bootTimeoutMs } = request;
    const account = yield* lockAccount(sql, accountId);
    if (account === null) return { admitted: [], more: false };
    yield* expire(accountId, now);
    const free = account.cap - account.activeSessions;
    const count = Math.min(free, sessionIds.length);
    const next = count > 0 ? yield* take(accountId, count, BigInt(account.drainedTurns)) : [];
    if (next.length === 0) return { admitted: [], more: false };
    const pairs = next.flatMap(({ session, ...fire }, index) => {
      const sessionId = sessionIds[index];
      return sessionId === undefined ? [] : [{ session, fire, sessionId }];
    });
    yield* Effect.orDie(reserveSlots(sql, accountId, pairs.length));
    yield* start(
      pairs.map(({ session, fire, sessionId }) => ({
        session: { ...session, id: sessionId, bootDeadlineAt: now + bootTimeoutMs },
        fireId: fire.id,
        now,
      })),
      pairs.map(({ fire, sessionId }): PlannedFire => ({
        ...fire,
        accountId,
        status: "fired",
        reason: null,
        sessionId,
        firedAt: now,
      })),
    );
    const left = yield* sql`SELECT fire_id FROM fire_queue WHERE account_id = ${accountId} LIMIT 1`;
    const admitted = pairs.map(({ fire, sessionId }) => ({ fireId: fire.id, sessionId }));
    return { admitted, more: left.length > 0 && pairs.length < free };
  });
});

const makeRecordFailed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const lookUp = yield* makeLookUp;
  return Effect.fnUntraced(function* (fire: NewFire, reason: string) {
    yield* lockAccount(sql, fire.accountId);
    const [former] = yield* lookUp.known([fire]);
    const { row, outlived } = planFailure(fire, { reason, former: former ?? null });
    if (outlived !== null) yield* sql`UPDATE fires SET answers_delivery = false WHERE id = ${outlived}`;
    if (row !== null) yield* writeFires(sql, [row]);
  });
});

export const layer = Layer.effect(
  Admissions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const admit = yield* makeAdmit;
    const drain = yield* makeDrain;
    const recordFailed = yield* makeRecordFailed;
    return {
      admit: (accountId, requests) =>
        sql.withTransaction(admit(accountId, requests)).pipe(stored("admissions.admit")),
      drain: (accountId, request) =>
        sql.withTransaction(drain(accountId, request)).pipe(stored("admissions.drain")),
      recordFailed: (fire, reason) =>
        sql.withTransaction(recordFailed(fire, reason)).pipe(stored("admissions.recordFailed")),
      waitingAccounts: sql<{ readonly id: string }>`SELECT DISTINCT account_id AS id FROM fire_queue`.pipe(
        Effect.map((rows) => rows.map(({ id }) => id)),
        stored("admissions.waitingAccounts"),
      ),
    };
  }),
);
