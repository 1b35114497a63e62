/** Projects, the last readings of their manifests, and when their triggers last fired. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError } from "effect/sql/SqlError";
import { cutNewest, readCursor } from "../../cursor.ts";
import { manifestStaleEvent } from "../../event-rows.ts";
import type { BuildSource } from "../../../domain/environment/environment-source.ts";
import { projectNameKey } from "../../../domain/project/name.ts";
import { NEW_PROJECT_ROLES } from "../../../domain/person/role.ts";
import {
  Projects,
  type Project,
  type ProjectState,
  type ProjectUpdate,
  type TriggerCursor,
  type TriggerKey,
} from "../../ports/projects/projects.ts";
import type { OwnedSecret, VerifyingSecret } from "../../ports/projects/secrets.ts";
import { Taken } from "../../ports/errors.ts";
import { Endings } from "../connection/endings.ts";
import { violatedConstraint } from "../connection/errors.ts";
import { EventLog } from "../events/event-log.ts";
import { cancelWaits } from "../triggers/fire-moves.ts";
import { ProjectChanges } from "./project-changes.ts";
import { hasRoleIn } from "../people/roles.ts";
import { lockAccount } from "../triggers/slots.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { afterPosition, at, jsonb, pageLimit, toStored } from "../connection/statement.ts";

type Row = Omit<Project, "manifest" | "version"> & {
  readonly version: string;
  readonly readCommit: string | null;
  readonly syncedAt: number | null;
  readonly error: string | null;
};

const COLUMNS = `
  project.id, account_id AS "accountId", name, status, deletes_at AS "deletesAt", repository, default_branch AS "defaultBranch",
    triggers_paused AS "triggersPaused", default_role AS "defaultRole", merge_role AS "mergeRole", approvals_required AS "approvalsRequired", created_by AS "createdBy", created_at AS "createdAt", updated_at AS "updatedAt",
    version, read_commit AS "readCommit", synced_at AS "syncedAt", error`;
const FROM = `
  FROM projects AS project LEFT JOIN project_manifests AS manifest ON manifest.project_id = project.id`;
const SELECT = `SELECT ${COLUMNS} ${FROM}`;
/** With the account's tier and the manifest. */
const SELECT_STATE = `
  SELECT ${COLUMNS}, (SELECT tier FROM accounts WHERE id = project.account_id) AS tier,
    commit_sha AS commit, text, agents, brings_model AS "bringsModel", environment,
    error AS message, error_path AS path, error_line AS line ${FROM}`;

const toProject = ({ readCommit, syncedAt, error, ...row }: Row): Project => ({
  ...row,
  version: Number(row.version),
  manifest: { commit: readCommit, syncedAt, error },
});

/** The project as it is now. Null if it does not exist. */
export const readProject = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(sql<Row>`${sql.literal(SELECT)} WHERE project.id = ${id}`, ([row]) =>
    row === undefined ? null : toProject(row),
  );

/** A unique name that is taken, as an expected refusal. */
const orTaken =
  (name: string) =>
  <E>(error: E): E | Taken =>
    isSqlError(error) && violatedConstraint(error) === "projects_name_key"
      ? new Taken({ what: name })
      : error;

const makeUpdate = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const changes = yield* ProjectChanges;
  const { say } = yield* Endings;
  const events = yield* EventLog;

  return Effect.fnUntraced(function* (id: string, change: ProjectUpdate, now: number) {
    const [project] = yield* sql<{ readonly accountId: string }>`
      SELECT account_id AS "accountId" FROM projects WHERE id = ${id}`;
    if (project === undefined) return;
    // An admission that is under way finishes first. The next one sees the new status.
    if (change.status !== undefined) yield* lockAccount(sql, project.accountId);
    yield* sql`
      UPDATE projects SET updated_at = ${at(now)},
        name = coalesce(${change.name ?? null}, name),
        name_key = coalesce(${change.name === undefined ? null : projectNameKey(change.name)}, name_key),
        status = CASE WHEN status = 'deleted' THEN status ELSE coalesce(${change.status ?? null}, status) END,
        triggers_paused = coalesce(${change.triggersPaused ?? null}::boolean, triggers_paused),
        default_branch = coalesce(${change.defaultBranch ?? null}, default_branch),
        merge_role = coalesce(${change.mergeRole ?? null}, merge_role),
        approvals_required = coalesce(${change.approvalsRequired ?? null}::integer, approvals_required),
        default_role = CASE WHEN ${change.defaultRole === undefined} THEN default_role ELSE ${change.defaultRole ?? null} END
      WHERE id = ${id}`;
    yield* changes.mark(id);
    // People may hold connections that their new role does not allow.
    if (change.defaultRole !== undefined) yield* say([id]);
    // It starts nothing more (api.md 4 "Queue").
    const cancel = { accountId: project.accountId, reason: "project_archived", now };
    if (change.status === "archived") yield* cancelWaits({ sql, events }, sql`project_id = ${id}`, cancel);
  });
});

