/** States of a project's connectors. */
import type { World } from "./fake-service.ts";
import { PROJECT_ID } from "./sample-project.ts";
import { pressed, type State, unfolded } from "./state-of-a-page.ts";
import { withRole } from "./states-of-people.ts";

const CONNECTORS = `#/projects/${PROJECT_ID}/connectors`;
const ONE = `${CONNECTORS}/linear`;

const none = (world: World): void => {
  world.connectors = [];
  world.connectorErrors = [];
  world.calls = [];
};

export const STATES_OF_CONNECTORS: readonly State[] = [
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
