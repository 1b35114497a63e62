/** Project secrets, which arrive sealed, and the master key's check value. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Fenced } from "../../ports/journal.ts";
import {
  Secrets,
  type OwnedSecret,
  type SealedSecret,
  type StoredSecret,
} from "../../ports/projects/secrets.ts";
import { ProjectChanges } from "./project-changes.ts";
import { onSharedConnection } from "../connection/prepared.ts";
import { at, toStored } from "../connection/statement.ts";

export const KEY_CHECK = "master_key_check";
export const FORMER_KEYS = "former_master_keys";
/** How many projects one step of pruning reads. */
const PRUNE_STEP = 100;

const makePut = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const changes = yield* ProjectChanges;
  const bumpRevision = (projectId: string) =>
    Effect.andThen(
      sql`UPDATE projects SET secrets_revision = secrets_revision + 1 WHERE id = ${projectId}`,
      changes.mark(projectId),
    );

  type Writing = Parameters<(typeof Secrets)["Service"]["put"]>[1];
  const put = Effect.fnUntraced(function* (secret: SealedSecret, by: Writing) {
    const { projectId, name, version, envelope } = secret;
    // Locks the project's row first, so that two writes to one project wait for each other, and the second sees the
    // first.
    yield* bumpRevision(projectId);
    const [former] = yield* sql<Pick<OwnedSecret, "version" | "service"> & { readonly isSet: boolean }>`
      SELECT version, service, envelope IS NOT NULL AS "isSet" FROM project_secrets
      WHERE project_id = ${projectId} AND name = ${name}`;
    if (version !== (former?.version ?? 0) + 1) return yield* new Fenced({ id: name });
    const isNew = former === undefined || !former.isSet;
    const isService = by.service ?? (!isNew && former.service);
    const keepsFormer = !isNew && by.previousUntil !== undefined;
    yield* sql`
      INSERT INTO project_secrets (project_id, name, version, envelope, created_at, updated_at, updated_by, service)
      VALUES (${projectId}, ${name}, ${version}, ${Buffer.from(envelope)}, ${at(by.now)}, ${at(by.now)}, ${by.userId},
        ${isService})
      ON CONFLICT (project_id, name) DO UPDATE SET
        version = excluded.version, envelope = excluded.envelope, updated_at = excluded.updated_at,
        updated_by = excluded.updated_by, service = excluded.service,
        previous_envelope = CASE WHEN ${keepsFormer} THEN project_secrets.envelope END,
        previous_version = CASE WHEN ${keepsFormer} THEN project_secrets.version END,
        previous_until = CASE WHEN ${keepsFormer} THEN ${at(by.previousUntil ?? null)}::timestamptz END,
        created_at = CASE WHEN ${isNew} THEN excluded.created_at ELSE project_secrets.created_at END`;
    return isNew;
  });

  const remove = Effect.fnUntraced(function* (projectId: string, name: string, now: number) {
    // The same lock order as `put`: the reverse order could deadlock.
    yield* sql`SELECT id FROM projects WHERE id = ${projectId} FOR NO KEY UPDATE`;
    const rows = yield* sql`
      UPDATE project_secrets SET envelope = NULL, updated_at = ${at(now)},
        previous_envelope = NULL, previous_version = NULL, previous_until = NULL
      WHERE project_id = ${projectId} AND name = ${name} AND envelope IS NOT NULL RETURNING name`;
    if (rows.length > 0) yield* bumpRevision(projectId);
    return rows.length > 0;
  });

  /** Locks the project's row first, as above. Its version rises, so that no cache keeps the value. */
  const prunePrevious = Effect.fnUntraced(function* (now: number) {
    const projects = yield* sql<{ readonly projectId: string }>`
      SELECT DISTINCT project_id AS "projectId" FROM project_secrets
      WHERE previous_until <= ${at(now)} ORDER BY project_id LIMIT ${PRUNE_STEP}`;
    let count = 0;
    for (const { projectId } of projects) {
      yield* changes.mark(projectId);
      const rows = yield* sql`
        UPDATE project_secrets SET previous_envelope = NULL, previous_version = NULL, previous_until = NULL
        WHERE project_id = ${projectId} AND previous_until <= ${at(now)} RETURNING name`;
      count += rows.length;
    }
    return count;
  });
  return { put, remove, prunePrevious };
});

