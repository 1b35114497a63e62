import type { Runtime } from "./runtime.ts";

/** Any HTTP server on the runtime's port. */
export const PLAIN: Runtime = {
  name: "plain",
  adapter: "plain",
  command: null,
  packaged: null,
  isOneFile: false,
  takesCommand: true,
  variables: {},
  files: {},
  history: null,
  models: null,
  modelVariable: null,
  efforts: false,
  providers: null,
  subscription: null,
  commandFiles: null,
  takesServers: false,
  modes: [],
  mode: null,
  plan: null,
  permissions: [],
  instructions: false,
  conversation: false,
  lacks: {},
};
