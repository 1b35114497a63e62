/** The actions of an owner with a project's connectors, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { PROJECT_ID } from "./sample-project.ts";

const CONNECTORS = `#/projects/${PROJECT_ID}/connectors`;
const ONE = `${CONNECTORS}/linear`;
const API = `/v1/projects/${PROJECT_ID}/connectors`;

export const CONNECTOR_ACTIONS: readonly Action[] = [
  {
    name: "stores the credential of a connector",
    hash: CONNECTORS,
    shows: ".row",
    does: async ({ press, write }) => {
      await press("Store the credential: sentry");
      await write("Credential", "typed-once");
      await press("Store");
    },
    writes: `PUT ${API}/sentry/credential {"value":"typed-once"}`,
    tells: "The credential is stored.",
  },
  {
    name: "fetches the tools of a connector again",
    hash: ONE,
    shows: ".row",
    does: ({ press }) => press("Fetch the tools again: linear"),
    writes: `POST ${API}/linear/catalogue {"action":"refresh"}`,
    tells: "The tools are fetched.",
  },
  {
    name: "accepts the tools that are shown",
    hash: ONE,
    shows: ".row",
    does: ({ press }) => press("Accept these tools: linear"),
    writes: `POST ${API}/linear/catalogue {"action":"accept","pin":"6f1c0e2d9a"}`,
    tells: "The tools are accepted.",
  },
  {
    name: "deletes the credential of a connector",
    hash: ONE,
    shows: ".row",
    does: async ({ press }) => {
      await press("Delete the credential: linear");
      await press("Delete");
    },
    writes: `DELETE ${API}/linear/credential `,
    tells: "The credential was deleted.",
  },
];
