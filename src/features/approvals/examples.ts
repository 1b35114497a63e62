/** Examples of the approvals' operations. */
const AT = "2026-11-20T12:00:00.000Z";

const pending = {
  id: "0193b3c4-0000-7000-8000-000000000001",
  session_id: "0193b3c4-0000-7000-8000-000000000003",
  user_id: "0193b3c4-0000-7000-8000-000000000002",
  started_by: "user",
  connector: "linear",
  tool: "delete_issue",
  origin: "https://mcp.example.com",
  status: "pending",
  arguments: { issue: "CORE-7" },
  arguments_digest: "6f1c0e2d9b7a4c3e8d5f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f",
  reason: null,
  asked_at: AT,
  expires_at: "2026-11-21T12:00:00.000Z",
  decided_by: null,
  decided_at: null,
  outcome: "pending",
  delivered_at: null,
};
const decided = { decided_by: "0193b3c4-0000-7000-8000-000000000002", decided_at: AT };

export const APPROVAL_EXAMPLES = {
  "approvals.list": {
    summary: "List calls of agents that wait for a person, or waited, newest first.",
    response: { approvals: [pending], next_cursor: null },
  },
  "approvals.approve": {
    summary: "Approve a call. The service performs it once.",
    response: { ...pending, ...decided, status: "approved" },
  },
  "approvals.deny": {
    summary: "Deny a call. It is not made, and the agent reads the reason.",
    request: { reason: "Keep this issue." },
    response: {
      ...pending,
      ...decided,
      status: "denied",
      arguments: null,
      reason: "Keep this issue.",
      outcome: "denied",
    },
  },
};
