import { NO_QUESTIONS, NO_SUBAGENTS } from "./protocol.ts";
import type { Runtime } from "./runtime.ts";

/** Whichever way it signs in. */
const SETTINGS = {
  // It reads them in a directory without AGENTS.md.
  project_doc_fallback_filenames: ["CLAUDE.md"],
  check_for_update_on_startup: false,
  features: { plugins: false, apps: false },
  analytics: { enabled: false },
};

/** Codex, by the adapter `@agentclientprotocol/codex-acp`. */
export const CODEX: Runtime = {
  name: "codex",
  adapter: "acp",
  command: ["codex-acp"],
  packaged: {
    name: "@openai/codex",
    beside: { name: "@agentclientprotocol/codex-acp", version: "2.6.0" },
    command: [
      "sh",
      "-c",
      [
        // It lists the models of a catalog that its own file names, and starts each of any other.
        'if [ -e "$0" ] && [ ! -e "$HOME/.codex/config.toml" ]; then',
        '  mkdir -p "$HOME/.codex" && echo "model_catalog_json = \\"$0\\"" > "$HOME/.codex/config.toml"',
        "fi",
        'exec "$@"',
      ].join("\n"),
      "{files}/codex-models.json",
      "{node}",
      "{beside}/@agentclientprotocol/codex-acp/dist/index.js",
    ],
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
  files: {},
  history: [".codex/sessions/*/*/*/rollout-*-{id}.jsonl"],
  models: "own",
  modelVariable: null,
  efforts: true,
  providers: {
    // Other servers with OpenAI's API often lack the part that it uses.
    kinds: ["openai"],
    keys: ["OPENAI_API_KEY", "CODEX_API_KEY"],
    variables: {
      PLATFORM_MODEL_KEY: "{key}",
      CODEX_CONFIG: JSON.stringify({
        model: "{model}",
        model_provider: "platform",
        model_catalog_json: "{files}/codex-models.json",
        ...SETTINGS,
        model_providers: {
          platform: {
            name: "Platform",
            base_url: "{url}",
            env_key: "PLATFORM_MODEL_KEY",
            wire_api: "responses",
            request_max_retries: 1,
            stream_max_retries: 0,
          },
        },
      }),
    },
    // Without an entry, each turn begins with a warning. A field that is missing is told as a key that is missing.
    list: {
      file: "codex-models.json",
      field: "models",
      entry: {
        slug: "{model}",
        display_name: "{model}",
        base_instructions: "You are a coding agent.",
        shell_type: "unified_exec",
        apply_patch_tool_type: "freeform",
        visibility: "list",
        supported_in_api: true,
        priority: 1,
        default_reasoning_level: "medium",
        supported_reasoning_levels: ["low", "medium", "high"].map((effort) => ({
          effort,
          description: effort,
        })),
        support_verbosity: false,
        truncation_policy: { mode: "tokens", limit: 10_000 },
        context_window: 200_000,
        input_modalities: ["text", "image"],
        experimental_supported_tools: [],
      },
    },
  },
  subscription: {
    title: "ChatGPT subscription",
    how: "codex login --device-auth",
    token: null,
    file: {
      path: ".codex/auth.json",
      needs: [
        ["tokens", "access_token"],
        ["tokens", "refresh_token"],
      ],
      renewed: { at: ["last_refresh"], keeps: ["tokens", "account_id"] },
    },
    variables: { CODEX_CONFIG: JSON.stringify(SETTINGS) },
    files: {},
    traces: [],
    hosts: ["chatgpt.com", "auth.openai.com"],
  },
  commandFiles: null,
  takesServers: true,
  modes: ["agent-full-access"],
  mode: null,
  plan: null,
  permissions: ["allow"],
  instructions: true,
  conversation: true,
  lacks: {
    questions: NO_QUESTIONS,
    subagents: NO_SUBAGENTS,
    permissions:
      "Codex asks only in a sandbox of its own, which the platform's sandboxes forbid. It runs each command without asking.",
    plans:
      "Codex has one mode here, in which it works. Each other one starts a sandbox of its own, which the platform's sandboxes forbid.",
    commands: "Codex has its own commands only: a project cannot add one.",
    stops_commands:
      "Codex ends the turn when it is stopped, and lets the command go on until it ends by itself.",
  },
};
