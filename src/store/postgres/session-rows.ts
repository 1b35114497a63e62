/** Rows of project_sessions as records, alone and with the state of their conversation. */
import type { Failure } from "../../domain/failure.ts";
import type { Conversation, ConversationState } from "../ports/conversations.ts";
import type { Session, ShownSession } from "../ports/sessions.ts";

export type SessionRow = Omit<Session, "failure"> & {
  readonly failure: Failure | null;
  readonly failedAt: number | null;
};

export const SESSION_COLUMNS = `
  id, project_id AS "projectId", account_id AS "accountId", status, base_ref AS "baseRef",
  base_commit AS "baseCommit", name, agent_name AS "agentName", agent_model AS "agentModel",
  initial_prompt AS "initialPrompt", metadata, trigger_slug AS "triggerSlug", fire_id AS "fireId",
  parent_session_id AS "parentSessionId", created_by AS "createdBy", origin, failure, failed_at AS "failedAt", stop_reason AS "stopReason", saved,
  restore_saved AS "restoreSaved", restored, last_turn AS "lastTurn",
  state_context ->> 'sandboxId' AS "sandboxId", state_context ->> 'ending' AS ending, boot_deadline_at AS "bootDeadlineAt",
  bootstrap_accepted_at AS "bootstrapAcceptedAt", created_at AS "createdAt", updated_at AS "updatedAt",
  running_at AS "runningAt", stopped_at AS "stoppedAt", deleted_at AS "deletedAt"`;

const failureOf = ({ failure, failedAt }: Pick<SessionRow, "failure" | "failedAt">): Session["failure"] =>
  failure === null || failedAt === null ? null : { ...failure, at: failedAt };

export const sessionOf = ({ failure, failedAt, ...row }: SessionRow): Session => ({
  ...row,
  failure: failureOf({ failure, failedAt }),
});

export const firstSession = ([row]: readonly SessionRow[]): Session | null =>
  row === undefined ? null : sessionOf(row);

/** Null in each column: the conversation was never opened. */
interface StateRow {
  readonly turnState: Conversation["turn"]["state"] | null;
  readonly turnSince: number | null;
  readonly turnWaitingFor: string | null;
  readonly usage: Conversation["usage"] | null;
  readonly held: boolean | null;
}

export type ShownRow = SessionRow & StateRow & { readonly pendingApprovals: number };

/** The calls of a session that wait for a person. */
export const pendingCallsOf = (session: string): string => `
  executor_calls AS call JOIN approvals AS approval ON approval.id = call.id
  WHERE call.session_id = ${session} AND call.outcome = 'pending' AND approval.status = 'pending'`;

/** The columns of a session that is shown. `sessions` names its row, which `withConversations` has joined. */
export const shownColumns = (sessions: string): string => `${SESSION_COLUMNS},
  turn_state AS "turnState", turn_since AS "turnSince", turn_waiting_for AS "turnWaitingFor", usage, held,
  (SELECT count(*)::integer FROM ${pendingCallsOf(`${sessions}.id`)}) AS "pendingApprovals"`;

/** Joins rows of project_sessions with the states of their conversations. It adds no column that a session also has. */
export const withConversations = (sessions: string): string => `LEFT JOIN (
    SELECT session_id, turn_state, turn_since, turn_waiting_for, usage,
      coalesce((state_context ->> 'held')::boolean, false) AS held
    FROM conversations
  ) AS conversation ON conversation.session_id = ${sessions}.id`;

const stateOf = ({ turnState, turnSince, turnWaitingFor, usage, held }: StateRow): ConversationState | null =>
  turnState === null || turnSince === null || usage === null || held === null
    ? null
    : { turn: { state: turnState, since: turnSince, waitingFor: turnWaitingFor }, usage, held };

/** Copies the row once: a list has many. */
export const shownOf = (row: ShownRow): ShownSession => {
  const { failure, failedAt, turnState, turnSince, turnWaitingFor, usage, held, ...session } = row;
  return {
    ...session,
    failure: failureOf({ failure, failedAt }),
    conversation: stateOf({ turnState, turnSince, turnWaitingFor, usage, held }),
  };
};
