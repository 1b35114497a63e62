/** Limits of spend and what was spent: the tables spend_limits, spend and spend_reservations. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import {
  type CountedCall,
  isNear,
  type LimitState,
  utcMonth,
  spentBy,
  type SpendCount,
  spendCounts,
  type SpendingCaller,
  type SpendingSession,
  type SpendSums,
  sumIn,
} from "../../../domain/sandbox/spend.ts";
import { utcDay } from "../../../domain/conversation/usage.ts";
import { at, toStored } from "../../../store/postgres/connection/statement.ts";
import { putNote } from "../../../store/postgres/conversations/rows.ts";
import { addModelUsage } from "../../../store/postgres/projects/model-usage.ts";
import {
  LAPSES_MAX,
  LIMITS_MAX,
  RESERVED_MS,
  type RunningSpender,
  type ShownLimit,
  Spend,
  type SpendLimit,
  type SpentFor,
} from "../ports/spend.ts";
import {
  accountDay,
  type CountSums,
  countKey,
  limitedCounts,
  limitStates,
  nearNote,
  NO_SPEND,
  refusingLimit,
} from "../rules/limits.ts";

type Service = (typeof Spend)["Service"];

const LIMIT = `id, scope, subject, project_id AS "projectId", unit, amount::float8 AS amount`;

/** The name of a row's subject. Its columns are `scope` and `subject`. */
const nameIn = (row: string): string => `
  CASE ${row}.scope
    WHEN 'project' THEN (SELECT name FROM projects WHERE id = (CASE ${row}.scope WHEN 'project' THEN ${row}.subject END)::uuid)
    WHEN 'person' THEN (SELECT name FROM users WHERE id = (CASE ${row}.scope WHEN 'person' THEN ${row}.subject END)::uuid)
    WHEN 'session' THEN (SELECT coalesce(name, '') FROM project_sessions
      WHERE id = (CASE ${row}.scope WHEN 'session' THEN nullif(${row}.subject, '') END)::uuid)
    WHEN 'trigger' THEN split_part(${row}.subject, '/', 2)
    ELSE '' END`;

interface ChainRow extends SpendingSession {
  readonly accountId: string;
  readonly isLimited: boolean;
}

interface SumRow extends SpendCount {
  readonly tokens: number;
  readonly cost: number;
  readonly reservedTokens: number;
  readonly reservedCost: number;
  readonly name: string | null;
}

interface Counting {
  readonly sessionId: string;
  readonly isOwn: boolean;
  readonly counted: CountedCall;
  readonly now: number;
}

const toColumns = (counts: readonly SpendCount[]) => ({
  scopes: counts.map(({ scope }) => scope),
  subjects: counts.map(({ subject }) => subject),
  periods: counts.map(({ period }) => period),
});