interface ManifestRow {
  readonly commit: string | null;
  readonly text: string | null;
  /** Null, as everything else: no reading is recorded. */
  readonly agents: readonly string[] | null;
  readonly bringsModel: boolean | null;
  readonly environment: BuildSource | null;
  readonly message: string | null;
  readonly path: string | null;
  readonly line: number | null;
}

interface VerifyingRow extends OwnedSecret {
  readonly previousVersion: number | null;
  readonly previousEnvelope: Uint8Array | null;
  readonly previousUntil: number | null;
}

const toVerifyingSecret = (row: VerifyingRow): VerifyingSecret => {
  const { previousVersion: version, previousEnvelope: envelope, previousUntil: until, ...secret } = row;
  const isWhole = version !== null && envelope !== null && until !== null;
  return { ...secret, previous: isWhole ? { version, envelope, until } : null };
};

const toManifests = ({
  commit,
  text,
  agents,
  bringsModel,
  environment,
  message,
  path,
  line,
}: ManifestRow): Pick<ProjectState, "manifest" | "manifestFailure"> => ({
  manifest:
    commit === null || text === null
      ? null
      : { commit, text, agents: agents ?? [], bringsModel, environment },
  manifestFailure: message === null ? null : { message, path, line },
});

const makeManifests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const changes = yield* ProjectChanges;
  const events = yield* EventLog;

  const recordManifest: (typeof Projects)["Service"]["recordManifest"] = (
    id,
    { commit, good, failure, now },
  ) =>
    Effect.gen(function* () {
      const goodCommit = good?.commit ?? null;
      const agents = good === null ? [] : [...good.agents];
      const environment = good === null || good.environment === null ? null : jsonb(good.environment);
      // Locks the project's row first, so that two readings wait for each other.
      yield* sql`SELECT id FROM projects WHERE id = ${id} FOR NO KEY UPDATE`;
      // If a reading does not parse, the last good one stays.
      const news = yield* sql<{ readonly hadNoError: boolean }>`
        WITH former AS (SELECT read_commit, error, commit_sha FROM project_manifests WHERE project_id = ${id}),
        written AS (
          INSERT INTO project_manifests AS manifest
            (project_id, read_commit, synced_at, error, error_path, error_line, commit_sha, text, agents, brings_model, environment)
          VALUES (${id}, ${commit}, ${at(now)}, ${failure?.message ?? null}, ${failure?.path ?? null},
            ${failure?.line ?? null}, ${goodCommit}, ${good?.text ?? null}, ${agents}, ${good?.bringsModel ?? null},
            ${environment}::jsonb)
          ON CONFLICT (project_id) DO UPDATE SET
            read_commit = excluded.read_commit, synced_at = excluded.synced_at, error = excluded.error,
            error_path = excluded.error_path, error_line = excluded.error_line,
            commit_sha = coalesce(excluded.commit_sha, manifest.commit_sha),
            text = coalesce(excluded.text, manifest.text),
            agents = CASE WHEN excluded.commit_sha IS NULL THEN manifest.agents ELSE excluded.agents END,
            brings_model = CASE WHEN excluded.commit_sha IS NULL THEN manifest.brings_model ELSE excluded.brings_model END,
            environment = CASE WHEN excluded.commit_sha IS NULL THEN manifest.environment ELSE excluded.environment END
          RETURNING read_commit, error, commit_sha
        )
        SELECT NOT EXISTS (SELECT FROM former WHERE error IS NOT NULL) AS "hadNoError" FROM written
        WHERE (read_commit, error, commit_sha) IS DISTINCT FROM (SELECT ROW(read_commit, error, commit_sha) FROM former)`;
      if (news.length > 0) yield* changes.mark(id);
      if (failure !== null && news[0]?.hadNoError === true)
        yield* events.append([manifestStaleEvent(id, commit, now)]);
    }).pipe(sql.withTransaction, toStored("projects.recordManifest"));

  const states: (typeof Projects)["Service"]["states"] = (ids) =>
    Effect.gen(function* () {
      // Projects are read first: what is read after them may be newer than their version, never older.
      const rows = yield* sql<Row & ManifestRow & Pick<ProjectState, "tier">>`
        ${sql.literal(SELECT_STATE)} WHERE project.id = ANY(${[...ids]}::uuid[])`;
      const secrets = yield* sql<VerifyingRow>`
        SELECT project_id AS "projectId", name, version, envelope, service, previous_version AS "previousVersion",
          previous_envelope AS "previousEnvelope", previous_until AS "previousUntil"
        FROM project_secrets WHERE project_id = ANY(${[...ids]}::uuid[]) AND envelope IS NOT NULL`;
      const secretsByProject = Map.groupBy(secrets, ({ projectId }) => projectId);
      return rows.map(
        ({ tier, commit, text, agents, bringsModel, environment, message, path, line, ...row }) =>
          Object.assign(
            {
              project: toProject(row),
              tier,
              secrets: (secretsByProject.get(row.id) ?? []).map(toVerifyingSecret),
            },
            toManifests({ commit, text, agents, bringsModel, environment, message, path, line }),
          ),
      );
    }).pipe(onSharedConnection, toStored("projects.states"));
  return { recordManifest, states };
});

