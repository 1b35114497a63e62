/** `platform approvals`: calls of agents that wait for a person. */
import type { Answer } from "../../cli/contract.ts";
import { choices, endpoint } from "../../cli/endpoint/endpoint.ts";
import { safeLine } from "../../cli/terminal.ts";

const decisionText = ({
  connector,
  tool,
  status,
}: Answer<"POST /v1/projects/:pid/approvals/:id/deny">): string =>
  safeLine(`${connector} ${tool}: ${status}`);

export const approvalCommands = [
  endpoint("GET /v1/projects/:pid/approvals", {
    name: "approvals list",
    about: "List calls of agents that wait for a person, with their arguments",
    options: {
      state: {
        value: "STATE",
        about: `Another state than pending: ${choices("GET /v1/projects/:pid/approvals", "status").join(", ")}`,
        sets: "status",
        otherwise: "pending",
      },
      session: { value: "SESSION", about: "Only calls of this session", sets: "session_id" },
      "show-hidden": {
        about: "Show the values of fields that look like secrets",
        sets: "hidden",
        to: "show",
      },
    },
    rows: "approvals",
    columns: {
      CALL: "id",
      ASKED: "asked_at",
      CONNECTOR: "connector",
      TOOL: "tool",
      SESSION: "session_id",
      "ARGUMENTS OR REASON": ({ arguments: sent, reason, status }) =>
        sent === null ? (reason ?? status) : JSON.stringify(sent),
    },
    none: "No calls.",
  }),
  endpoint("POST /v1/projects/:pid/approvals/:id/approve", {
    name: "approvals approve",
    about: "Approve a call: the service performs it once",
    takes: ["CALL"],
    shows: decisionText,
  }),
  endpoint("POST /v1/projects/:pid/approvals/:id/deny", {
    name: "approvals deny",
    about: "Deny a call: it is not made",
    takes: ["CALL"],
    options: { reason: { value: "TEXT", about: "Why, for the agent" } },
    shows: decisionText,
  }),
];
