/** Examples of the approvals' operations. */
import type { Examples } from "../../http/api/examples/example.ts";
import { LATER, USER } from "../../http/api/examples/records.ts";

const decision = { decided_by: USER, decided_at: LATER };

export const APPROVAL_EXAMPLES: Examples = {
  nouns: {
    approval: {
      connector: "linear",
      tool: "delete_issue",
      arguments: { issue: "CORE-7" },
      arguments_digest: "6f1c0e2d9b7a4c3e8d5f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f",
      outcome: "pending",
      expires_at: "2026-11-21T12:00:00.000Z",
    },
  },
  operations: {
    "approvals.list": "List calls of agents that wait for a person, or waited, newest first.",
    "approvals.approve": {
      summary: "Approve a call. The service performs it once.",
      response: { ...decision, status: "approved" },
    },
    "approvals.deny": {
      summary: "Deny a call. It is not made, and the agent reads the reason.",
      request: { reason: "Keep this issue." },
      response: { ...decision, status: "denied", arguments: null, outcome: "denied" },
    },
  },
};
