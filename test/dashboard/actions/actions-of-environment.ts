/** The actions of a person with the builds of a project's environment, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { NEW_BUILD_ID } from "../fakes/fake-environment.ts";
import { BUILD_ID } from "../samples/sample-environment.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";
import { isReady, withEnvironment } from "../states/states-of-environment.ts";

const API = `/v1/projects/${PROJECT_ID}/environment`;
const ENVIRONMENT = `#/projects/${PROJECT_ID}/environment`;

const here = { hash: ENVIRONMENT, shows: ".row" };

export const ENVIRONMENT_ACTIONS: readonly Action[] = [
  {
    name: "builds the Dockerfile anew",
    ...here,
    change: isReady,
    does: ({ press }) => press("Build again"),
    writes: `POST ${API}/builds `,
    leads: `${ENVIRONMENT}/builds/${NEW_BUILD_ID}`,
    tells: "waits for its place on the node",
  },
  {
    name: "cancels a build",
    ...here,
    does: async ({ press }) => {
      await press("Cancel");
      await press("Cancel the build");
    },
    writes: `POST ${API}/builds/${BUILD_ID}/cancel `,
    tells: "The build was cancelled.",
  },
  {
    name: "keeps a build",
    hash: `${ENVIRONMENT}/builds/${BUILD_ID}`,
    shows: ".pieces > span",
    does: async ({ press }) => {
      await press("Cancel");
      await press("Keep building");
    },
    tells: "Get:1 http://packages.example/debian",
  },
  {
    name: "goes from the environment to the log of its build",
    ...here,
    does: ({ press }) => press("Show the log"),
    leads: `${ENVIRONMENT}/builds/${BUILD_ID}`,
  },
  {
    name: "copies the lines of a first Dockerfile",
    hash: ENVIRONMENT,
    shows: ".block",
    change: withEnvironment({ kind: "machine" }),
    does: ({ press }) => press("Copy the Dockerfile"),
    tells: /Copied\.|does not copy/,
  },
];