const makeChains = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  /** The session of a condition, and those whose agents started it, the nearest first. */
  const chainWhere = (condition: Fragment) => sql<ChainRow>`
    WITH RECURSIVE chain AS (
      SELECT id, project_id, account_id, trigger_slug, created_by, parent_session_id, 0 AS depth
      FROM project_sessions WHERE ${condition}
      UNION ALL
      SELECT above.id, above.project_id, above.account_id, above.trigger_slug, above.created_by, above.parent_session_id,
        chain.depth + 1
      FROM project_sessions AS above JOIN chain ON above.id = chain.parent_session_id WHERE chain.depth < 10)
    SELECT id, project_id AS "projectId", account_id AS "accountId", trigger_slug AS "triggerSlug", created_by AS "createdBy",
      EXISTS (SELECT FROM spend_limits WHERE account_id = chain.account_id) AS "isLimited"
    FROM chain ORDER BY depth`;
  const chain = (sessionId: string) => chainWhere(sql`id = ${sessionId}`);
  const callerIn = (sandboxId: string) =>
    Effect.map(
      chainWhere(sql`
        id = (SELECT session_id FROM session_sandboxes WHERE id = ${sandboxId} AND status IN ('provisioning', 'active'))`),
      ([session, ...above]): SpendingCaller | null =>
        session === undefined
          ? null
          : { accountId: session.accountId, sessions: [session, ...above], isLimited: session.isLimited },
    );
  return { chain, callerIn };
});

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { chain } = yield* makeChains;
  /** Those that may apply. @param locks until the transaction ends, so that calls of two nodes are decided one after the other */
  const limits = (accountId: string, counts: readonly SpendCount[], locks: boolean) => {
    const { scopes, subjects } = toColumns(counts);
    return sql<SpendLimit>`
      SELECT ${sql.literal(LIMIT)} FROM spend_limits
      WHERE account_id = ${accountId} AND (scope = 'each_session'
        OR (scope, subject) IN (SELECT * FROM unnest(${scopes}::text[], ${subjects}::text[])))
      ORDER BY id ${sql.literal(locks ? "FOR NO KEY UPDATE" : "")}`;
  };
  const sums = Effect.fnUntraced(function* (accountId: string, counts: readonly SpendCount[]) {
    const { scopes, subjects, periods } = toColumns(counts);
    const rows = yield* sql<SumRow>`
      SELECT wanted.scope, wanted.subject, wanted.period, coalesce(spend.tokens, 0)::float8 AS tokens,
        coalesce(spend.cost, 0)::float8 AS cost, coalesce(reserved.tokens, 0)::float8 AS "reservedTokens",
        coalesce(reserved.cost, 0)::float8 AS "reservedCost", ${sql.literal(nameIn("wanted"))} AS name
      FROM unnest(${scopes}::text[], ${subjects}::text[], ${periods}::text[]) AS wanted(scope, subject, period)
        LEFT JOIN spend ON spend.account_id = ${accountId} AND spend.period = wanted.period AND spend.scope = wanted.scope
          AND spend.subject = wanted.subject
        LEFT JOIN LATERAL (
          SELECT sum(tokens) AS tokens, sum(cost) AS cost FROM spend_reservations
          WHERE account_id = ${accountId} AND counts @> ARRAY[concat_ws('/', wanted.scope, wanted.subject, wanted.period)]) AS reserved ON true`;
    return new Map(
      rows.map((row): readonly [string, CountSums] => [
        countKey(row),
        {
          spent: { tokens: row.tokens, cost: row.cost },
          reserved: { tokens: row.reservedTokens, cost: row.reservedCost },
          name: row.name ?? "",
        },
      ]),
    );
  });
  const states = Effect.fnUntraced(function* (
    accountId: string,
    counts: readonly SpendCount[],
    locks: boolean,
  ) {
    const limitedSums = limitedCounts(counts, yield* limits(accountId, counts, locks));
    if (limitedSums.length === 0) return [];
    return limitStates(
      limitedSums,
      yield* sums(
        accountId,
        limitedSums.map(({ count }) => count),
      ),
    );
  });
  return { sql, chain, limits, states };
});

