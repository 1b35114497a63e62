/** The activity of a session in SQL, by which lists are narrowed, is that of the rule, in every state that a row can have. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { describe, expect } from "vitest";
import { it } from "@effect/vitest";
import { ACTIVITIES, sessionActivity, type Activity } from "../../../src/domain/session/session-activity.ts";
import { Sessions, type ShownSession } from "../../../src/store/ports/sessions/sessions.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";

const store = storeOfFile();

/** More than there are states. */
const LIMIT = 5_000;

/** A session in each state that differs: what waits for a person decides before most of the rest. */
const fill = Effect.fnUntraced(function* ({ accountId, projectId, userId }: World) {
  const sql = yield* SqlClient.SqlClient;
  const noon = sql`${new Date(NOON)}::timestamptz`;
  const [account, project, person] = [sql`${accountId}::uuid`, sql`${projectId}::uuid`, sql`${userId}::uuid`];
  yield* sql`
    WITH states AS MATERIALIZED (
      SELECT gen_random_uuid() AS id, row_number() OVER () AS number, *
      FROM unnest(ARRAY['provisioning', 'running', 'stopped', 'failed']) AS status,
        unnest(ARRAY[NULL, 'running', 'requires_action']) AS turn,
        unnest(ARRAY[true, false]) AS calls, unnest(ARRAY[NULL, '{"since": 1, "tries": 1, "nextAt": 2}']::jsonb[]) AS unsaved,
        unnest(ARRAY[NULL, 'Fix it.']) AS prompt,
        unnest(ARRAY[NULL, 'completed', 'failed']) AS last_turn, unnest(ARRAY[NULL, 'requested', 'idle']) AS stop_reason,
        unnest(ARRAY['{}', '{"asked": {"kind": "question", "text": "Which?"}}', '{"next": {"sandboxId": "s"}}']::jsonb[]) AS context,
        unnest(ARRAY[NULL, 'open', 'merged', 'closed']) AS request,
        unnest(ARRAY[NULL, '{"files": 0, "head": "h"}', '{"files": 2, "head": "h"}', '{"files": 2, "head": "later"}']::jsonb[]) AS changes
      WHERE (stop_reason IS NULL OR status = 'stopped') AND (context = '{}' OR status IN ('running', 'stopped'))
        AND (NOT context ? 'next' OR turn IS NULL AND prompt IS NULL AND NOT calls AND unsaved IS NULL)
        AND (NOT calls AND unsaved IS NULL OR num_nonnulls(prompt, last_turn, stop_reason, request) = 0)
    ), sessions AS (
      INSERT INTO project_sessions (id, project_id, account_id, status, state_context, base_ref, agent_name, metadata,
        created_by, origin, failure, failed_at, provisioned_at, boot_deadline_at, created_at, updated_at, unsaved, initial_prompt,
        last_turn, stop_reason, changes)
      SELECT id, ${project}, ${account}, status::project_session_status, context, 'main', 'default', '{}', ${person}, 'session',
        CASE WHEN status = 'failed' THEN '{"code": "sandbox_lost", "message": "lost"}'::jsonb END,
        CASE WHEN status = 'failed' THEN ${noon} END, ${noon}, ${noon}, ${noon}, ${noon}, unsaved, prompt,
        CASE WHEN last_turn IS NOT NULL THEN jsonb_build_object('state', last_turn, 'error', NULL, 'at', '') END, stop_reason, changes
      FROM states
    ), restarts AS (
      INSERT INTO outbox (actor_kind, actor_id, command, created_at)
      SELECT 'session', id, '{"type": "restartAfterStop"}', ${noon} FROM states WHERE context ? 'next'
    ), conversations AS (
      INSERT INTO conversations (session_id, turn_state, turn_since, created_at)
      SELECT id, turn, ${noon}, ${noon} FROM states WHERE turn IS NOT NULL
    ), calls AS (
      INSERT INTO executor_calls (id, project_id, session_id, user_id, started_by, connector, tool, origin, arguments_digest,
        arguments_bytes, arguments_preview, at, outcome)
      SELECT id, ${project}, id, ${person}, 'user', 'docs', 'delete', '', '', 0, '', ${noon}, 'pending' FROM states WHERE calls
    ), approvals AS (
      INSERT INTO approvals (id, project_id, status, arguments_envelope, asked_at, expires_at, moved_at, attended_until)
      SELECT id, ${project}, 'pending', '', ${noon}, ${noon}, ${noon}, ${noon} FROM states WHERE calls
    )
    INSERT INTO change_requests (id, project_id, number, session_id, head_ref, base_ref, title, description, status, created_at,
      updated_at, base_commit, head_commit, merged_commit, merged_at, head_tip, state, state_context)
    SELECT id, ${project}, number, id, id::text, 'main', '', '', request, ${noon}, ${noon},
      CASE WHEN request = 'merged' THEN 'b' END, CASE WHEN request = 'merged' THEN 'h' END,
      CASE WHEN request = 'merged' THEN 'm' END, CASE WHEN request = 'merged' THEN ${noon} END,
      CASE WHEN request = 'merged' THEN 'other' ELSE 'h' END, request, '{}'
    FROM states WHERE request IS NOT NULL`;
  yield* sql`ANALYZE project_sessions, conversations, executor_calls, approvals, change_requests`;
});

/** Each activity alone, and the groups of a list. */
const LISTS: readonly (readonly Activity[])[] = [
  ...ACTIVITIES.map((activity) => [activity]),
  ["needs_you", "failed"],
  ["queued", "starting", "working"],
  ["resting", "asleep", "done"],
];

const names = (sessions: readonly ShownSession[]) => sessions.map(({ id }) => id).toSorted();

describe("a list that is narrowed by activity", () => {
  it.live("has the sessions of which the rule says so", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      yield* fill(world);
      const { list } = yield* Sessions;
      const whole = { limit: LIMIT, cursor: null, status: null };
      const { items } = yield* list(world.projectId, whole);
      expect(new Set(items.map(sessionActivity))).toEqual(new Set(ACTIVITIES));
      for (const activities of LISTS) {
        const expected = items.filter((session) => activities.includes(sessionActivity(session)));
        const narrowed = yield* list(world.projectId, { ...whole, activities });
        expect(names(narrowed.items), activities.join()).toEqual(names(expected));
      }
    }).pipe(Effect.provide(store)),
  );
});
