/** `platform approvals`: calls of agents that wait for a person. */
import type { ApprovalState } from "./rules/approval.ts";
import { command } from "../../cli/command.ts";
import { table, time, visible } from "../../cli/terminal.ts";
import { anyId, oneOf } from "../../cli/words.ts";
import { page, pageOptions, pageOutcome } from "../../cli/commands/lists.ts";

const CALL = "CALL";

const STATES = Object.keys({
  pending: true,
  approved: true,
  calling: true,
  done: true,
  denied: true,
  refused: true,
  expired: true,
  unknown: true,
} satisfies Readonly<Record<ApprovalState, true>>) as readonly ApprovalState[];

const list = command({
  name: "approvals list",
  about: "List calls of agents that wait for a person, with their arguments",
  inProject: true,
  options: {
    state: { value: "STATE", about: `Another state than pending: ${STATES.join(", ")}` },
    session: { value: "SESSION", about: "Only calls of this session" },
    "show-hidden": { about: "Show the values of fields that look like secrets" },
    ...pageOptions,
  },
  run: async ({ options, note, api, project }) => {
    const { state, session, "show-hidden": showHidden } = options;
    const answered = await api().call("GET /v1/projects/:pid/approvals", {
      params: { pid: await project() },
      query: {
        ...page(options),
        status: oneOf(state, STATES, "--state") ?? "pending",
        ...(session !== undefined && { session_id: anyId(session, "--session") }),
        ...(showHidden && { hidden: "show" as const }),
      },
    });
    const rows = answered.value.approvals.map((one) => [
      one.id,
      time(one.asked_at),
      one.connector,
      one.tool,
      one.session_id,
      one.arguments === null ? (one.reason ?? one.status) : JSON.stringify(one.arguments),
    ]);
    const columns = ["CALL", "ASKED", "CONNECTOR", "TOOL", "SESSION", "ARGUMENTS OR REASON"];
    return pageOutcome(answered, table(columns, rows, "No calls."), note);
  },
});

const approve = command({
  name: "approvals approve",
  about: "Approve a call: the service performs it once",
  takes: [CALL],
  inProject: true,
  run: async ({ given, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/approvals/:id/approve", {
      params: { pid: await project(), id: anyId(given.CALL, CALL) },
    });
    return { json: text, text: visible(`${value.connector} ${value.tool}: ${value.status}`) };
  },
});

const deny = command({
  name: "approvals deny",
  about: "Deny a call: it is not made",
  takes: [CALL],
  inProject: true,
  options: { reason: { value: "TEXT", about: "Why, for the agent" } },
  run: async ({ given, options: { reason }, api, project }) => {
    const { value, text } = await api().call("POST /v1/projects/:pid/approvals/:id/deny", {
      params: { pid: await project(), id: anyId(given.CALL, CALL) },
      payload: reason === undefined ? {} : { reason },
    });
    return { json: text, text: visible(`${value.connector} ${value.tool}: ${value.status}`) };
  },
});

export const approvalCommands = [list, approve, deny];