const makeCursors = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  type Request = Parameters<(typeof Projects)["Service"]["keepCursors"]>[0];
  return Effect.fnUntraced(function* ({ projectId, projectVersion, schedules, now }: Request) {
    const [project] = yield* sql<{ readonly version: string }>`
      SELECT version FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`;
    if (Number(project?.version ?? -1) !== projectVersion) return null;
    const scheduleRows = jsonb([...schedules].map(([slug, schedule]) => ({ slug, schedule })));
    yield* sql`
      DELETE FROM trigger_cursors AS cursor WHERE project_id = ${projectId} AND NOT EXISTS (
        SELECT FROM jsonb_to_recordset(${scheduleRows}::jsonb) AS w(slug text) WHERE w.slug = cursor.slug
      )`;
    yield* sql`
      INSERT INTO trigger_cursors AS cursor (project_id, slug, schedule, accounted_until)
      SELECT ${projectId}, w.slug, w.schedule, ${at(now)}
      FROM jsonb_to_recordset(${scheduleRows}::jsonb) AS w(slug text, schedule text)
      ON CONFLICT (project_id, slug) DO UPDATE
      SET schedule = excluded.schedule, accounted_until = excluded.accounted_until
      WHERE cursor.schedule <> excluded.schedule`;
    return yield* sql<TriggerCursor>`
      SELECT slug, schedule, accounted_until AS "accountedUntil" FROM trigger_cursors
      WHERE project_id = ${projectId}`;
  });
});

const makeCredentials = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  /** Replaces the stored credential. Null removes it. */
  const keepCredential = (id: string, envelope: Uint8Array | null) =>
    Effect.asVoid(
      envelope === null
        ? sql`DELETE FROM project_credentials WHERE project_id = ${id}`
        : sql`
            INSERT INTO project_credentials (project_id, envelope) VALUES (${id}, ${Buffer.from(envelope)})
            ON CONFLICT (project_id) DO UPDATE SET envelope = excluded.envelope`,
    );
  const credential: (typeof Projects)["Service"]["credential"] = (id) =>
    sql<{ readonly envelope: Uint8Array }>`
      SELECT envelope FROM project_credentials WHERE project_id = ${id}`.pipe(
      Effect.map(([row]) => row?.envelope ?? null),
      toStored("projects.credential"),
    );
  return { keepCredential, credential };
});

