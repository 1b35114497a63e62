/** Examples of the connectors' operations. */
import type { Examples } from "../../http/api/examples/example.ts";

const PIN = "6f1c0e2d9b7a4c3e8d5f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f";

export const CONNECTOR_EXAMPLES: Examples = {
  nouns: {
    connector: {
      slug: "linear",
      url: "https://mcp.example.com/mcp",
      auth: "bearer",
      direct: ["list_issues"],
      credential: {},
      usable: 12,
      to_accept: 0,
    },
    catalogue: {
      slug: "linear",
      pin: PIN,
      removed: [],
      tools: [
        {
          name: "list_issues",
          shown: "linear_list_issues",
          description: "Lists the issues of a team.",
          input_schema: { type: "object", properties: { team: { type: "string" } } },
          rule: "list_*",
          state: "new",
        },
      ],
    },
    executorcall: {
      connector: "linear",
      tool: "list_issues",
      pin: PIN,
      rule: "list_*",
      arguments_digest: PIN,
      arguments_bytes: 15,
      arguments_preview: '{"team":"core"}',
      begun_at: null,
      outcome: "ok",
      upstream_status: 200,
      result_bytes: 512,
    },
  },
  operations: {
    "connectors.list": {
      summary:
        "List a project's connectors, what each of them needs, and the errors of their manifest entries.",
      response: { default_policy: "ask" },
    },
    "connectors.putCredential": {
      summary: "Store a connector's credential for the origin of its URL, and fetch its tools.",
      request: { value: "example-credential" },
    },
    "connectors.authorize": {
      summary: "Begin a sign-in at a connector's server, for the person who asks.",
      response: {
        url: "https://platform.example.com/dashboard/connectors/hM3bq0mZc1uYw9xX7o2Kf4vT8sJ6dLrAeNpQiGtUyRk",
      },
    },
    "connectors.deleteCredential":
      "Delete a connector's credential and tokens, and revoke the tokens at the server if it offers that.",
    "connectors.catalogue": "Show the tools of a connector: as last seen, and what was accepted of them.",
    "connectors.changeCatalogue": {
      summary: "Fetch a connector's tools again, or accept those with the given pin.",
      request: { action: "accept", pin: PIN },
      response: { tools: [{ state: "accepted" }] },
    },
    "connectors.calls": "List the calls of agents to connectors, newest first.",
  },
};
