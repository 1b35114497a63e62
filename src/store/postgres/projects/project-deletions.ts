/** Deleted projects. The rules are those of src/store/ports/projects/project-deletions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { LIVE_SESSION_STATUSES } from "../../../domain/session/session.ts";
import type { UnwantedSession } from "../../ports/people/people.ts";
import { ProjectDeletions, type Removal } from "../../ports/projects/project-deletions.ts";
import type { Project } from "../../ports/projects/projects.ts";
import { Endings } from "../connection/endings.ts";
import { at, toStored } from "../connection/statement.ts";
import { EventLog } from "../events/event-log.ts";
import { cancelWaits } from "../triggers/fire-moves.ts";
import { removeFires } from "../triggers/fires.ts";
import { lockAccount } from "../triggers/slots.ts";
import { ProjectChanges } from "./project-changes.ts";
import { readProject } from "./projects.ts";

type Port = (typeof ProjectDeletions)["Service"];

const UNWANTED_MAX = 100;
/** How many rows of a kind go in one step: a conversation may have thousands of items. */
const STEP = { sessions: 20, rows: 1000 } as const;

const makeMarks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const changes = yield* ProjectChanges;
  const events = yield* EventLog;

  const begin: Port["begin"] = (id, { now, deletesAt }) =>
    Effect.gen(function* () {
      const project = yield* readProject(sql, id);
      if (project === null) return null;
      const { accountId } = project;
      // An admission that is under way finishes first. The next one sees the new status.
      yield* lockAccount(sql, accountId);
      const rows = yield* sql`
        UPDATE projects SET former_status = status, status = 'deleted', deletes_at = ${at(deletesAt)}, updated_at = ${at(now)}
        WHERE id = ${id} AND status <> 'deleted' RETURNING id`;
      if (rows.length === 0) return yield* readProject(sql, id);
      yield* changes.mark(id);
      const cancel = { accountId, reason: "project_deleted", now };
      yield* cancelWaits({ sql, events }, sql`project_id = ${id}`, cancel);
      return yield* readProject(sql, id);
    }).pipe(sql.withTransaction, toStored("projectDeletions.begin"));

  const restore: Port["restore"] = (id, now) =>
    Effect.gen(function* () {
      const rows = yield* sql`
        UPDATE projects SET status = former_status, former_status = NULL, deletes_at = NULL, updated_at = ${at(now)}
        WHERE id = ${id} AND deletes_at > ${at(now)} RETURNING id`;
      if (rows.length === 0) return null;
      yield* changes.mark(id);
      return yield* readProject(sql, id);
    }).pipe(sql.withTransaction, toStored("projectDeletions.restore"));
  return { begin, restore };
});

/** X2. */
const isBusy = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ readonly isBusy: boolean }>`
      SELECT EXISTS (
        SELECT FROM project_sessions AS session
        LEFT JOIN session_sandboxes AS sandbox ON sandbox.session_id = session.id
        WHERE session.project_id = ${id}
          AND (session.status = ANY(${[...LIVE_SESSION_STATUSES]}::project_session_status[]) OR sandbox.status IN ('provisioning', 'active'))
      ) OR EXISTS (
        SELECT FROM environment_builds WHERE project_id = ${id} AND ended_at IS NULL
      ) AS "isBusy"`,
    ([row]) => row?.isBusy !== false,
  );

/** What actors keep: commands that wait, and their history. */
const forgetActors = (sql: SqlClient.SqlClient, kind: string, ids: readonly string[]) =>
  Effect.andThen(
    sql`DELETE FROM outbox WHERE actor_kind = ${kind} AND actor_id = ANY(${[...ids]}::uuid[])`,
    sql`DELETE FROM transitions WHERE actor_kind = ${kind} AND actor_id = ANY(${[...ids]}::text[])`,
  );

const rowIds = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map(({ id }) => id);

/** Removes some sessions, with their sandboxes and conversations. An agent's session goes before the one that started it. */
const makeRemoveSessions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  return Effect.fnUntraced(function* (projectId: string) {
    const sessions = rowIds(
      yield* sql<{ readonly id: string }>`
        SELECT id FROM project_sessions WHERE project_id = ${projectId}
        ORDER BY created_at DESC, id DESC LIMIT ${sql.literal(String(STEP.sessions))}`,
    );
    if (sessions.length === 0) return 0;
    const all = [...sessions];
    yield* sql`DELETE FROM session_logs WHERE session_id = ANY(${all}::uuid[])`;
    yield* sql`DELETE FROM clone_credentials WHERE session_id = ANY(${all}::uuid[])`;
    yield* sql`DELETE FROM tokens WHERE session_id = ANY(${all}::uuid[])`;
    const sandboxes = yield* sql<{ readonly id: string }>`
      DELETE FROM session_sandboxes WHERE session_id = ANY(${all}::uuid[]) RETURNING id`;
    yield* forgetActors(sql, "sandbox", rowIds(sandboxes));
    yield* forgetActors(sql, "session", sessions);
    yield* forgetActors(sql, "conversation", sessions);
    yield* sql`UPDATE project_sessions SET parent_session_id = NULL WHERE parent_session_id = ANY(${all}::uuid[])`;
    yield* sql`DELETE FROM project_sessions WHERE id = ANY(${all}::uuid[])`;
    return sessions.length;
  });
});

