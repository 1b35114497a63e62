/** Examples of the connectors' operations. */
const AT = "2026-11-20T12:00:00.000Z";
const PIN = "6f1c0e2d9b7a4c3e8d5f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f";

const connector = {
  slug: "linear",
  kind: "mcp",
  url: "https://mcp.example.com/mcp",
  auth: "bearer",
  auth_name: null,
  credential_of: "project",
  sessions: ["user"],
  direct: ["list_issues"],
  state: "ready",
  credential: {
    origin: "https://mcp.example.com",
    updated_at: AT,
    updated_by: "0193b3c4-0000-7000-8000-000000000002",
  },
  sign_in: null,
  usable: 12,
  to_accept: 0,
  left_out: [],
  left_out_total: 0,
  failure: null,
  refreshed_at: AT,
};

const catalogue = {
  slug: "linear",
  pin: PIN,
  refreshed_at: AT,
  accepted_at: null,
  accepted_by: null,
  failure: null,
  removed: [],
  tools: [
    {
      name: "list_issues",
      shown: "linear_list_issues",
      description: "Lists the issues of a team.",
      input_schema: { type: "object", properties: { team: { type: "string" } } },
      request: null,
      policy: "allow",
      rule: "list_*",
      state: "new",
      accepted: null,
    },
  ],
  left_out: [],
  left_out_total: 0,
};

export const CONNECTOR_EXAMPLES = {
  "connectors.list": {
    summary:
      "List a project's connectors, what each of them needs, and the errors of their manifest entries.",
    response: { connectors: [connector], default_policy: "ask", errors: [] },
  },
  "connectors.putCredential": {
    summary: "Store a connector's credential for the origin of its URL, and fetch its tools.",
    request: { value: "example-credential" },
    response: connector,
  },
  "connectors.authorize": {
    summary: "Begin a sign-in at a connector's server, for the person who asks.",
    response: {
      url: "https://platform.example.com/dashboard/connectors/hM3bq0mZc1uYw9xX7o2Kf4vT8sJ6dLrAeNpQiGtUyRk",
      expires_at: AT,
    },
  },
  "connectors.deleteCredential": {
    summary:
      "Delete a connector's credential and tokens, and revoke the tokens at the server if it offers that.",
  },
  "connectors.catalogue": {
    summary: "Show the tools of a connector: as last seen, and what was accepted of them.",
    response: catalogue,
  },
  "connectors.changeCatalogue": {
    summary: "Fetch a connector's tools again, or accept those with the given pin.",
    request: { action: "accept", pin: PIN },
    response: catalogue,
  },
  "connectors.calls": {
    summary: "List the calls of agents to connectors, newest first.",
    response: {
      calls: [
        {
          id: "0193b3c4-0000-7000-8000-000000000001",
          session_id: "0193b3c4-0000-7000-8000-000000000003",
          user_id: "0193b3c4-0000-7000-8000-000000000002",
          started_by: "user",
          connector: "linear",
          tool: "list_issues",
          origin: "https://mcp.example.com",
          pin: PIN,
          rule: "list_*",
          arguments_digest: PIN,
          arguments_bytes: 15,
          arguments_preview: '{"team":"core"}',
          at: AT,
          begun_at: null,
          approver: null,
          ended_at: AT,
          outcome: "ok",
          message: null,
          upstream_status: 200,
          result_bytes: 512,
        },
      ],
      next_cursor: null,
    },
  },
};
