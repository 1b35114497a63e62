/** The rows of the commands about connectors (rows.ts). */
import { expect } from "vitest";
import { ID, NOWHERE, notFound, type Row, type World } from "./row.ts";
import { signInProject } from "./sign-in-project.ts";
import { waitingApprovals } from "./waiting-approvals.ts";

export const connectorRowsOf = (world: World): Readonly<Record<string, Row>> => {
  const waitingApproval = waitingApprovals(() => world.service);
  const signIn = signInProject(() => world.service);
  return {
    "connectors authorize": {
      args: async () => ["tracker", "--project", await signIn()],
      human: /^http:\/\/127\.0\.0\.1:\d+\/dashboard\/connectors\/[\w-]{43}\n$/,
      json: { url: expect.stringContaining("/dashboard/connectors/") },
      refused: [["wiki"], 5, /needs no sign-in/],
    },
    "connectors list": {
      args: () => [],
      human:
        /^SLUG +KIND +STATE +CREDENTIAL +TOOLS +TO ACCEPT +FETCHED +SERVER OR FAILURE\nwiki +mcp +\w+ +project +\d+ +\d+ .*127\.0\.0\.1:\d+\/mcp\n$/,
      json: "/connectors",
      refused: [["--project", NOWHERE], 4, notFound("Project")],
    },
    "connectors set-credential": {
      args: () => ["wiki"],
      input: "canary-credential\n",
      human: /^wiki: (?:needs_acceptance|ready)\.\n$/,
      json: { slug: "wiki" },
      refused: [["none"], 4, notFound("Connector")],
    },
    "connectors tools": {
      args: async () => (await world.connectedPin(), ["wiki"]),
      human:
        /^TOOL +STATE +POLICY +DESCRIPTION\nread +(?:new|accepted) +ask +Reads a page\.\npin: [0-9a-f]{64}\n$/,
      json: "/connectors/wiki/catalogue",
      refused: [["none"], 4, notFound("Connector")],
    },
    "connectors refresh": {
      args: async () => (await world.connectedPin(), ["wiki"]),
      human: /^TOOL +STATE .*\nread +/,
      json: { slug: "wiki", failure: null },
      refused: [["none"], 4, notFound("Connector")],
    },
    "connectors accept": {
      args: async () => ["wiki", await world.connectedPin()],
      human: /^1 tool of wiki accepted\n$/,
      json: { slug: "wiki", removed: [] },
      refused: [["wiki", "0"], 5, /are not those that you looked at/],
    },
    "connectors delete-credential": {
      args: async () => (await world.connectedPin(), ["wiki"]),
      human: /^The credential of wiki is deleted\.\n$/,
      json: {},
      refused: [["none"], 4, notFound("Credential")],
    },
    "approvals list": {
      args: async () => ["--show-hidden", "--project", (await waitingApproval())[0]],
      human: new RegExp(
        `^CALL +ASKED +CONNECTOR +TOOL +SESSION +ARGUMENTS OR REASON\n(?:${ID} .* wiki +read +${ID} +{"page":"home"}\n)+$`,
      ),
      json: { next_cursor: null },
      refused: [["--state", "open"], 2, /^--state must be one of pending, approved/],
    },
    "approvals approve": {
      args: async () => ["--project", ...(await waitingApproval())],
      human: /^wiki read: approved\n$/,
      json: { status: "approved" },
      refused: [[NOWHERE], 4, notFound("Approval")],
    },
    "approvals deny": {
      args: async () => ["--project", ...(await waitingApproval()), "--reason", "Not now."],
      human: /^wiki read: denied\n$/,
      json: { status: "denied", reason: "Not now." },
      refused: [[NOWHERE], 4, notFound("Approval")],
    },
    calls: {
      args: () => ["--limit", "1"],
      human: /^No calls\.\n$/,
      json: "/executor/calls?limit=1",
      refused: [["--cursor", "x"], 1, /cursor/],
    },
  };
};
