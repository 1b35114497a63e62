import { NO_QUESTIONS, NO_SUBAGENTS } from "./protocol.ts";
import type { Runtime } from "./runtime.ts";

/** @param selectedType how it signs in. Without this it asks, whatever key it has. */
const settingsFor = (selectedType: string): string =>
  JSON.stringify({
    security: { auth: { selectedType } },
    // By itself it repeats a refused call for minutes.
    general: { enableAutoUpdate: false, maxAttempts: 2 },
    privacy: { usageStatisticsEnabled: false },
    // By itself it reads the first of them only.
    context: { fileName: ["GEMINI.md", "AGENTS.md", "CLAUDE.md"] },
  });

/** Gemini CLI. */
export const GEMINI: Runtime = {
  name: "gemini",
  adapter: "acp",
  command: ["gemini", "--acp"],
  packaged: {
    name: "@google/gemini-cli",
    beside: null,
    command: [
      "sh",
      "-c",
      [
        // It reads no settings of another user than itself and root.
        'mkdir -p "$HOME/.gemini" && [ -e "$HOME/.gemini/settings.json" ] || cat "$0" > "$HOME/.gemini/settings.json"',
        // To open a conversation again, it begins a file of the same name in the same minute, over the one that it looks for. It goes on in
        // the file that it has found, and leaves the new one almost empty.
        'for chat in "$HOME"/.gemini/tmp/*/chats/session-*.jsonl; do',
        '  earlier="${chat%/*}/session-2000-01-01T00-00-${chat##*-}"',
        '  if [ ! -f "$chat" ] || [ "$chat" = "$earlier" ]; then continue; fi',
        '  if [ -f "$earlier" ] && [ "$(wc -c < "$earlier")" -gt "$(wc -c < "$chat")" ]; then rm "$chat"; else mv "$chat" "$earlier"; fi',
        "done",
        'exec "$@"',
      ].join("\n"),
      "{files}/gemini-settings.json",
      "{node}",
      "{own}/@google/gemini-cli/bundle/gemini.js",
      "--acp",
    ],
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
  files: {
    "gemini-settings.json": settingsFor("gemini-api-key"),
  },
  history: [".gemini/tmp/*/chats/session-*-{id8}.jsonl"],
  models: "own",
  modelVariable: "GEMINI_MODEL",
  efforts: false,
  providers: {
    kinds: ["gemini"],
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    variables: { GOOGLE_GEMINI_BASE_URL: "{url}", GEMINI_API_KEY: "{key}", GEMINI_MODEL: "{model}" },
    list: null,
  },
  subscription: {
    title: "Google account with Gemini",
    how: "gemini, and sign in with Google",
    token: null,
    file: {
      path: ".gemini/oauth_creds.json",
      needs: [["access_token"], ["refresh_token"]],
      renewed: { at: ["expiry_date"], keeps: ["refresh_token"] },
    },
    variables: {},
    files: { "gemini-settings.json": settingsFor("oauth-personal") },
    traces: [".gemini/settings.json"],
    hosts: ["cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "www.googleapis.com"],
  },
  commandFiles: null,
  takesServers: true,
  modes: ["default", "autoEdit", "yolo", "plan"],
  mode: null,
  plan: {
    mode: "plan",
    next: ["default", "autoEdit", "yolo"],
    asks: "Requesting plan approval for: ",
  },
  permissions: ["ask", "allow"],
  instructions: true,
  conversation: true,
  lacks: {
    questions: NO_QUESTIONS,
    subagents: NO_SUBAGENTS,
    effort_changes: "Gemini CLI has no setting for it: each model decides by itself.",
    outputs: "Gemini CLI does not tell what a command has printed.",
    exit_codes: "Gemini CLI does not tell the exit code of a command.",
    commands: "Gemini CLI has its own commands only: a project cannot add one.",
  },
};
