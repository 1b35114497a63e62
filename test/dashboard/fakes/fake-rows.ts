/** The facts of a session's row as the service answers them, by its own rule. A test may set each fact itself. */
import { oldestWait, sessionActivity } from "../../../src/domain/session/session-activity.ts";

type Json = Readonly<Record<string, unknown>>;

/** @param changes the project's change requests */
export const withRow = (session: Json, changes: readonly Json[]): Json => {
  const { id, status, turn, pending_approvals: calls, unsaved, last_turn: last } = session;
  const { initial_prompt: prompt, stop_reason: stopReason } = session;
  const change = changes.find((one) => one["session_id"] === id) ?? null;
  const { state, since, waiting_for: waitingFor } = Object(turn);
  const facts = {
    status,
    conversation: { turn: { state, since: Date.parse(since), waitingFor }, turnRequest: null },
    oldestApproval: Number(calls) > 0 ? { id: "a", connector: "linear", tool: "create_issue", at: 0 } : null,
    unsaved: unsaved === null ? null : { since: Date.parse(Object(unsaved).since) },
    stopReason,
    asked: null,
    restarts: false,
    initialPrompt: prompt,
    lastTurn: last,
    changeRequest: change === null ? null : { status: change["status"], head: change["head_commit"] },
    changes: session["changes"] ?? null,
  } as unknown as Parameters<typeof sessionActivity>[0];
  return {
    activity: sessionActivity(facts),
    waits_for: oldestWait(facts),
    change_request: change && { ...change, changes_asked_by: null, comments: 0 },
    changes: null,
    last_sentence: null,
    archived: false,
    unread: false,
    person: session["trigger_slug"] === null ? { id: session["created_by"], name: "Mona" } : null,
    ...session,
  };
};
