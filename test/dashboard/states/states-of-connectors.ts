/** States of a project's connectors. */
import { waitingCall } from "../fakes/fake-connectors.ts";
import type { World } from "../fakes/fake-service.ts";
import { PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { pressed, type State, unfolded } from "./state-of-a-page.ts";
import { withRole } from "./states-of-people.ts";

const CONNECTORS = `#/projects/${PROJECT_ID}/connectors`;
const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const ONE = `${CONNECTORS}/linear`;

const none = (world: World): void => {
  world.connectors = [];
  world.connectorErrors = [];
  world.calls = [];
};

/** An agent waits for a person's decision on a call. */
export const withWaitingCall = (world: World): void => {
  world.approvals = [waitingCall(SESSION_ID)];
};

export const STATES_OF_CONNECTORS: readonly State[] = [
  { name: "connectors-waiting", hash: CONNECTORS, shows: ".callout pre", change: withWaitingCall },
  {
    name: "session-approval",
    hash: SESSION,
    shows: ".items > .item",
    change: withWaitingCall,
    act: (page) => page.getByRole("button", { name: "Approve: linear create_issue" }).waitFor(),
  },
  { name: "connectors", hash: CONNECTORS, shows: ".row" },
  { name: "connectors-empty", hash: CONNECTORS, shows: ".empty", change: none },
  { name: "connectors-viewer", hash: CONNECTORS, shows: ".row", change: withRole("viewer") },
  {
    name: "connectors-credential",
    hash: CONNECTORS,
    shows: ".row",
    act: pressed("Store the credential: sentry"),
  },
  { name: "connector", hash: ONE, shows: ".row", act: unfolded("Arguments") },
  {
    name: "connector-unknown",
    hash: ONE,
    shows: ".empty",
    change: (world) => {
      world.catalogue = { ...world.catalogue, pin: null, refreshed_at: null, tools: [], removed: [] };
    },
  },
];
