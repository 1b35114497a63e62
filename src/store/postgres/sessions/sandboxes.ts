/** Sandboxes: the records of session_sandboxes, and the memory of their actors. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../../../machines/sandbox.ts";
import { bootStartedEvent, environmentNotedEvent, sandboxStatusEvent } from "../../event-rows.ts";
import { StoreError } from "../../ports/journal.ts";
import {
  Sandboxes,
  type NotedEnvironment,
  type OutdatedSandbox,
  type Sandbox,
} from "../../ports/sessions/sandboxes.ts";
import { sandboxColumns, type SandboxColumns } from "../../session-columns.ts";
import { firstTransition } from "../../../machines/transition.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { violatedConstraint } from "../connection/errors.ts";
import { Endings } from "../connection/endings.ts";
import { EventLog } from "../events/event-log.ts";
import { outboxParts } from "../outbox.ts";
import { keeping } from "../events/transition-rows.ts";
import { at, jsonb, toStored } from "../connection/statement.ts";

const COLUMNS = `
  id, session_id AS "sessionId", provider, node_id AS "nodeId", image,
  CASE WHEN environment_build_id IS NOT NULL THEN
    jsonb_build_object('buildId', environment_build_id, 'isStale', environment_is_stale) END AS environment,
  warm_recipe AS "warmRecipe", status, failure,
  boot_deadline_at AS "bootDeadlineAt", boot_started_at AS "bootStartedAt", created_at AS "createdAt", active_at AS "activeAt", ended_at AS "endedAt"`;

const assignments = ({ failure, activeAt, endedAt }: SandboxColumns) => ({
  ...(failure !== undefined && { failure: jsonb(failure) }),
  ...(activeAt !== undefined && { active_at: at(activeAt) }),
  ...(endedAt !== undefined && { ended_at: at(endedAt) }),
});

const first = ([row]: readonly Sandbox[]): Sandbox | null => row ?? null;

interface SavedRow {
  readonly sessionId: string;
  readonly projectId: string;
}

const makeMemory = Effect.gen(function* () {
  const events = yield* EventLog;
  const endings = yield* Endings;
  return yield* makeActorMemory<SandboxSnapshot, SandboxEvent, SandboxCommand, SavedRow>({
    kind: "sandbox",
    name: "sandboxes",
    table: "session_sandboxes",
    key: "id",
    state: "status",
    returning: `session_id AS "sessionId",
      (SELECT project_id FROM project_sessions WHERE id = session_sandboxes.session_id) AS "projectId"`,
    isOneStatement: () => true,
    writes: (change) => {
      const { id, before, after, now } = change;
      const columns = sandboxColumns(change);
      const isMoved = before.state !== after.state;
      const stateChange = { ...columns, sandboxId: id, previous: before.state };
      return Effect.succeed({
        columns: assignments(columns),
        event: isMoved ? sandboxStatusEvent({ at: now }, stateChange) : null,
        finish: ({ sessionId, projectId }) =>
          Effect.gen(function* () {
            if (isMoved && columns.endedAt !== undefined) yield* endings.say([sessionId]);
            if (isMoved) yield* events.wake(projectId);
          }),
      });
    },
  });
});

type OpenRequest = Parameters<(typeof Sandboxes)["Service"]["open"]>[0];

const makeOpen = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;

  /** Both tokens act for the session's user. The session decides their origin (api.md 1). */
  const tokenRows = (request: OpenRequest) => sql`
    INSERT INTO tokens (id, account_id, user_id, project_id, session_id, sandbox_id, kind, origin, name, hash, created_at)
    SELECT token.id, session.account_id, session.created_by, session.project_id, session.id, ${request.id}::uuid,
      token.kind, session.origin, 'session ' || session.id, token.hash, ${at(request.now)}::timestamptz
    FROM opened JOIN project_sessions AS session ON session.id = opened.session_id, (VALUES
      (${request.id}::uuid, 'sandbox', ${request.serviceKeyHash}),
      (${request.cliToken.id}::uuid, 'access', ${request.cliToken.hash})
    ) AS token (id, kind, hash)`;

  return Effect.fnUntraced(function* (request: OpenRequest) {
    const { id, sessionId, snapshot, now } = request;
    const actor = { kind: "sandbox", id } as const;
    const history = { ...actor, version: 1, given: "opened" } as const;
    const outbox = outboxParts(sql, actor, { ...request, completes: null, given: "opened" });
    const state = { sandboxId: id, status: snapshot.state, previous: null };
    const [placed] = yield* sql<{ readonly projectId: string }>`
      WITH warm AS (
        DELETE FROM warm_sandboxes WHERE id = ${id}::uuid AND session_id = ${sessionId}::uuid
        RETURNING node_id, recipe, secrets_revision, secret_versions
      ), opened AS (
        INSERT INTO session_sandboxes
          (id, session_id, provider, node_id, status, state_context, boot_deadline_at, created_at, warm_recipe,
            secrets_revision, secret_versions)
        SELECT ${id}::uuid, id, ${request.provider}, coalesce(warm.node_id, ${request.nodeId}),
          ${snapshot.state}::session_sandbox_status, ${jsonb(snapshot.context)}::jsonb,
          ${at(request.bootDeadlineAt)}::timestamptz, ${at(now)}::timestamptz,
          warm.recipe, warm.secrets_revision, warm.secret_versions
        FROM project_sessions LEFT JOIN warm ON true
        WHERE id = ${sessionId}::uuid AND status = 'provisioning' AND state_context ->> 'sandboxId' = ${id}::text
        FOR SHARE OF project_sessions
        ON CONFLICT (id) DO NOTHING RETURNING session_id
      )${keeping(sql, firstTransition(request, { now }), history)}${outbox.parts}, placed AS (
        SELECT session.id AS session_id, session.project_id
        FROM opened JOIN project_sessions AS session ON session.id = opened.session_id
      ), keys AS (${tokenRows(request)}
      ), news AS (${events.insertionIn(sandboxStatusEvent({ at: now }, state), sql.literal("placed"))})
      SELECT project_id AS "projectId" FROM placed`;
    if (placed !== undefined) yield* events.wake(placed.projectId);
  });
});

