import { NO_QUESTIONS } from "./protocol.ts";
import type { Runtime } from "./runtime.ts";

/** Claude Code, by the adapter `@agentclientprotocol/claude-agent-acp`. */
export const CLAUDE_CODE: Runtime = {
  name: "claude-code",
  adapter: "acp",
  command: ["claude-agent-acp"],
  packaged: {
    name: "@anthropic-ai/claude-code",
    beside: { name: "@agentclientprotocol/claude-agent-acp", version: "0.101.0" },
    command: ["{node}", "{beside}/@agentclientprotocol/claude-agent-acp/dist/index.js"],
    variables: { CLAUDE_CODE_EXECUTABLE: "{own}/@anthropic-ai/claude-code-linux-{arch}/claude" },
  },
  isOneFile: false,
  takesCommand: false,
  variables: {
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    // Without this, tools of MCP servers are hidden behind a search.
    ENABLE_TOOL_SEARCH: "false",
    // By itself it repeats a call for three minutes, even if its key is refused.
    CLAUDE_CODE_MAX_RETRIES: "2",
    // A suggestion costs the whole context after each turn, and is not shown.
    CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: "false",
  },
  files: {},
  history: [".claude/projects/*/{id}.jsonl"],
  models: "own",
  modelVariable: "ANTHROPIC_MODEL",
  efforts: true,
  providers: {
    kinds: ["anthropic"],
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    variables: {
      ANTHROPIC_BASE_URL: "{url}",
      ANTHROPIC_API_KEY: "{key}",
      ANTHROPIC_MODEL: "{model}",
      // It takes no model beyond its own list without this.
      ANTHROPIC_CUSTOM_MODEL_OPTION: "{model}",
      // It offers no effort for a model that it does not know.
      ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES: "effort",
      // It names conversations with a model of its own choice, which another provider may lack.
      ANTHROPIC_DEFAULT_HAIKU_MODEL: "{model}",
    },
    list: null,
  },
  subscription: {
    title: "Claude subscription",
    how: "claude setup-token",
    token: { variable: "CLAUDE_CODE_OAUTH_TOKEN", begins: "sk-ant-oat" },
    file: null,
    variables: {},
    files: {},
    traces: [],
    hosts: ["api.anthropic.com"],
  },
  commandFiles: String.raw`^\.claude/commands/(?:.*/)?([^\s/]+)\.md$`,
  takesServers: true,
  modes: ["default", "acceptEdits", "plan", "auto"],
  // By itself it is in the mode auto, in which a model decides what is allowed.
  mode: "default",
  plan: { mode: "plan", next: ["default", "acceptEdits", "auto"] },
  permissions: ["ask", "allow"],
  instructions: true,
  conversation: true,
  lacks: {
    questions: NO_QUESTIONS,
    model_changes:
      "Claude Code takes one model of an account's provider, the one that its session began with. Begin another session to change it.",
  },
};
