/** Sessions, conversations and fires in bulk, as a project that has worked for a while has them. */
import { statements } from "../webhook/contenders.ts";

export interface Sizes {
  readonly sessions: number;
  readonly fires: number;
}

/** Whole milliseconds, as the service writes them. */
const AGO = "date_trunc('milliseconds', now()) - number * interval '1 second'";
/** From the project's row: its id, its account and its user. */
const OWNER = "project.id, project.account_id";

const sessions = (count: number, projectId: string): string => `
  INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, base_commit, name, agent_name,
    initial_prompt, metadata, created_by, origin, stop_reason, provisioned_at, boot_deadline_at, created_at, updated_at,
    running_at, stopped_at, saved, last_turn)
  SELECT gen_random_uuid(), ${OWNER}, 'stopped', '{"sandboxId": null}', 'main', repeat('a', 40), 'Session ' || number, 'default',
    'Update the dependencies and run the tests.', '{"ticket": "ABC-123"}', project.created_by, 'session', 'idle', ${AGO},
    ${AGO}, ${AGO}, ${AGO}, ${AGO}, ${AGO}, '{"wip": null, "skipped": [], "error": null}',
    '{"state": "completed", "error": null, "at": "2026-11-25T01:02:03.000Z"}'
  FROM generate_series(1, ${count}) AS number, projects AS project WHERE project.id = '${projectId}'`;

const conversations = (projectId: string): string => `
  INSERT INTO conversations (session_id, seq, turn_since, usage, created_at)
  SELECT id, 12, created_at, '{"cost_usd": 0.0123, "input_tokens": 1200, "cached_tokens": 800, "output_tokens": 300}', created_at
  FROM project_sessions WHERE project_id = '${projectId}'`;

const fires = (count: number, projectId: string): string => `
  INSERT INTO fires (id, account_id, project_id, trigger_slug, kind, status, reason, received_at, delivery_id, answers_delivery,
    attempts)
  SELECT gen_random_uuid(), project.account_id, project.id, 'on-push', 'webhook', 'skipped', 'filtered', ${AGO},
    'delivery-' || number, false, 1
  FROM generate_series(1, ${count}) AS number, projects AS project WHERE project.id = '${projectId}'`;

/** Adds rows to a project, past the service: foreign keys are not checked one by one. */
export const fill = async (url: string, projectId: string, sizes: Sizes): Promise<void> => {
  await statements(
    url,
    "SET session_replication_role = replica",
    // The rows of a benchmark need not survive a crash.
    "SET synchronous_commit = off",
    sessions(sizes.sessions, projectId),
    conversations(projectId),
    fires(sizes.fires, projectId),
  );
};

/** As a database is that has had its rows for a while. */
export const settle = async (url: string): Promise<void> => {
  await statements(url, "VACUUM ANALYZE project_sessions, conversations, fires", "CHECKPOINT");
};

/** The row in the middle of a project's list: its instant in ms, and its id. */
export const middleOf = async (
  url: string,
  list: { readonly table: "project_sessions" | "fires"; readonly at: string; readonly projectId: string },
): Promise<{ readonly at: number; readonly id: string }> => {
  const [row] = await statements(
    url,
    `SELECT (extract(epoch FROM ${list.at}) * 1000)::bigint::text AS at, id FROM ${list.table}
     WHERE project_id = '${list.projectId}' ORDER BY ${list.at} DESC, id DESC
     OFFSET (SELECT count(*) / 2 FROM ${list.table} WHERE project_id = '${list.projectId}') LIMIT 1`,
  );
  return { at: Number(row?.["at"]), id: String(row?.["id"]) };
};