/** One statement sees one state of the project. A project without secrets has one row without a name. */
const makeCurrent =
  (sql: SqlClient.SqlClient): (typeof Secrets)["Service"]["current"] =>
  (projectId) =>
    sql<Nullable<Omit<OwnedSecret, "projectId">> & { readonly revision: number }>`
      SELECT secrets_revision AS revision, held.name, held.version, held.envelope, held.service
      FROM projects LEFT JOIN project_secrets AS held ON held.project_id = projects.id AND held.envelope IS NOT NULL
      WHERE projects.id = ${projectId} ORDER BY held.name COLLATE "C"`.pipe(
      Effect.map((rows) => ({
        sealed: rows.flatMap(({ name, version, envelope, service }) =>
          name === null || version === null || envelope === null || service === null
            ? []
            : [{ projectId, name, version, envelope, service }],
        ),
        revision: rows[0]?.revision ?? 0,
      })),
      toStored("secrets.current"),
    );

type Nullable<A> = { readonly [K in keyof A]: A[K] | null };

export const layer = Layer.effect(
  Secrets,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { put, remove, prunePrevious } = yield* makePut;
    const sealedColumns = sql.literal(`project_id AS "projectId", name, version, envelope, service`);
    return {
      list: (projectId) =>
        Effect.gen(function* () {
          // The revision is read first: values newer than it are sent again, never missed.
          const [project] = yield* sql<{ readonly revision: number }>`
            SELECT secrets_revision AS revision FROM projects WHERE id = ${projectId}`;
          const secrets = yield* sql<StoredSecret>`
            SELECT name, created_at AS "createdAt", updated_at AS "updatedAt", updated_by AS "updatedBy",
              service, previous_until AS "previousUntil"
            FROM project_secrets WHERE project_id = ${projectId} AND envelope IS NOT NULL ORDER BY name COLLATE "C"`;
          return { secrets, revision: project?.revision ?? 0 };
        }).pipe(toStored("secrets.list")),
      sealed: (projectId) =>
        sql<OwnedSecret>`
          SELECT ${sealedColumns} FROM project_secrets
          WHERE project_id = ${projectId} AND envelope IS NOT NULL ORDER BY name COLLATE "C"`.pipe(
          toStored("secrets.sealed"),
        ),
      current: makeCurrent(sql),
      get: (projectId, name) =>
        sql<OwnedSecret>`
          SELECT ${sealedColumns} FROM project_secrets
          WHERE project_id = ${projectId} AND name = ${name} AND envelope IS NOT NULL`.pipe(
          Effect.map(([row]) => row ?? null),
          onSharedConnection,
          toStored("secrets.get"),
        ),
      nextVersion: (projectId, name) =>
        sql<{ readonly version: number }>`
          SELECT version FROM project_secrets WHERE project_id = ${projectId} AND name = ${name}`.pipe(
          Effect.map(([row]) => (row?.version ?? 0) + 1),
          toStored("secrets.nextVersion"),
        ),
      put: (secret, by) => sql.withTransaction(put(secret, by)).pipe(toStored("secrets.put")),
      remove: (projectId, name, now) =>
        sql.withTransaction(remove(projectId, name, now)).pipe(toStored("secrets.remove")),
      // FOR SHARE: waits for a rotation that is under way.
      masterKey: sql<{ readonly key: string; readonly value: string }>`
        SELECT key, value FROM settings WHERE key IN (${KEY_CHECK}, ${FORMER_KEYS}) FOR SHARE`.pipe(
        Effect.map((rows) => {
          const readValue = (name: string) => rows.find(({ key }) => key === name)?.value ?? null;
          const check = readValue(KEY_CHECK);
          return check === null ? null : { check, former: readValue(FORMER_KEYS) };
        }),
        toStored("secrets.masterKey"),
      ),
      prunePrevious: (now) => sql.withTransaction(prunePrevious(now)).pipe(toStored("secrets.prunePrevious")),
      keyCheck: (value) =>
        Effect.gen(function* () {
          yield* sql`INSERT INTO settings (key, value) VALUES (${KEY_CHECK}, ${value}) ON CONFLICT DO NOTHING`;
          const [row] = yield* sql<{ readonly value: string }>`
            SELECT value FROM settings WHERE key = ${KEY_CHECK}`;
          return row?.value ?? value;
        }).pipe(toStored("secrets.keyCheck")),
    };
  }),
);
