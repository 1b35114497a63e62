/** The form that adds a secret, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";
import { having } from "../states/state-of-a-page.ts";

const API = `/v1/projects/${PROJECT_ID}`;
const PROJECT = `#/projects/${PROJECT_ID}`;

export const SECRET_ACTIONS: readonly Action[] = [
  {
    name: "adds a secret",
    hash: `${PROJECT}/secrets`,
    shows: "form",
    does: async ({ write, press }) => {
      await write("Name", "NPM_TOKEN");
      await write("Value", "a long value");
      await press("Add the secret");
    },
    writes: `PUT ${API}/secrets/NPM_TOKEN {"value":"a long value","try":true}`,
    tells: "NPM_TOKEN is set.",
  },
  {
    name: "keeps a secret to the service",
    hash: `${PROJECT}/secrets`,
    shows: "form",
    does: async ({ write, press }, page) => {
      await write("Name", "HOOK_SECRET");
      await write("Value", "a long value");
      await page.getByLabel("Keep it to the service").check();
      await press("Add the secret");
    },
    writes: `PUT ${API}/secrets/HOOK_SECRET {"value":"a long value","service":true,"try":true}`,
    tells: "HOOK_SECRET is set.",
  },
  {
    name: "replaces a secret by its name, after a warning",
    hash: `${PROJECT}/secrets`,
    shows: ".row",
    change: having(() => ({ secrets: ["NPM_TOKEN"] })),
    does: async ({ write, press }, page) => {
      await write("Name", "NPM_TOKEN");
      await page.getByText("This replaces the value of NPM_TOKEN.").waitFor();
      await write("Value", "another value");
      await press("Add the secret");
    },
    writes: `PUT ${API}/secrets/NPM_TOKEN {"value":"another value","try":true}`,
    tells: "The value of NPM_TOKEN is replaced.",
    gone: "This replaces the value of NPM_TOKEN.",
  },
];
