/**
 * Admission, drain and everything else that moves fires into and out of the queue (api.md 4). Each is one transaction
 * under the lock of the account's row, so one writer at a time decides about an account's slots, queue and duplicates.
 * The conditional counters and the ledger's unique indexes are a second line of defence.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Faults } from "../../ports/faults.ts";
import { newIdentity, planAdmissions, triggerKey, type AdmissionFacts } from "../../admission/plan.ts";
import { planDrain, type DrainedFire, type DrainRequest } from "../../admission/drain.ts";
import { fireEvents } from "../../event-rows.ts";
import {
  Admissions,
  type AdmissionRequest,
  type RefusedWait,
  type Skip,
  type WaitingFire,
} from "../../ports/triggers/admissions.ts";
import type { Fire, NewFire, StoredRequest } from "../../ports/triggers/fires.ts";
import { Guesses, holds, isKnownDelivery, leavesDeliveryOut } from "./admission-guesses.ts";
import { admissionBatch, makeWrite } from "./admission-writes.ts";
import { EventLog } from "../events/event-log.ts";
import { cancelWaits, endWait, endWaits, overlap } from "./fire-moves.ts";
import { FIRE_COLUMNS, queueInOrder } from "./fires.ts";
import { PERSON_NOW } from "../people/roles.ts";
import { leaveQueue, lockAccount } from "./slots.ts";
import { at, jsonb, toStored } from "../connection/statement.ts";

const triggerPairs = (of: readonly Pick<Fire, "projectId" | "triggerSlug">[]): string =>
  jsonb(of.map(({ projectId, triggerSlug }) => ({ project_id: projectId, slug: triggerSlug })));

/** The facts on which an admission depends, in addition to the account's row. */
const makeLookUp = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(FIRE_COLUMNS);

  // One look-up each in the unique index, which begins with the delivery id. While the planner has no statistics of the
  // table, it would prefer another index or a full scan.
  const byDelivery = (fires: readonly NewFire[]) => sql<Fire>`
    SELECT known.* FROM unnest(${fires.map(({ projectId }) => projectId)}::uuid[],
      ${fires.map(({ triggerSlug }) => triggerSlug)}::text[],
      ${fires.map(({ deliveryId }) => deliveryId)}::text[]) AS wanted(project_id, trigger_slug, delivery_id)
    CROSS JOIN LATERAL (
      SELECT ${columns} FROM fires WHERE answers_delivery AND delivery_id = wanted.delivery_id
        AND project_id IS NOT DISTINCT FROM wanted.project_id
        AND trigger_slug IS NOT DISTINCT FROM wanted.trigger_slug LIMIT 1
    ) AS known`;
  const byInstant = (fires: readonly NewFire[]) => sql<Fire>`
    SELECT known.* FROM unnest(${fires.map(({ projectId }) => projectId)}::uuid[],
      ${fires.map(({ triggerSlug }) => triggerSlug)}::text[],
      ${fires.map(({ scheduledFor }) => at(scheduledFor))}::timestamptz[]) AS wanted(project_id, trigger_slug, instant)
    CROSS JOIN LATERAL (
      SELECT ${columns} FROM fires WHERE kind = 'cron' AND replay_of IS NULL AND status <> 'duplicate'
        AND project_id = wanted.project_id AND trigger_slug = wanted.trigger_slug
        AND scheduled_for = wanted.instant LIMIT 1
    ) AS known`;
  /** The ledger rows that may be the same fires as these. */
  const lookUpFires = Effect.fnUntraced(function* (fires: readonly NewFire[]) {
    const sought = fires.filter((fire) => newIdentity(fire) !== null);
    const [due, delivered] = [
      sought.filter(({ kind }) => kind === "cron"),
      sought.filter(({ kind }) => kind !== "cron"),
    ];
    return [
      ...(delivered.length === 0 ? [] : yield* byDelivery(delivered)),
      ...(due.length === 0 ? [] : yield* byInstant(due)),
    ];
  });
  const waitingCron = (accountId: string, fires: readonly NewFire[]) =>
    fires.some(({ kind }) => kind === "cron")
      ? sql<AdmissionFacts["waitingCron"][number]>`
          SELECT fire_id AS id, project_id AS "projectId", trigger_slug AS "triggerSlug"
          FROM fire_queue WHERE account_id = ${accountId} AND kind = 'cron'`
      : Effect.succeed([]);
  const activeProjects = (accountId: string, ids: readonly string[]) =>
    Effect.map(
      sql<{ readonly id: string; readonly version: string }>`
        SELECT id, version FROM projects
        WHERE account_id = ${accountId} AND status = 'active' AND id = ANY(${ids}::uuid[])`,
      (rows) => new Map(rows.map(({ id, version }) => [id, Number(version)])),
    );
  /** By `triggerKey`. */
  const lastFired = (triggers: readonly Pick<Fire, "projectId" | "triggerSlug">[]) =>
    triggers.length === 0
      ? Effect.succeed(new Map<string, number>())
      : Effect.map(
          sql<{ readonly projectId: string; readonly triggerSlug: string; readonly lastFiredAt: number }>`
            SELECT project_id AS "projectId", slug AS "triggerSlug", last_fired_at AS "lastFiredAt"
            FROM project_trigger_runtime
            WHERE (project_id, slug) IN (
              SELECT project_id, slug FROM jsonb_to_recordset(${triggerPairs(triggers)}::jsonb)
                AS t(project_id uuid, slug text)
            )`,
          (rows) => new Map(rows.map((row) => [triggerKey(row), row.lastFiredAt])),
        );
  return { known: lookUpFires, waitingCron, activeProjects, lastFired };
});

