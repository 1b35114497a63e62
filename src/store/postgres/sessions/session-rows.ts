/** Rows of project_sessions as records, alone and with the state of their conversation. */
import type { Failure } from "../../../domain/session/failure.ts";
import { SLEEPS, type Activity } from "../../../domain/session/session-activity.ts";
import { AT_REST } from "../../../domain/session/session-news.ts";
import type { Conversation, ConversationRowState } from "../../ports/sessions/conversations.ts";
import type { Session, ShownSession } from "../../ports/sessions/sessions.ts";

export type SessionRow = Omit<Session, "failure"> & {
  readonly failure: Failure | null;
  readonly failedAt: number | null;
};

export const SESSION_COLUMNS = `
  id, project_id AS "projectId", account_id AS "accountId", status, base_ref AS "baseRef",
  base_commit AS "baseCommit", name, agent_name AS "agentName", agent_model AS "agentModel",
  initial_prompt AS "initialPrompt", first_message AS "firstMessage", metadata, trigger_slug AS "triggerSlug", fire_id AS "fireId",
  parent_session_id AS "parentSessionId", created_by AS "createdBy", origin, failure, failed_at AS "failedAt", stop_reason AS "stopReason", saved, unsaved,
  restore_saved AS "restoreSaved", restored, last_turn AS "lastTurn", changes,
  state_context ->> 'sandboxId' AS "sandboxId", state_context ->> 'ending' AS ending, nullif(state_context -> 'asked', 'null') AS asked,
  state_context ->> 'next' IS NOT NULL AS restarts, boot_deadline_at AS "bootDeadlineAt",
  bootstrap_accepted_at AS "bootstrapAcceptedAt", created_at AS "createdAt", updated_at AS "updatedAt",
  running_at AS "runningAt", stopped_at AS "stoppedAt", archived_at AS "archivedAt", deleted_at AS "deletedAt"`;

const sessionFailure = ({
  failure,
  failedAt,
}: Pick<SessionRow, "failure" | "failedAt">): Session["failure"] =>
  failure === null || failedAt === null ? null : { ...failure, at: failedAt };

export const readSession = ({ failure, failedAt, ...row }: SessionRow): Session => ({
  ...row,
  failure: sessionFailure({ failure, failedAt }),
});

export const firstSession = ([row]: readonly SessionRow[]): Session | null =>
  row === undefined ? null : readSession(row);

/** Null in each column: the conversation was never opened. */
interface StateRow {
  readonly turnState: Conversation["turn"]["state"] | null;
  readonly turnSince: number | null;
  readonly turnWaitingFor: string | null;
  readonly usage: Conversation["usage"] | null;
  readonly held: boolean | null;
  readonly turnRequest: Conversation["turnRequest"];
  readonly lastSentence: string | null;
}

/** The calls that wait, counted, with the oldest. */
interface WaitingCalls {
  readonly pendingApprovals: number;
  readonly oldestApproval: ShownSession["oldestApproval"];
}

export type ShownRow = SessionRow &
  StateRow &
  Pick<ShownSession, "changeRequest" | "creatorName" | "seenAt"> & { readonly waitingCalls: WaitingCalls };

/** The calls of a session that wait for a person. */
export const pendingCalls = (session: string): string => `
  executor_calls AS call JOIN approvals AS approval ON approval.id = call.id
  WHERE call.session_id = ${session} AND call.outcome = 'pending' AND approval.status = 'pending'`;

/** The branch's commit that a request proposed, as far as it is known. */
const REQUEST_HEAD = "coalesce(request.head_commit, request.head_tip)";

/** The newest change request of a session's branch, which has the session's id as its name. */
const newestRequest = (sessions: string, columns: string): string => `SELECT ${columns}
    FROM change_requests AS request
    WHERE request.project_id = ${sessions}.project_id AND request.head_ref = ${sessions}.id::text
    ORDER BY request.number DESC LIMIT 1`;

/**
 * The rules of `sessionActivity` for a row of project_sessions: the first that holds. Cheap conditions stand first, and a row
 * of another table is read only where it decides.
 */
const activityRules = (session: string): readonly (readonly [Activity, string])[] => {
  const isLive = `${session}.status IN ('provisioning', 'running')`;
  const isTurn = (state: string) =>
    `(SELECT turn_state FROM conversations WHERE session_id = ${session}.id) = '${state}'`;
  const files = `coalesce((${session}.changes -> 'files')::integer, 0)`;
  const request = (condition: string) =>
    `EXISTS (SELECT FROM (${newestRequest(session, `status, ${REQUEST_HEAD} AS head`)}) AS newest WHERE ${condition})`;
  const isOver = request(
    `status <> 'open' AND (${files} = 0 OR ${session}.changes ->> 'head' = newest.head)`,
  );
  return [
    [
      "needs_you",
      `${asksInSleep(session)} OR ${isLive} AND (${session}.unsaved IS NOT NULL OR ${isTurn("requires_action")})
        OR EXISTS (SELECT FROM ${pendingCalls(`${session}.id`)})`,
    ],
    [
      "queued",
      `${session}.status = 'queued' OR ${session}.status IN ('stopped', 'failed') AND ${session}.state_context ->> 'next' IS NOT NULL`,
    ],
    ["starting", `${session}.status IN ('branching', 'provisioning')`],
    ["failed", `${session}.status = 'failed'`],
    [
      "working",
      `${session}.status = 'running' AND (${session}.initial_prompt IS NOT NULL AND ${session}.last_turn IS NULL
        OR ${isTurn("running")})`,
    ],
    [
      "failed",
      `${session}.last_turn ->> 'state' = 'failed' AND ${session}.stop_reason IS DISTINCT FROM 'requested' AND NOT ${isOver}`,
    ],
    ["done", `${session}.status = 'completed' OR ${isOver}`],
    ["ready_for_review", `${files} > 0 OR ${request("status = 'open'")}`],
    ["resting", `${session}.status = 'running'`],
    ["asleep", "true"],
  ];
};

