import { NO_QUESTIONS, NO_SUBAGENTS } from "./protocol.ts";
import type { Runtime } from "./runtime.ts";

/** Any program that speaks the Agent Client Protocol. */
export const ACP: Runtime = {
  name: "acp",
  adapter: "acp",
  command: null,
  packaged: null,
  isOneFile: false,
  takesCommand: true,
  // The program may be Claude Code, which repeats a call for three minutes even if its key is refused.
  variables: { CLAUDE_CODE_MAX_RETRIES: "2" },
  files: {},
  history: null,
  models: "own",
  modelVariable: null,
  efforts: true,
  providers: null,
  subscription: null,
  commandFiles: null,
  takesServers: true,
  modes: "any",
  mode: null,
  plan: { mode: "plan", next: [] },
  permissions: ["ask", "allow"],
  instructions: true,
  conversation: true,
  lacks: { questions: NO_QUESTIONS, subagents: NO_SUBAGENTS },
};