/** Removes what is left when no session is. The project's row takes along what only it has. */
const makeRemoveRest = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { say } = yield* Endings;
  return Effect.fnUntraced(function* (id: string, accountId: string, now: number) {
    const builds = yield* sql<{
      readonly id: string;
    }>`SELECT id FROM environment_builds WHERE project_id = ${id}`;
    yield* forgetActors(sql, "environment_build", rowIds(builds));
    yield* sql`DELETE FROM transitions WHERE actor_kind = 'trigger' AND actor_id LIKE ${`${id}/%`}`;
    yield* sql`DELETE FROM device_logins WHERE project_id = ${id}`;
    yield* sql`
      DELETE FROM tokens USING tokens AS opener WHERE tokens.opened_by = opener.id AND opener.project_id = ${id}`;
    const tokens = yield* sql<{
      readonly id: string;
    }>`DELETE FROM tokens WHERE project_id = ${id} RETURNING id`;
    yield* sql`
      UPDATE invitations SET projects = (
        SELECT coalesce(jsonb_agg(granted), '[]') FROM jsonb_array_elements(projects) AS granted
        WHERE granted ->> 'projectId' <> ${id}
      )
      WHERE account_id = ${accountId} AND projects @> jsonb_build_array(jsonb_build_object('projectId', ${id}::text))`;
    yield* sql`DELETE FROM projects WHERE id = ${id}`;
    yield* sql`INSERT INTO deleted_projects (id, deleted_at) VALUES (${id}, ${at(now)}) ON CONFLICT DO NOTHING`;
    yield* say(rowIds(tokens));
  });
});

const makeRemove = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const removeSessions = yield* makeRemoveSessions;
  const removeRest = yield* makeRemoveRest;
  const some = sql.literal(`LIMIT ${STEP.rows}`);

  return Effect.fnUntraced(function* (id: string, now: number) {
    const former = yield* readProject(sql, id);
    if (former === null) return "gone" satisfies Removal;
    yield* lockAccount(sql, former.accountId);
    const due = yield* sql`SELECT id FROM projects WHERE id = ${id} AND deletes_at <= ${at(now)} FOR UPDATE`;
    if (due.length === 0 || (yield* isBusy(sql, id))) return "waits" satisfies Removal;
    const fires = yield* sql<{ readonly id: string }>`SELECT id FROM fires WHERE project_id = ${id} ${some}`;
    if ((yield* removeFires(sql, rowIds(fires))) > 0) return "more" satisfies Removal;
    const events = yield* sql`
      DELETE FROM events WHERE (project_id, tx, id) IN (
        SELECT project_id, tx, id FROM events WHERE project_id = ${id} ${some}
      ) RETURNING id`;
    if (events.length > 0) return "more" satisfies Removal;
    const requests = yield* sql<{ readonly id: string }>`
      DELETE FROM change_requests WHERE project_id = ${id} RETURNING id`;
    yield* forgetActors(sql, "change_request", rowIds(requests));
    if ((yield* removeSessions(id)) > 0) return "more" satisfies Removal;
    yield* removeRest(id, former.accountId, now);
    return "removed" satisfies Removal;
  });
});

export const layer = Layer.effect(
  ProjectDeletions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const remove = yield* makeRemove;
    return {
      ...(yield* makeMarks),
      unwantedSessions: sql<UnwantedSession>`
        SELECT session.id, session.project_id AS "projectId" FROM project_sessions AS session
        JOIN projects ON projects.id = session.project_id
        WHERE session.status = ANY(${[...LIVE_SESSION_STATUSES]}::project_session_status[])
          AND session.state_context ->> 'ending' IS NULL AND projects.status = 'deleted'
        LIMIT ${sql.literal(String(UNWANTED_MAX))}`.pipe(toStored("projectDeletions.unwantedSessions")),
      due: (now) =>
        Effect.gen(function* () {
          const rows = yield* sql<{ readonly id: string }>`
            SELECT id FROM projects WHERE deletes_at <= ${at(now)} ORDER BY deletes_at, id`;
          const due = yield* Effect.forEach(rows, ({ id }) => readProject(sql, id));
          return due.filter((project): project is Project => project !== null);
        }).pipe(toStored("projectDeletions.due")),
      remove: (id, now) => sql.withTransaction(remove(id, now)).pipe(toStored("projectDeletions.remove")),
      gone: sql<{ readonly id: string }>`SELECT id FROM deleted_projects ORDER BY id`.pipe(
        Effect.map(rowIds),
        toStored("projectDeletions.gone"),
      ),
    };
  }),
);
