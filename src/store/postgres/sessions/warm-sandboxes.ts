/** Sandboxes that wait for a session: the rows of warm_sandboxes. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  ABANDONED_MS,
  WarmSandboxes,
  type NewWarmSandbox,
  type WarmSandbox,
} from "../../ports/sessions/warm-sandboxes.ts";
import { at, jsonb, toStored } from "../connection/statement.ts";

const COLUMNS = `
  id, project_id AS "projectId", node_id AS "nodeId", recipe, wanted_by AS "wantedBy", wanted_until AS "wantedUntil", created_at AS "createdAt"`;

const rowIds = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map(({ id }) => id);

const makeAdd = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (sandbox: NewWarmSandbox) {
    // W2: those who add to one project take turns.
    const projects = yield* sql`SELECT FROM projects WHERE id = ${sandbox.projectId} FOR NO KEY UPDATE`;
    if (projects.length === 0) return false;
    const rows = yield* sql`
      INSERT INTO warm_sandboxes (id, project_id, node_id, wanted_by, wanted_until, created_at)
      SELECT ${sandbox.id}::uuid, ${sandbox.projectId}::uuid, ${sandbox.nodeId}, ${sandbox.wantedBy},
        ${at(sandbox.wantedUntil)}::timestamptz, ${at(sandbox.createdAt)}::timestamptz
      WHERE ${sandbox.atMost} > (
        SELECT count(*) FROM warm_sandboxes
        WHERE project_id = ${sandbox.projectId} AND node_id = ${sandbox.nodeId} AND session_id IS NULL)
      RETURNING id`;
    return rows.length > 0;
  });
});

const makeClaim = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* ({
    projectId,
    sessionId,
    nodeId,
    isPersons,
    now,
  }: Parameters<WarmSandboxes["Service"]["claim"]>[0]) {
    const [one] = yield* sql<{ readonly id: string; readonly isTaken: boolean }>`
      WITH held AS (
        SELECT warm.id, session.state_context ->> 'sandboxId' IS NOT DISTINCT FROM warm.id::text AS is_taken
        FROM warm_sandboxes AS warm JOIN project_sessions AS session ON session.id = warm.session_id
        WHERE warm.session_id = ${sessionId}::uuid
      ), claimed AS (
        UPDATE warm_sandboxes SET session_id = ${sessionId}::uuid, claimed_at = ${at(now)}
        WHERE id = (
          SELECT id FROM warm_sandboxes
          WHERE project_id = ${projectId} AND node_id = ${nodeId} AND session_id IS NULL AND recipe IS NOT NULL
            AND (${isPersons} OR wanted_by <> 'person') AND NOT EXISTS (SELECT FROM held)
          ORDER BY created_at, id LIMIT 1
          FOR UPDATE SKIP LOCKED)
        RETURNING id
      )
      SELECT id, is_taken AS "isTaken" FROM held UNION ALL SELECT id, false FROM claimed`;
    return one === undefined || one.isTaken ? null : one.id;
  });
});

export const layer = Layer.effect(
  WarmSandboxes,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const add = yield* makeAdd;
    const claim = yield* makeClaim;
    return {
      add: (sandbox) => sql.withTransaction(add(sandbox)).pipe(toStored("warmSandboxes.add")),
      ready: (id, { recipe, secrets }) =>
        sql`
          UPDATE warm_sandboxes SET recipe = ${recipe}, secrets_revision = ${secrets.revision},
            secret_versions = ${jsonb(secrets.versions)}
          WHERE id = ${id} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("warmSandboxes.ready"),
        ),
      claim: (request) => claim(request).pipe(toStored("warmSandboxes.claim")),
      unclaimed: (nodeId) =>
        sql<WarmSandbox>`
          SELECT ${columns} FROM warm_sandboxes WHERE node_id = ${nodeId} AND session_id IS NULL
          ORDER BY created_at, id`.pipe(toStored("warmSandboxes.unclaimed")),
      countReady: (projectId) =>
        sql<{ readonly ready: number; readonly forTriggers: number }>`
          SELECT count(*)::integer AS ready,
            count(*) FILTER (WHERE wanted_by = 'trigger')::integer AS "forTriggers"
          FROM warm_sandboxes
          WHERE project_id = ${projectId} AND session_id IS NULL AND recipe IS NOT NULL`.pipe(
          Effect.map(([counted]) => counted ?? { ready: 0, forTriggers: 0 }),
          toStored("warmSandboxes.countReady"),
        ),
      keep: ({ projectId, nodeId, until }) =>
        sql`
          UPDATE warm_sandboxes
          SET wanted_until = CASE WHEN wanted_until IS NOT NULL THEN greatest(wanted_until, ${at(until)}::timestamptz) END
          WHERE id = (
            SELECT id FROM warm_sandboxes
            WHERE project_id = ${projectId} AND node_id = ${nodeId} AND session_id IS NULL
            ORDER BY wanted_until DESC NULLS FIRST, created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
          RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("warmSandboxes.keep"),
        ),
      remove: (id) =>
        sql`DELETE FROM warm_sandboxes WHERE id = ${id} AND session_id IS NULL RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("warmSandboxes.remove"),
        ),
      abandoned: (nodeId, now) =>
        sql<{ readonly id: string }>`
          DELETE FROM warm_sandboxes AS warm USING project_sessions AS session
          WHERE warm.node_id = ${nodeId} AND session.id = warm.session_id
            AND warm.claimed_at NOT BETWEEN ${at(now - ABANDONED_MS)} AND ${at(now + ABANDONED_MS)}
            AND NOT (session.status = 'provisioning'
              AND coalesce(session.state_context ->> 'sandboxId', warm.id::text) = warm.id::text)
          RETURNING warm.id`.pipe(Effect.map(rowIds), toStored("warmSandboxes.abandoned")),
    };
  }),
);
