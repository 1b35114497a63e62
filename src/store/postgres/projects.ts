/** Projects, the last readings of their manifests, and when their triggers last fired. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { pageOf, positionOf } from "../cursor.ts";
import { Projects } from "../port.ts";
import type { Project, ProjectUpdate } from "../records.ts";
import { lockAccount } from "./slots.ts";
import { after, at, json, stored } from "./statement.ts";

type Row = Omit<Project, "manifest"> & {
  readonly readCommit: string | null;
  readonly syncedAt: number | null;
  readonly error: string | null;
};

const SELECT = `
  SELECT project.id, account_id AS "accountId", name, status, repository, default_branch AS "defaultBranch",
    triggers_paused AS "triggersPaused", created_by AS "createdBy", created_at AS "createdAt", updated_at AS "updatedAt",
    read_commit AS "readCommit", synced_at AS "syncedAt", error
  FROM projects AS project LEFT JOIN project_manifests AS manifest ON manifest.project_id = project.id`;

const projectOf = ({ readCommit, syncedAt, error, ...row }: Row): Project => ({
  ...row,
  manifest: { commit: readCommit, syncedAt, error },
});

const makeUpdate = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;

  /** An archived project starts nothing more: what waits is cancelled (api.md 4 "Queue"). */
  const cancelWaiting = (projectId: string) => sql`
    WITH gone AS (DELETE FROM fire_queue WHERE project_id = ${projectId} RETURNING fire_id)
    UPDATE fires SET status = 'cancelled', reason = 'project_archived' FROM gone WHERE id = gone.fire_id`;

  return Effect.fnUntraced(function* (id: string, change: ProjectUpdate, now: number) {
    const [project] = yield* sql<{ readonly accountId: string }>`
      SELECT account_id AS "accountId" FROM projects WHERE id = ${id}`;
    if (project === undefined) return;
    // An admission that is under way finishes first; the next one sees the new status.
    if (change.status !== undefined) yield* lockAccount(sql, project.accountId);
    yield* sql`
      UPDATE projects SET updated_at = ${at(now)},
        name = coalesce(${change.name ?? null}, name),
        status = coalesce(${change.status ?? null}, status),
        triggers_paused = coalesce(${change.triggersPaused ?? null}::boolean, triggers_paused),
        default_branch = coalesce(${change.defaultBranch ?? null}, default_branch)
      WHERE id = ${id}`;
    if (change.status === "archived") yield* cancelWaiting(id);
  });
});

const makeManifests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const recordManifest: (typeof Projects)["Service"]["recordManifest"] = (id, reading) => {
    const { commit, text, error, now } = reading;
    // A reading that did not parse leaves the last good one standing.
    const goodCommit = text === null ? null : commit;
    return sql`
      INSERT INTO project_manifests AS manifest (project_id, read_commit, synced_at, error, commit_sha, text)
      VALUES (${id}, ${commit}, ${at(now)}, ${error}, ${goodCommit}, ${goodCommit === null ? null : text})
      ON CONFLICT (project_id) DO UPDATE SET
        read_commit = excluded.read_commit, synced_at = excluded.synced_at, error = excluded.error,
        commit_sha = coalesce(excluded.commit_sha, manifest.commit_sha),
        text = coalesce(excluded.text, manifest.text)`.pipe(Effect.asVoid, stored("projects.recordManifest"));
  };
  const manifest: (typeof Projects)["Service"]["manifest"] = (id) =>
    sql<{ readonly commit: string; readonly text: string }>`
      SELECT commit_sha AS commit, text FROM project_manifests
      WHERE project_id = ${id} AND commit_sha IS NOT NULL`.pipe(
      Effect.map(([row]) => row ?? null),
      stored("projects.manifest"),
    );
  return { recordManifest, manifest };
});

export const layer = Layer.effect(
  Projects,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const select = sql.literal(SELECT);
    const update = yield* makeUpdate;
    const one = (id: string) =>
      Effect.map(sql<Row>`${select} WHERE project.id = ${id}`, ([row]) =>
        row === undefined ? null : projectOf(row),
      );
    return {
      ...(yield* makeManifests),
      create: (project) =>
        sql`
          INSERT INTO projects (id, account_id, name, repository, default_branch, created_by, created_at, updated_at)
          VALUES (${project.id}, ${project.accountId}, ${project.name}, ${json(project.repository)},
            ${project.defaultBranch}, ${project.createdBy}, ${at(project.now)}, ${at(project.now)})`.pipe(
          Effect.andThen(one(project.id)),
          Effect.flatMap((created) =>
            created === null
              ? Effect.die(new Error("an inserted project is not there"))
              : Effect.succeed(created),
          ),
          stored("projects.create"),
        ),
      get: (id) => one(id).pipe(stored("projects.get")),
      list: Effect.fnUntraced(function* (accountId, { cursor, limit, onlyId }) {
        const position = yield* positionOf(cursor);
        const rows = yield* sql<Row>`
          ${select} WHERE account_id = ${accountId}
            AND (${onlyId}::uuid IS NULL OR project.id = ${onlyId}::uuid)
            ${after(sql, { at: "created_at", id: "project.id" }, position)}
          ORDER BY created_at DESC, project.id DESC LIMIT ${limit + 1}`;
        return pageOf(rows.map(projectOf), limit, ({ createdAt, id }) => ({ at: createdAt, id }));
      }, stored("projects.list")),
      update: (id, change, now) =>
        sql.withTransaction(Effect.andThen(update(id, change, now), one(id))).pipe(stored("projects.update")),
      active: sql<Row>`${select} WHERE status = 'active' ORDER BY created_at, project.id`.pipe(
        Effect.map((rows) => rows.map(projectOf)),
        stored("projects.active"),
      ),
      lastFired: (id) =>
        sql<{ readonly slug: string; readonly lastFiredAt: number }>`
          SELECT slug, last_fired_at AS "lastFiredAt" FROM project_trigger_runtime
          WHERE project_id = ${id}`.pipe(
          Effect.map((rows) => new Map(rows.map(({ slug, lastFiredAt }) => [slug, lastFiredAt]))),
          stored("projects.lastFired"),
        ),
    };
  }),
);