const makeCounts = Effect.gen(function* () {
  const { sql, chain, limits } = yield* makeReads;

  /** @returns the sums after it, in the order of their keys: two calls that settle at the same time wait for each other in it */
  const add = (accountId: string, counts: readonly SpendCount[], { tokens, cost }: SpendSums) => {
    const inOrder = counts.toSorted((one, other) => (countKey(one) < countKey(other) ? -1 : 1));
    const { scopes, subjects, periods } = toColumns(inOrder);
    return sql<SpendCount & SpendSums & { readonly name: string | null }>`
      INSERT INTO spend (account_id, scope, subject, period, tokens, cost)
      SELECT ${accountId}::uuid, scope, subject, period, ${tokens}::bigint, ${cost}::bigint
      FROM unnest(${scopes}::text[], ${subjects}::text[], ${periods}::text[]) AS counted(scope, subject, period)
      ON CONFLICT (account_id, period, scope, subject) DO UPDATE SET
        tokens = spend.tokens + excluded.tokens, cost = spend.cost + excluded.cost
      RETURNING scope, subject, period, tokens::float8 AS tokens, cost::float8 AS cost, ${sql.literal(nameIn("spend"))} AS name`;
  };

  /** Whether this is the first time that the sum is near the limit's amount (ports/spend.ts S3). */
  const mark = (accountId: string, { scope, subject, period }: SpendCount, amount: number) =>
    Effect.map(
      sql<{ readonly scope: string }>`
        UPDATE spend SET noted_amount = ${amount}
        WHERE account_id = ${accountId} AND period = ${period} AND scope = ${scope} AND subject = ${subject}
          AND noted_amount IS DISTINCT FROM ${amount}::bigint
        RETURNING scope`,
      (rows) => rows.length > 0,
    );

  /** Counts a call whose reservation this transaction has ended (ports/spend.ts S2). */
  const count = Effect.fnUntraced(function* ({ sessionId, isOwn, counted, now }: Counting) {
    const sessions = yield* chain(sessionId);
    const [session] = sessions;
    if (session === undefined) return;
    const { accountId } = session;
    yield* addModelUsage(sql, session, { ...counted, now });
    const counts = spendCounts(sessions, { now, isOwn });
    const after = yield* add(
      accountId,
      isOwn ? counts : [...counts, accountDay(utcDay(now))],
      spentBy(counted),
    );
    const limitedSums = limitedCounts(counts, yield* limits(accountId, counts, false));
    for (const { count: sumOf, limit } of limitedSums) {
      const sum = after.find((row) => countKey(row) === countKey(sumOf));
      if (sum === undefined || !isNear(sumIn(limit, sum), limit.amount)) continue;
      if (!(yield* mark(accountId, sumOf, limit.amount))) continue;
      const state: LimitState = {
        scope: sumOf.scope,
        unit: limit.unit,
        amount: limit.amount,
        name: sum.name ?? "",
        spent: sumIn(limit, sum),
        reserved: 0,
      };
      yield* putNote(sql, nearNote({ sessionId, count: sumOf, limit: state, now }));
    }
  });
  return count;
});

const makeCalls = Effect.gen(function* () {
  const { sql, states } = yield* makeReads;
  const count = yield* makeCounts;

  const reserve = Effect.fnUntraced(function* (call: Parameters<Service["reserve"]>[0]) {
    const { id, caller, model, isOwn, tokens, cost, now } = call;
    const { accountId, sessions, isLimited } = caller;
    const counts = spendCounts(sessions, { now, isOwn });
    const refusal = isLimited ? refusingLimit(yield* states(accountId, counts, true), cost) : null;
    if (refusal !== null) return refusal;
    yield* sql`
      INSERT INTO spend_reservations (id, account_id, session_id, model, is_own, counts, tokens, cost, expires_at)
      VALUES (${id}, ${accountId}, ${sessions[0].id}, ${model}, ${isOwn}, ${counts.map(countKey)}, ${tokens}, ${cost ?? 0},
        ${at(now + RESERVED_MS)})`;
    return null;
  });

  const settle = Effect.fnUntraced(function* ({ id, counted, now }: Parameters<Service["settle"]>[0]) {
    const [row] = yield* sql<Pick<Counting, "sessionId" | "isOwn">>`
      DELETE FROM spend_reservations WHERE id = ${id} RETURNING session_id AS "sessionId", is_own AS "isOwn"`;
    if (row !== undefined && counted !== null) yield* count({ ...row, counted, now });
  });

  const lapse = Effect.fnUntraced(function* (now: number) {
    const rows = yield* sql<Pick<Counting, "sessionId" | "isOwn"> & SpendSums & { readonly model: string }>`
      DELETE FROM spend_reservations WHERE id IN (
        SELECT id FROM spend_reservations WHERE expires_at <= ${at(now)}
        ORDER BY expires_at, id LIMIT ${LAPSES_MAX} FOR UPDATE SKIP LOCKED)
      RETURNING session_id AS "sessionId", is_own AS "isOwn", model, tokens::float8 AS tokens, cost::float8 AS cost`;
    for (const { sessionId, isOwn, model, tokens, cost } of rows)
      yield* count({ sessionId, isOwn, counted: { model, tokens: null, estimated: tokens, cost }, now });
    return rows.length;
  });
  return { reserve, settle, lapse };
});