const makeBeginBoot = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (
    id: string,
    { now, deadlineAt }: { readonly now: number; readonly deadlineAt: number },
  ) {
    const [begun] = yield* sql<{ readonly projectId: string }>`
      WITH begun AS (
        UPDATE session_sandboxes AS sandbox SET boot_started_at = ${at(now)}, boot_deadline_at = ${at(deadlineAt)}
        FROM project_sessions AS session
        WHERE sandbox.id = ${id} AND sandbox.status = 'provisioning' AND session.id = sandbox.session_id
        RETURNING session.id AS session_id, session.project_id
      ), news AS (${events.insertionIn(bootStartedEvent({ at: now }, id), sql.literal("begun"))})
      SELECT project_id AS "projectId" FROM begun`;
    if (begun === undefined) return false;
    yield* events.wake(begun.projectId);
    return true;
  });
});

const makeNoteEnvironment = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (id: string, { buildId, isStale, now }: NotedEnvironment) {
    const event = environmentNotedEvent({ at: now }, { id, buildId, isStale });
    const [noted] = yield* sql<{ readonly projectId: string }>`
      WITH noted AS (
        UPDATE session_sandboxes AS sandbox SET environment_build_id = ${buildId}, environment_is_stale = ${isStale}
        FROM project_sessions AS session
        WHERE sandbox.id = ${id} AND session.id = sandbox.session_id
          AND (environment_build_id, environment_is_stale) IS DISTINCT FROM (${buildId}::uuid, ${isStale}::boolean)
        RETURNING session.id AS session_id, session.project_id
      ), news AS (${events.insertionIn(event, sql.literal("noted"))})
      SELECT project_id AS "projectId" FROM noted`;
    if (noted !== undefined) yield* events.wake(noted.projectId);
  });
});

