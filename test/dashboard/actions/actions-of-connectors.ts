/** The actions of an owner with a project's connectors, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { withWaitingCall } from "../states/states-of-connectors.ts";

const CONNECTORS = `#/projects/${PROJECT_ID}/connectors`;
const ONE = `${CONNECTORS}/linear`;
const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const CALL = `/v1/projects/${PROJECT_ID}/approvals/01995f2c-1e5b-7b0e-8a44-b7d15c2a9e11`;
const API = `/v1/projects/${PROJECT_ID}/connectors`;

const inList = { hash: CONNECTORS, shows: ".row" };
const onOne = { hash: ONE, shows: ".row" };

export const CONNECTOR_ACTIONS: readonly Action[] = [
  {
    name: "approves a call that waits",
    hash: SESSION,
    shows: ".ends > .item",
    change: withWaitingCall,
    does: ({ press }) => press("Approve: linear create_issue"),
    writes: `POST ${CALL}/approve `,
    tells: "linear create_issue is approved. The agent gets the result.",
    gone: "The agent asks to call",
  },
  {
    name: "denies a call that waits, with a reason",
    hash: SESSION,
    shows: ".ends > .item",
    change: withWaitingCall,
    does: async ({ press, write }) => {
      await write("Reason for the agent (optional, sent with a denial)", "Not in this team.");
      await press("Deny: linear create_issue");
    },
    writes: `POST ${CALL}/deny {"reason":"Not in this team."}`,
    tells: "linear create_issue is denied.",
    gone: "The agent asks to call",
  },
  {
    name: "looks at the hidden values of a call",
    hash: CONNECTORS,
    shows: ".callout pre",
    change: withWaitingCall,
    does: ({ press }) => press("Show hidden values: linear create_issue"),
    tells: "The server gets these values.",
  },
  {
    name: "denies a call with a reason",
    hash: CONNECTORS,
    shows: ".callout pre",
    change: withWaitingCall,
    does: async ({ press, write }) => {
      await press("Deny: linear create_issue");
      await write("Reason", "Not in this team.");
      await press("Deny");
    },
    writes: `POST ${CALL}/deny {"reason":"Not in this team."}`,
    tells: "linear create_issue is denied.",
    gone: "The agent asks to call",
  },
  {
    name: "stores the credential of a connector",
    ...inList,
    does: async ({ press, write }) => {
      await press("Store the credential: sentry");
      await write("Credential", "typed-once");
      await press("Store");
    },
    writes: `PUT ${API}/sentry/credential {"value":"typed-once"}`,
    tells: "The credential is stored.",
  },
  {
    name: "signs in to a connector",
    ...inList,
    does: ({ press }) => press("Sign in again: tracker"),
    writes: `POST ${API}/tracker/authorize `,
    gone: "The connector",
  },
  {
    name: "stores the client of a connector",
    ...inList,
    does: async ({ press, write }) => {
      await press("Store a client: errors");
      await write("Client id (empty: as platform.toml says)", "platform");
      await write("Client secret", "typed-once");
      await press("Store");
    },
    writes: `PUT ${API}/errors/credential {"value":"typed-once","client_id":"platform"}`,
    tells: "The client is stored. Sign in now.",
  },
  {
    name: "fetches the tools of a connector again",
    ...onOne,
    does: ({ press }) => press("Fetch the tools again: linear"),
    writes: `POST ${API}/linear/catalogue {"action":"refresh"}`,
    tells: "The tools are fetched.",
  },
  {
    name: "accepts the tools that are shown",
    ...onOne,
    does: ({ press }) => press("Accept these tools: linear"),
    writes: `POST ${API}/linear/catalogue {"action":"accept","pin":"6f1c0e2d9a"}`,
    tells: "The tools are accepted.",
  },
  {
    name: "deletes the credential of a connector",
    ...onOne,
    does: async ({ press }) => {
      await press("Delete the credential: linear");
      await press("Delete");
    },
    writes: `DELETE ${API}/linear/credential `,
    tells: "The credential was deleted.",
  },
];