const makeLooks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const unheld: (typeof Projects)["Service"]["unheld"] = (ids) =>
    sql<{ readonly id: string }>`
      SELECT id FROM unnest(${ids}::uuid[]) AS listed (id)
      WHERE NOT EXISTS (SELECT FROM projects AS project WHERE project.id = listed.id)`.pipe(
      Effect.map((rows) => rows.map(({ id }) => id)),
      toStored("projects.unheld"),
    );
  const lastFired: (typeof Projects)["Service"]["lastFired"] = (id) =>
    sql<{ readonly slug: string; readonly lastFiredAt: number }>`
      SELECT slug, last_fired_at AS "lastFiredAt" FROM project_trigger_runtime
      WHERE project_id = ${id}`.pipe(
      Effect.map((rows) => new Map(rows.map(({ slug, lastFiredAt }) => [slug, lastFiredAt]))),
      toStored("projects.lastFired"),
    );
  const cursors: (typeof Projects)["Service"]["cursors"] = (of) =>
    sql<TriggerCursor & TriggerKey>`
      SELECT project_id AS "projectId", slug, schedule, accounted_until AS "accountedUntil"
      FROM unnest(${of.map(({ projectId }) => projectId)}::uuid[], ${of.map(({ slug }) => slug)}::text[])
        AS wanted (project_id, slug)
      JOIN trigger_cursors USING (project_id, slug)`.pipe(toStored("projects.cursors"));
  return { unheld, lastFired, cursors };
});

export const layer = Layer.effect(
  Projects,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const select = sql.literal(SELECT);
    const update = yield* makeUpdate;
    const keepCursors = yield* makeCursors;
    const changes = yield* ProjectChanges;
    const { changed, changedSince } = changes;
    const one = (id: string) => readProject(sql, id);
    const { credential, keepCredential } = yield* makeCredentials;
    // Locks the project's row first, as for its secrets, so that two writes wait for each other.
    const replaceCredential = (id: string, envelope: Uint8Array | null, now: number) =>
      Effect.andThen(update(id, {}, now), one(id)).pipe(
        Effect.tap((project) => (project === null ? Effect.void : keepCredential(id, envelope))),
      );
    return {
      ...(yield* makeManifests),
      ...(yield* makeLooks),
      create: (project) =>
        sql`
          INSERT INTO projects (id, account_id, name, name_key, repository, default_branch, node_id, created_by,
            default_role, merge_role, created_at, updated_at)
          VALUES (${project.id}, ${project.accountId}, ${project.name}, ${projectNameKey(project.name)}, ${jsonb(project.repository)},
            ${project.defaultBranch}, ${project.nodeId ?? null}, ${project.createdBy},
            ${NEW_PROJECT_ROLES.defaultRole}, ${NEW_PROJECT_ROLES.mergeRole}, ${at(project.now)}, ${at(project.now)})`.pipe(
          Effect.andThen(
            project.isGranted === true
              ? Effect.asVoid(sql`
                  INSERT INTO project_members (project_id, user_id, role, granted_at)
                  VALUES (${project.id}, ${project.createdBy}, 'owner', ${at(project.now)})`)
              : Effect.void,
          ),
          Effect.andThen(
            project.credential === undefined ? Effect.void : keepCredential(project.id, project.credential),
          ),
          Effect.andThen(changes.mark(project.id)),
          Effect.andThen(one(project.id)),
          Effect.flatMap((row) =>
            row === null ? Effect.die(new Error("an inserted project is missing")) : Effect.succeed(row),
          ),
          sql.withTransaction,
          Effect.mapError(orTaken(project.name)),
          toStored("projects.create"),
        ),
      get: (id) => one(id).pipe(onSharedConnection, toStored("projects.get")),
      credential,
      replaceCredential: (id, envelope, now) =>
        sql
          .withTransaction(replaceCredential(id, envelope, now))
          .pipe(toStored("projects.replaceCredential")),
      list: Effect.fnUntraced(function* ({ accountId, userId }, { cursor, limit, onlyId }) {
        const position = yield* readCursor(cursor);
        const rows = yield* sql<Row>`
          ${select} WHERE account_id = ${accountId}
            ${onlyId === null ? sql.literal("") : sql`AND project.id = ${onlyId}`}
            ${userId === null ? sql.literal("") : sql`AND ${hasRoleIn(sql, userId)}`}
            ${afterPosition(sql, { at: "created_at", id: "project.id" }, position)}
          ORDER BY created_at DESC, project.id DESC ${pageLimit(sql, limit)}`;
        return cutNewest(rows.map(toProject), limit);
      }, toStored("projects.list")),
      update: (id, change, now) =>
        sql
          .withTransaction(Effect.andThen(update(id, change, now), one(id)))
          .pipe(Effect.mapError(orTaken(change.name ?? "")), toStored("projects.update")),
      changed,
      changedSince: (since) => changedSince(since).pipe(toStored("projects.changedSince")),
      keepCursors: (request) =>
        sql.withTransaction(keepCursors(request)).pipe(toStored("projects.keepCursors")),
    };
  }),
);
