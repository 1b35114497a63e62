import type { Runtime } from "./runtime.ts";

/** Codex, by the adapter `@agentclientprotocol/codex-acp`. */
export const CODEX: Runtime = {
  name: "codex",
  adapter: "acp",
  command: ["codex-acp"],
  packaged: {
    name: "@openai/codex",
    beside: { name: "@agentclientprotocol/codex-acp", version: "2.6.0" },
    command: ["{node}", "{beside}/@agentclientprotocol/codex-acp/dist/index.js"],
    variables: {
      CODEX_PATH: "{own}/@openai/codex-linux-{arch}/vendor/{machine}-unknown-linux-musl/bin/codex",
    },
  },
  isOneFile: false,
  takesCommand: false,
  variables: {
    NO_BROWSER: "1",
    // In each other mode it starts a sandbox of its own for a command, which our sandboxes forbid. So it cannot ask either.
    INITIAL_AGENT_MODE: "agent-full-access",
  },
  models: "own",
  modelVariable: null,
  // It asks for a file of models, which the platform does not write.
  providers: null,
  modes: ["agent-full-access"],
  mode: null,
  permissions: ["allow"],
  instructions: true,
  conversation: true,
};
