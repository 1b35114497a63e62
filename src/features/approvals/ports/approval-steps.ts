/** What a move means for an approval and for its row in the record of calls. Both adapters use it. */
import { isSettled } from "../rules/approval.ts";
import { approval } from "../machine.ts";
import type { NewEvent } from "../../../store/ports/events.ts";
import type { Approval, ApprovalMove, ApprovalRow } from "./approvals.ts";
import type { ExecutorCall } from "../../../store/ports/connectors/executor-calls.ts";

/** The columns of the record of calls that a move sets. */
export type CallColumns = Pick<
  ExecutorCall,
  "begunAt" | "approver" | "endedAt" | "outcome" | "message" | "upstreamStatus" | "resultBytes"
>;

const EXPIRED = "No person decided on this call in time.";
const DENIED = "A person denied this call.";

const callAfter = (move: ApprovalMove): Partial<CallColumns> => {
  const end = { endedAt: move.now };
  switch (move.type) {
    case "approval.given":
      return { approver: move.by };
    case "denial.given": {
      const message = move.reason === null ? DENIED : `${DENIED} ${move.reason}`;
      return { ...end, approver: move.by, outcome: "denied", message };
    }
    case "deadline.passed":
      return { ...end, outcome: "denied", message: EXPIRED };
    case "call.begun":
      return { begunAt: move.now, outcome: null };
    case "call.refused":
      return { ...end, outcome: "denied", message: move.message };
    case "call.ended": {
      const { outcome, message, upstreamStatus, resultBytes } = move;
      return { ...end, outcome, message, upstreamStatus, resultBytes };
    }
    case "call.lost":
      return {
        ...end,
        outcome: "unknown",
        message: move.message,
        upstreamStatus: move.upstreamStatus,
      };
    case "result.delivered":
      return {};
  }
};

const rowAfter = (move: ApprovalMove): Partial<ApprovalRow> => {
  switch (move.type) {
    case "approval.given":
      return { decidedBy: move.by, decidedAt: move.now };
    case "denial.given":
      return { decidedBy: move.by, decidedAt: move.now, message: move.reason };
    case "call.refused":
    case "call.lost":
      return { message: move.message };
    case "call.ended":
      return { sealedResult: move.sealedResult };
    case "result.delivered":
      return { deliveredAt: move.now };
    case "deadline.passed":
    case "call.begun":
      return {};
  }
};

/** @returns the approval after a move, with its call, or null if the machine refuses the move. */
export const movedBy = (before: Approval, move: ApprovalMove): Approval | null => {
  const { status, deliveredAt, call } = before;
  const snapshot = { state: status, context: { delivered: deliveredAt !== null } };
  const { accepted, snapshot: after } = approval.step(snapshot, { type: move.type });
  if (!accepted) return null;
  return {
    ...before,
    ...rowAfter(move),
    status: after.state,
    movedAt: after.state === status ? before.movedAt : move.now,
    sealedArguments: isSettled(after.state) ? null : before.sealedArguments,
    call: { ...call, ...callAfter(move) },
  };
};

interface Subject {
  readonly id: string;
  readonly projectId: string;
  readonly sessionId: string;
}

/** A call waits for a person. */
export const approvalWaitingEvent = ({
  id,
  projectId,
  sessionId,
  connector,
  tool,
  at,
}: Subject & Pick<ExecutorCall, "connector" | "tool" | "at">): NewEvent => ({
  projectId,
  sessionId,
  at,
  type: "approval.waiting",
  data: { approval_id: id, connector, tool },
});

/** The events of a move. */
export const moveEvents = (before: Approval, after: Approval): readonly NewEvent[] =>
  before.status === after.status
    ? []
    : [
        {
          projectId: after.projectId,
          sessionId: after.call.sessionId,
          at: after.movedAt,
          type: "approval.changed",
          data: { approval_id: after.id, status: after.status, previous: before.status },
        },
      ];