const makeRunning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { chain } = yield* makeChains;
  return Effect.fnUntraced(function* (accountId: string) {
    const rows = yield* sql<Omit<RunningSpender, "above">>`
      SELECT session.id, session.account_id AS "accountId", session.project_id AS "projectId", session.name, session.origin,
        session.trigger_slug AS "triggerSlug", session.created_by AS "createdBy", session.agent_name AS "agentName",
        session.agent_model AS "agentModel", session.base_commit AS "baseCommit",
        session.parent_session_id AS "parentSessionId",
        ARRAY(SELECT jsonb_object_keys(coalesce(sandbox.secret_versions, '{}')) ORDER BY 1) AS "secretNames"
      FROM project_sessions AS session JOIN session_sandboxes AS sandbox ON sandbox.session_id = session.id
      WHERE session.account_id = ${accountId} AND session.status IN ('provisioning', 'running')
        AND sandbox.status IN ('provisioning', 'active')
      ORDER BY session.created_at, session.id`;
    return yield* Effect.forEach(rows, (row) =>
      Effect.map(
        row.parentSessionId === null ? Effect.succeed([]) : chain(row.parentSessionId),
        (above): RunningSpender => ({ ...row, above }),
      ),
    );
  });
});

const makeLimits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const set = Effect.fnUntraced(function* (wish: Parameters<Service["set"]>[0]) {
    const { id, accountId, scope, subject, projectId, unit, amount, now } = wish;
    // Two requests for one account wait for each other, and the second one counts the first one's row.
    yield* sql`SELECT id FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    const [held] = yield* sql<{ readonly count: number }>`
      SELECT count(*)::integer AS count FROM spend_limits
      WHERE account_id = ${accountId} AND (scope, subject) <> (${scope}, ${subject})`;
    if ((held?.count ?? 0) >= LIMITS_MAX) return null;
    const [row = null] = yield* sql<SpendLimit>`
      INSERT INTO spend_limits (id, account_id, project_id, scope, subject, unit, amount, created_at, updated_at)
      VALUES (${id}, ${accountId}, ${projectId}, ${scope}, ${subject}, ${unit}, ${amount}, ${at(now)}, ${at(now)})
      ON CONFLICT (account_id, scope, subject) DO UPDATE SET
        unit = excluded.unit, amount = excluded.amount, updated_at = excluded.updated_at
      RETURNING ${sql.literal(LIMIT)}`;
    return row;
  });
  const list = (accountId: string, now: number) =>
    Effect.map(
      sql<SpendLimit & { readonly name: string | null; readonly tokens: number; readonly cost: number }>`
        SELECT limits.id, limits.scope, limits.subject, limits.project_id AS "projectId", limits.unit,
          limits.amount::float8 AS amount, ${sql.literal(nameIn("limits"))} COLLATE "C" AS name,
          coalesce(spend.tokens, 0)::float8 AS tokens, coalesce(spend.cost, 0)::float8 AS cost
        FROM spend_limits AS limits
          LEFT JOIN spend ON spend.account_id = limits.account_id AND spend.scope = limits.scope
            AND spend.subject = limits.subject AND spend.period = CASE limits.scope
              WHEN 'session' THEN '' WHEN 'trigger' THEN ${utcDay(now)} ELSE ${utcMonth(now)} END
        WHERE limits.account_id = ${accountId} AND NOT (limits.scope = 'session' AND EXISTS (
          SELECT FROM project_sessions WHERE deleted_at IS NOT NULL
            AND id = (CASE limits.scope WHEN 'session' THEN limits.subject END)::uuid))
        ORDER BY array_position(ARRAY['account', 'project', 'person', 'each_session', 'trigger', 'session'], limits.scope),
          7, limits.id`,
      (rows) =>
        rows.map(({ name, tokens, cost, ...limit }): ShownLimit => ({
          ...limit,
          name: name ?? "",
          spent: limit.scope === "each_session" ? null : { tokens, cost },
        })),
    );
  return { set, list };
});

export const layer = Layer.effect(
  Spend,
  Effect.gen(function* () {
    const { callerIn } = yield* makeChains;
    const { sql, chain, states } = yield* makeReads;
    const { reserve, settle, lapse } = yield* makeCalls;
    const { set, list } = yield* makeLimits;
    const running = yield* makeRunning;
    return {
      set: (wish) => sql.withTransaction(set(wish)).pipe(toStored("spend.set")),
      remove: ({ accountId, scope, subject }) =>
        sql`
          DELETE FROM spend_limits WHERE account_id = ${accountId} AND scope = ${scope} AND subject = ${subject}
          RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("spend.remove"),
        ),
      list: (accountId, now) => list(accountId, now).pipe(toStored("spend.list")),
      hasLimits: (accountId) =>
        sql`SELECT id FROM spend_limits WHERE account_id = ${accountId} LIMIT 1`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("spend.hasLimits"),
        ),
      callerIn: (sandboxId) => callerIn(sandboxId).pipe(toStored("spend.callerIn")),
      hasPerson: (accountId, userId) =>
        sql`SELECT id FROM users WHERE account_id = ${accountId} AND id = ${userId}`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("spend.hasPerson"),
        ),
      ofSession: ({ accountId, parentSessionId, ...session }, now) =>
        Effect.gen(function* () {
          const above = parentSessionId === null ? [] : yield* chain(parentSessionId);
          const counts = spendCounts([session, ...above], { now, isOwn: false });
          return yield* states(accountId, counts, false);
        }).pipe(toStored("spend.ofSession")),
      running: (accountId) => running(accountId).pipe(toStored("spend.running")),
      spentBySession: (sessionId) =>
        sql<SpendSums>`
          SELECT spend.tokens::float8 AS tokens, spend.cost::float8 AS cost
          FROM project_sessions AS session JOIN spend ON spend.account_id = session.account_id
          WHERE session.id = ${sessionId} AND spend.period = '' AND spend.scope = 'session'
            AND spend.subject = session.id::text`.pipe(
          Effect.map(([row = NO_SPEND]) => row),
          toStored("spend.spentBySession"),
        ),
      month: (accountId, month) =>
        sql<SpentFor>`
          SELECT scope, subject, period, tokens::float8 AS tokens, cost::float8 AS cost,
            coalesce(${sql.literal(nameIn("spend"))}, '') AS name
          FROM spend
          WHERE account_id = ${accountId} AND left(period, 7) = ${month}
            AND scope IN ('account', 'person', 'project')
          ORDER BY cost DESC, tokens DESC, period DESC, subject`.pipe(toStored("spend.month")),
      // Without limits it is one insert, which needs no transaction.
      reserve: (call) =>
        (call.caller.isLimited ? sql.withTransaction(reserve(call)) : reserve(call)).pipe(
          toStored("spend.reserve"),
        ),
      settle: (call) => sql.withTransaction(settle(call)).pipe(toStored("spend.settle")),
      renew: (ids, now) =>
        sql`
          UPDATE spend_reservations SET expires_at = ${at(now + RESERVED_MS)} WHERE id = ANY (${[...ids]}::uuid[])`.pipe(
          Effect.asVoid,
          toStored("spend.renew"),
        ),
      lapse: (now) => sql.withTransaction(lapse(now)).pipe(toStored("spend.lapse")),
    };
  }),
);