/** The known fires whose session failed before its first turn. A look that only a repeated delivery costs. A turn has begun if the runtime reported an item of it. */
const lostFires = (sql: SqlClient.SqlClient, fires: readonly Fire[]) => {
  const sessions = fires.flatMap(({ kind, sessionId }) =>
    kind === "cron" || sessionId === null ? [] : [sessionId],
  );
  return sessions.length === 0
    ? Effect.succeed(new Set<string>())
    : Effect.map(
        sql<{ readonly fireId: string }>`
          SELECT fire_id AS "fireId" FROM project_sessions
          WHERE id = ANY(${sessions}::uuid[]) AND status = 'failed'
            AND NOT EXISTS (SELECT FROM conversation_items
              WHERE session_id = project_sessions.id AND native_id IS NOT NULL)`,
        (rows) => new Set(rows.map(({ fireId }) => fireId)),
      );
};
/** How many live sessions the requests' parents have. */
const countLiveChildren = (sql: SqlClient.SqlClient, requests: readonly AdmissionRequest[]) => {
  const parents = [...new Set(requests.flatMap(({ session }) => session.parentSessionId ?? []))];
  return parents.length === 0
    ? Effect.succeed(new Map<string, number>())
    : Effect.map(
        sql<{ readonly id: string; readonly count: number }>`
          SELECT parent_session_id AS id, count(*)::integer AS count FROM project_sessions
          WHERE parent_session_id = ANY(${parents}::uuid[]) AND status IN ('provisioning', 'running')
          GROUP BY parent_session_id`,
        (rows) => new Map(rows.map(({ id, count }) => [id, count])),
      );
};

/** Decides a batch under the account's lock, which is held until the caller's transaction ends. */
const makeDecide = Effect.fnUntraced(function* (guesses: Guesses) {
  const sql = yield* SqlClient.SqlClient;
  const faults = yield* Faults;
  const lookUp = yield* makeLookUp;
  const write = yield* makeWrite;

  /** Removes the stored request of an earlier attempt. @returns its bytes. */
  const forget = (accountId: string, fireIds: readonly string[]) =>
    fireIds.length === 0
      ? Effect.succeed(0)
      : Effect.map(
          sql<{ readonly bytes: number }>`
            DELETE FROM fire_requests WHERE account_id = ${accountId} AND fire_id = ANY(${fireIds}::uuid[])
            RETURNING octet_length(body) AS bytes`,
          (rows) => rows.reduce((sum, { bytes }) => sum + bytes, 0),
        );

  const gather = Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    const fires = requests.flatMap(({ fire }) => (fire === null ? [] : [fire]));
    const account = yield* lockAccount(sql, accountId);
    const projects = [...new Set(requests.map(({ session }) => session.projectId))];
    const activeProjects =
      account === null ? new Map<string, number>() : yield* lookUp.activeProjects(accountId, projects);
    const { cap = 0, activeSessions = 0, queuedFires = 0 } = account ?? {};
    const formerFires = yield* lookUp.known(fires);
    const facts: AdmissionFacts = {
      cap,
      activeSessions,
      activeProjects,
      liveChildren: yield* countLiveChildren(sql, requests),
      known: formerFires,
      lost: yield* lostFires(sql, formerFires),
      lastFired: yield* lookUp.lastFired(fires.filter(({ prompt }) => prompt.is === "cron")),
      waiting: queuedFires,
      // Only a batch that does not fit reads the queue.
      waitingCron:
        queuedFires > 0 || activeSessions + requests.length > cap
          ? yield* lookUp.waitingCron(accountId, fires)
          : [],
    };
    return facts;
  });

  return Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    const facts = yield* gather(accountId, requests);
    const plan = planAdmissions(facts, requests);
    if (plan.outlived.length > 0) {
      yield* sql`UPDATE fires SET answers_delivery = false WHERE id = ANY(${plan.outlived}::uuid[])`;
    }
    yield* overlap(sql, plan.overlapped);
    const { fires, requests: kept } = plan;
    // An attempt in the same batch has left no row yet.
    const rows = new Set(facts.known.map(({ id }) => id));
    const retriedIds = fires.filter(({ id }) => rows.has(id) && kept.has(id)).map(({ id }) => id);
    const removedBytes = yield* forget(accountId, [...retriedIds, ...plan.forgotten]);
    const batch = admissionBatch(plan, { has: rows, removedBytes });
    const outcome = yield* write(accountId, batch);
    if (outcome === "refused") return yield* Effect.die(new Error("a batch was admitted beyond the cap"));
    guesses.note(accountId, facts, batch.move);
    faults("admission.written");
    return plan.answers;
  });
});