export const layer = Layer.effect(
  Sandboxes,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(COLUMNS);
    const open = yield* makeOpen;
    const beginBoot = yield* makeBeginBoot;
    const noteEnvironment = yield* makeNoteEnvironment;
    return {
      ...(yield* makeMemory),
      open: (request) =>
        open(request).pipe(
          // The session's former sandbox is still live. It is about to end, so a retry will succeed.
          Effect.mapError((error) =>
            isSqlError(error) && violatedConstraint(error) === "session_sandboxes_live_key"
              ? new StoreError({ operation: "sandboxes.open", cause: error })
              : error,
          ),
          toStored("sandboxes.open"),
        ),
      get: (id) =>
        sql<Sandbox>`SELECT ${columns} FROM session_sandboxes WHERE id = ${id}`.pipe(
          Effect.map(first),
          toStored("sandboxes.get"),
        ),
      newest: (sessionId) =>
        sql<Sandbox>`
          SELECT ${columns} FROM session_sandboxes WHERE session_id = ${sessionId}
          ORDER BY created_at DESC, id DESC LIMIT 1`.pipe(Effect.map(first), toStored("sandboxes.newestOf")),
      beginBoot: (id, boot) => beginBoot(id, boot).pipe(toStored("sandboxes.beginBoot")),
      forgetWarmth: (id) =>
        sql`UPDATE session_sandboxes SET warm_recipe = NULL WHERE id = ${id}`.pipe(
          Effect.asVoid,
          toStored("sandboxes.forgetWarmth"),
        ),
      noteImage: (id, image) =>
        sql`UPDATE session_sandboxes SET image = ${image} WHERE id = ${id}`.pipe(
          Effect.asVoid,
          toStored("sandboxes.noteImage"),
        ),
      noteEnvironment: (id, environment) =>
        noteEnvironment(id, environment).pipe(toStored("sandboxes.noteEnvironment")),
      noteSecrets: (id, former, { revision, versions }) =>
        sql`
          UPDATE session_sandboxes SET secrets_revision = ${revision}, secret_versions = ${jsonb(versions)}
          WHERE id = ${id} AND secrets_revision IS NOT DISTINCT FROM ${former}::integer RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("sandboxes.noteSecrets"),
        ),
      outdated: (nodeId) =>
        sql<OutdatedSandbox>`
          SELECT sandbox.id, jsonb_build_object('id', session.id, 'accountId', session.account_id,
              'projectId', project.id, 'triggerSlug', session.trigger_slug, 'createdBy', session.created_by,
              'parentSessionId', session.parent_session_id, 'agentName', session.agent_name) AS session,
            jsonb_build_object('revision', sandbox.secrets_revision, 'versions', sandbox.secret_versions) AS given
          FROM session_sandboxes AS sandbox
          JOIN project_sessions AS session ON session.id = sandbox.session_id
          JOIN projects AS project ON project.id = session.project_id
          WHERE sandbox.status = 'active' AND sandbox.node_id = ${nodeId}
            AND sandbox.secrets_revision <> project.secrets_revision`.pipe(toStored("sandboxes.outdated")),
      unheld: (ids) =>
        sql<{ readonly id: string }>`
          SELECT id FROM unnest(${ids}::uuid[]) AS listed (id)
          WHERE NOT EXISTS (
            SELECT FROM session_sandboxes AS sandbox
            WHERE sandbox.id = listed.id AND sandbox.status IN ('provisioning', 'active')
          ) AND NOT EXISTS (SELECT FROM outbox WHERE actor_kind = 'sandbox' AND actor_id = listed.id)
            AND NOT EXISTS (SELECT FROM warm_sandboxes AS warm WHERE warm.id = listed.id)`.pipe(
          Effect.map((rows) => rows.map(({ id }) => id)),
          toStored("sandboxes.unheld"),
        ),
    };
  }),
);
