/** `platform sessions agents`: the agents of a project, each with its runtime. */
import { endpoint } from "../endpoint/endpoint.ts";

export const agents = endpoint("GET /v1/projects/:pid/session-options", {
  name: "sessions agents",
  about: "List the agents that a session may have, with their runtimes",
  notes: "An agent is a table in platform.toml, or a file in the agent config directory.",
  rows: "agent_choices",
  columns: {
    AGENT: "name",
    RUNTIME: ({ runtime }) => runtime ?? "cannot start",
    MODEL: "model",
    MODE: "mode",
    EFFORT: "effort",
    PERMISSIONS: "permissions",
    FALLBACK: ({ fallback }) => fallback.join(", ") || null,
    PROBLEM: ({ problem }) => problem ?? "",
  },
  none: "No agents.",
});