const makeAdmit = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const faults = yield* Faults;
  const write = yield* makeWrite;
  const guesses = new Guesses();
  const decide = yield* makeDecide(guesses);

  /** The fast path, on the account's remembered values. Null if the batch must be decided under the lock. */
  const guess = Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    const facts = guesses.factsFor(accountId, requests);
    if (facts === null) return null;
    const plan = planAdmissions(facts, requests);
    if (leavesDeliveryOut(requests, plan)) return null;
    const batch = admissionBatch(plan, { has: new Set(), removedBytes: 0 });
    faults("admission.guessed");
    const outcome = yield* Effect.catchIf(
      write(accountId, batch, holds(sql, accountId, facts)),
      isKnownDelivery,
      () => Effect.succeed("refused" as const),
    );
    if (outcome !== "written") return null;
    guesses.note(accountId, facts, batch.move);
    return plan.answers;
  });

  return Effect.fnUntraced(function* (accountId: string, requests: readonly AdmissionRequest[]) {
    if (requests.length === 0) return [];
    faults("admission.begun");
    return (yield* guess(accountId, requests)) ?? (yield* sql.withTransaction(decide(accountId, requests)));
  });
});

const makeDrain = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const faults = yield* Faults;
  const events = yield* EventLog;
  const lookUp = yield* makeLookUp;
  const write = yield* makeWrite;

  const expire = Effect.fnUntraced(function* (accountId: string, now: number) {
    const which = sql`account_id = ${accountId} AND expires_at <= ${at(now)}`;
    const fires = yield* endWait(sql, which, { status: "expired", reason: "queue_ttl" });
    yield* events.append(fireEvents(fires, now));
    return fires.length;
  });

  /** Takes the next fires with their rows out of the queue, and records each project's turn. */
  const take = Effect.fnUntraced(function* (accountId: string, count: number, drainedTurns: bigint) {
    const next = yield* sql<Fire & Omit<DrainedFire, "fire">>`
      WITH ordered AS (${queueInOrder(sql, { accountId, limit: count })}),
      gone AS (DELETE FROM fire_queue WHERE fire_id IN (SELECT fire_id FROM ordered))
      SELECT fire.*, ordered.session, ordered.template, to_jsonb(asking.*) AS person FROM ordered
      JOIN (SELECT ${sql.literal(FIRE_COLUMNS)} FROM fires) AS fire ON fire.id = ordered.fire_id
      LEFT JOIN LATERAL (
        SELECT ${sql.literal(PERSON_NOW)} FROM users JOIN projects AS project ON project.id = ordered.project_id
        WHERE fire.kind = 'session' AND users.id = (ordered.session ->> 'createdBy')::uuid
      ) AS asking ON true
      ORDER BY ordered.turn, ordered.drained_turn, ordered.project_id`;
    const turns = new Map(next.map(({ projectId }, index) => [projectId, drainedTurns + BigInt(index + 1)]));
    yield* sql`
      UPDATE projects SET drained_turn = turn.value
      FROM unnest(${[...turns.keys()]}::uuid[], ${[...turns.values()].map(String)}::bigint[]) AS turn (id, value)
      WHERE projects.id = turn.id`;
    yield* sql`UPDATE accounts SET drained_turns = drained_turns + ${next.length} WHERE id = ${accountId}`;
    faults("drain.taken");
    return next.map(({ session, template, person, ...fire }): DrainedFire => ({
      fire,
      session,
      template,
      person,
    }));
  });

  return Effect.fnUntraced(function* (accountId: string, request: DrainRequest) {
    faults("drain.begun");
    const account = yield* lockAccount(sql, accountId);
    if (account === null) return { admitted: [], more: false };
    const expiredFires = yield* expire(accountId, request.now);
    const free = account.cap - account.activeSessions;
    const count = Math.min(free, request.sessionIds.length);
    const next = count > 0 ? yield* take(accountId, count, BigInt(account.drainedTurns)) : [];
    const waitedForCron = next.flatMap(({ fire, template }) => (template === null ? [] : [fire]));
    const lastFired = yield* lookUp.lastFired(waitedForCron);
    const { sessions, rows, admitted } = planDrain(accountId, next, { lastFired, request });
    yield* leaveQueue(sql, accountId, expiredFires);
    const move = { sessions: sessions.length, queued: -next.length, requestBytes: 0 };
    const batch = {
      sessions,
      fires: [],
      moved: rows,
      queue: [],
      requests: new Map<string, StoredRequest>(),
      move,
    };
    const outcome = yield* write(accountId, batch);
    if (outcome === "refused") return yield* Effect.die(new Error("a batch was admitted beyond the cap"));
    faults("drain.written");
    const left = account.queuedFires - expiredFires - next.length;
    return { admitted, more: next.length > 0 && left > 0 && admitted.length < free };
  });
});