/** Whether a row of project_sessions has one of these activities (test/store/sessions/session-activity.test.ts tries every state). */
export const hasActivity = (session: string, activities: readonly Activity[]): string => {
  const rules = activityRules(session);
  const last = rules.findLastIndex(([activity]) => activities.includes(activity));
  const cases = rules
    .slice(0, last + 1)
    .map(([activity, holds]) => `WHEN ${holds} THEN ${activities.includes(activity)}`);
  return cases.length === 0 ? "false" : `CASE ${cases.join(" ")} ELSE false END`;
};

/** The rule of `asksAsleep`. */
export const asksInSleep = (session: string): string => `(${session}.status = 'stopped'
  AND ${session}.stop_reason IN (${SLEEPS.map((reason) => `'${reason}'`).join(", ")})
  AND ${session}.state_context ->> 'asked' IS NOT NULL)`;

/** Whether a row of project_sessions is archived: the rule of `isArchived`. */
export const archivedRow = (session: string): string => `(${session}.archived_at IS NOT NULL
  AND ${session}.archived_at >= coalesce(${session}.failed_at, '-infinity')
  AND coalesce(${session}.last_turn ->> 'at', '') COLLATE "C"
    <= to_char(${session}.archived_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') COLLATE "C"
  AND (${hasActivity(session, AT_REST)}
    OR ${asksInSleep(session)} AND NOT EXISTS (SELECT FROM ${pendingCalls(`${session}.id`)})))`;

/** The columns of a session that is shown. `sessions` names its row, which `withConversations` has joined. */
export const shownColumns = (sessions: string): string => `${SESSION_COLUMNS},
  turn_state AS "turnState", turn_since AS "turnSince", turn_waiting_for AS "turnWaitingFor", usage, held,
  turn_request AS "turnRequest", last_sentence AS "lastSentence",
  (SELECT jsonb_build_object('pendingApprovals', count(*), 'oldestApproval', (array_agg(jsonb_build_object(
      'id', call.id, 'connector', call.connector, 'tool', call.tool, 'at', extract(epoch FROM call.at) * 1000
    ) ORDER BY call.at, call.id))[1]) FROM ${pendingCalls(`${sessions}.id`)}) AS "waitingCalls",
  (${newestRequest(
    sessions,
    `jsonb_build_object('id', request.id, 'number', request.number, 'title', request.title,
      'status', request.status, 'head', ${REQUEST_HEAD},
      'changesAskedBy', CASE WHEN request.status = 'open'
        THEN (SELECT name FROM users WHERE users.id = request.changes_asked_by) END,
      'comments', CASE WHEN request.status = 'open' THEN request.open_threads ELSE 0 END)`,
  )}) AS "changeRequest",
  (SELECT creator.name FROM users AS creator WHERE creator.id = ${sessions}.created_by) AS "creatorName"`;

/** Joins rows of project_sessions with the states of their conversations. It adds no column that a session also has. */
export const withConversations = (sessions: string): string => `LEFT JOIN (
    SELECT session_id, turn_state, turn_since, turn_waiting_for, usage, turn_request, last_sentence,
      coalesce((state_context ->> 'held')::boolean, false) AS held
    FROM conversations
  ) AS conversation ON conversation.session_id = ${sessions}.id`;

const conversationRowState = (row: StateRow): ConversationRowState | null => {
  const { turnState, turnSince, turnWaitingFor, usage, held, turnRequest, lastSentence } = row;
  if (turnState === null || turnSince === null || usage === null || held === null) return null;
  const turn = { state: turnState, since: turnSince, waitingFor: turnWaitingFor };
  return { turn, usage, held, turnRequest, lastSentence };
};

/** Copies the row once: a list has many. */
export const readShownSession = (row: ShownRow): ShownSession => {
  const { failure, failedAt, waitingCalls, ...rest } = row;
  const { turnState, turnSince, turnWaitingFor, usage, held, turnRequest, lastSentence, ...session } = rest;
  return {
    ...session,
    ...waitingCalls,
    failure: sessionFailure({ failure, failedAt }),
    conversation: conversationRowState({
      turnState,
      turnSince,
      turnWaitingFor,
      usage,
      held,
      turnRequest,
      lastSentence,
    }),
  };
};
