/** What a conversation says of a call that waits for a person. Both adapters write it together with the approval. */
import { derivedUuid } from "../../../domain/ids.ts";
import { type Author, SERVICE_AUTHOR } from "../../../domain/conversation/conversation.ts";
import type { Approval, ApprovalMove } from "./approvals.ts";
import type { NewCall } from "../../../store/ports/connectors/executor-calls.ts";

/** A note of the service in a conversation, without its numbers. */
export interface ApprovalNote {
  readonly sessionId: string;
  readonly id: string;
  readonly text: string;
  readonly author: Author;
  readonly at: number;
}

const callName = ({ connector, tool }: Pick<NewCall, "connector" | "tool">) =>
  `the call of ${tool} of the connector ${connector}`;

/** A call begins to wait. */
export const askedNote = (call: NewCall): ApprovalNote => ({
  sessionId: call.sessionId,
  id: derivedUuid(call.id, "asked"),
  text: `A person must approve ${callName(call)}.`,
  author: SERVICE_AUTHOR,
  at: call.at,
});

/** The end of the waiting, or null for a move that tells a reader nothing. */
export const decidedNote = (
  { id, call }: Approval,
  move: ApprovalMove,
  nameOf: (userId: string) => string,
): ApprovalNote | null => {
  const place = { sessionId: call.sessionId, id: derivedUuid(id, "decided"), at: move.now };
  if (move.type === "deadline.passed")
    return {
      ...place,
      author: SERVICE_AUTHOR,
      text: `No person decided in time on ${callName(call)}. It expired.`,
    };
  if (move.type !== "approval.given" && move.type !== "denial.given") return null;
  const name = nameOf(move.by);
  const author: Author = { kind: "user", userId: move.by, name, triggerSlug: null, fireId: null };
  const reason = move.type === "denial.given" && move.reason !== null ? ` The reason: ${move.reason}` : "";
  const verb = move.type === "approval.given" ? "approved" : "denied";
  return { ...place, author, text: `${name} ${verb} ${callName(call)}.${reason}` };
};