const makeSkip = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (skip: Skip) {
    const { accountId, projectId, projectVersion, triggerSlug, reason, instants, now } = skip;
    const last = instants.at(-1);
    // This is decided under the same lock: a concurrent admission either sees these rows or is seen by them.
    yield* lockAccount(sql, accountId);
    // The share lock keeps the project unchanged until the rows are written.
    const [project] = yield* sql<{ readonly version: string }>`
      SELECT version FROM projects WHERE id = ${projectId} AND status = 'active' FOR SHARE`;
    if (Number(project?.version ?? -1) !== projectVersion) return false;
    if (last === undefined) return true;
    const rows = instants.map(({ id, dueAt }) => ({ id, due: dueAt }));
    yield* sql`
      INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, reason, scheduled_for, received_at,
        answers_delivery, attempts)
      SELECT s.id, ${accountId}, ${projectId}, ${triggerSlug}, 'cron', 'skipped', ${reason},
        to_timestamp(s.due / 1000.0), ${at(now)}, false, 0
      FROM jsonb_to_recordset(${jsonb(rows)}::jsonb) AS s(id uuid, due bigint)
      ON CONFLICT DO NOTHING`;
    yield* sql`
      UPDATE trigger_cursors SET accounted_until = greatest(accounted_until, ${at(last.dueAt)})
      WHERE project_id = ${projectId} AND slug = ${triggerSlug}`;
    return true;
  });
});

const makeCancel = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (fireId: string, now: number) {
    const [waiting] = yield* sql<{ readonly accountId: string }>`
      SELECT account_id AS "accountId" FROM fire_queue WHERE fire_id = ${fireId}`;
    if (waiting === undefined) return false;
    // A drain that is under way finishes first.
    yield* lockAccount(sql, waiting.accountId);
    const cancel = { accountId: waiting.accountId, reason: "requested", now };
    return (yield* cancelWaits({ sql, events }, sql`fire_id = ${fireId}`, cancel)) > 0;
  });
});

const makeRefuse = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (accountId: string, waits: readonly RefusedWait[], now: number) {
    yield* lockAccount(sql, accountId);
    for (const { fireId, status, reason } of waits) {
      const which = sql`account_id = ${accountId} AND fire_id = ${fireId}`;
      yield* endWaits({ sql, events }, which, { accountId, status, reason, now });
    }
  });
});

export const layer = Layer.effect(
  Admissions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const admit = yield* makeAdmit;
    const drain = yield* makeDrain;
    const skip = yield* makeSkip;
    const cancel = yield* makeCancel;
    const refuse = yield* makeRefuse;
    return {
      admit: (accountId, requests) => admit(accountId, requests).pipe(toStored("admissions.admit")),
      drain: (accountId, request) =>
        sql.withTransaction(drain(accountId, request)).pipe(toStored("admissions.drain")),
      skip: (request) => sql.withTransaction(skip(request)).pipe(toStored("admissions.skip")),
      heads: (accountId, limit) =>
        sql<WaitingFire>`
          SELECT fire_id AS "fireId", kind, session
          FROM (${queueInOrder(sql, { accountId, limit })}) AS ordered
          ORDER BY turn, drained_turn, project_id`.pipe(toStored("admissions.heads")),
      refuse: (accountId, waits, now) =>
        sql.withTransaction(refuse(accountId, waits, now)).pipe(toStored("admissions.refuse")),
      cancel: (fireId, now) => sql.withTransaction(cancel(fireId, now)).pipe(toStored("admissions.cancel")),
      waitingAccounts: sql<{ readonly id: string }>`SELECT id FROM accounts WHERE queued_fires > 0`.pipe(
        Effect.map((rows) => rows.map(({ id }) => id)),
        toStored("admissions.waitingAccounts"),
      ),
    };
  }),
);
