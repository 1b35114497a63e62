import { PROVIDER_KINDS } from "../sandbox/account-provider.ts";
import type { Runtime } from "./runtime.ts";

/** opencode, by its own HTTP API. It reads `<config_dir>/agents/<name>.md` by itself. */
export const OPENCODE: Runtime = {
  name: "opencode",
  adapter: "opencode",
  command: ["opencode", "serve", "--hostname", "127.0.0.1", "--port", "4096"],
  packaged: null,
  isOneFile: true,
  takesCommand: false,
  variables: {},
  files: {},
  // By its own API it gets the conversation from the items that the service keeps.
  history: [".local/share/opencode/opencode.db", ".local/share/opencode/opencode.db-wal"],
  models: "platform",
  modelVariable: null,
  efforts: true,
  providers: { kinds: PROVIDER_KINDS, keys: [], variables: {}, list: null },
  subscription: null,
  commandFiles: String.raw`^\.opencode/commands?/(\S+)\.md$`,
  takesServers: false,
  modes: ["build", "plan"],
  mode: null,
  plan: { mode: "plan", next: ["build"] },
  permissions: ["ask", "allow"],
  instructions: true,
  conversation: true,
  lacks: {},
};
