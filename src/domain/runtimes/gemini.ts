import type { Runtime } from "./runtime.ts";

/** Gemini CLI. */
export const GEMINI: Runtime = {
  name: "gemini",
  adapter: "acp",
  command: ["gemini", "--acp"],
  packaged: {
    name: "@google/gemini-cli",
    beside: null,
    command: ["{node}", "{own}/@google/gemini-cli/bundle/gemini.js", "--acp"],
    variables: {},
  },
  isOneFile: false,
  takesCommand: false,
  variables: {
    // In a folder that it does not trust, it has no tools of MCP servers.
    GEMINI_CLI_TRUST_WORKSPACE: "true",
    // Its second process would outlive the first.
    GEMINI_CLI_NO_RELAUNCH: "true",
  },
  models: "own",
  modelVariable: "GEMINI_MODEL",
  providers: {
    kinds: ["gemini"],
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    variables: { GOOGLE_GEMINI_BASE_URL: "{url}", GEMINI_API_KEY: "{key}", GEMINI_MODEL: "{model}" },
  },
  modes: ["default", "autoEdit", "yolo", "plan"],
  mode: null,
  permissions: ["ask", "allow"],
  instructions: true,
  conversation: true,
};
