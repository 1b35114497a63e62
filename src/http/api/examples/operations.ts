/**
 * A one-sentence summary of each operation of the API, with an example request and answer. The OpenAPI document and the
 * page at `/docs` show them. test/http/openapi.test.ts decodes each example with the operation's own schemas.
 */

import {
  PROJECT,
  SESSION,
  FIRE,
  COMMIT,
  BASE_COMMIT,
  BEGAN,
  LATER,
  ENDS,
  project,
  projectUsage,
  upstreamProject,
  session,
  running,
  fire,
  fires,
  fired,
  triggers,
  triggersOfShop,
  conversation,
  message,
  request,
  missingSecret,
  secret,
  sandbox,
} from "./records.ts";
import { examination, serviceState } from "./service-state.ts";
import { AUDIT_EXAMPLES } from "./audit.ts";
import { IDENTITY_EXAMPLES } from "./identity.ts";
import { WORKSPACE_EXAMPLES } from "./workspace.ts";
import { MACHINE_EXAMPLES } from "./machines.ts";
import type { Examples } from "./example.ts";
import { PEOPLE_EXAMPLES } from "./people.ts";
import { SAVES_EXAMPLES } from "./saves.ts";
import { REPOSITORY_CHECK_EXAMPLES } from "./repository-check.ts";

export const OPERATION_EXAMPLES: Examples = {
  ...IDENTITY_EXAMPLES,
  "projects.list": {
    summary: "List the projects that the token reaches, newest first.",
    response: { projects: [project], next_cursor: null },
  },
  "projects.create": {
    summary: "Create a project with a repository that the service hosts, or one on another git server.",
    request: { name: "shop", repository: { kind: "hosted" } },
    response: project,
  },
  "projects.get": { summary: "Show a project.", response: project },
  "projects.update": {
    summary: "Rename, archive or reactivate a project, pause its triggers, or move its default branch.",
    request: { triggers_paused: true },
    response: { ...project, triggers_paused: true, updated_at: LATER },
  },
  "projects.delete": {
    summary:
      "Delete a project. It starts nothing more, its sessions stop, and its owners can restore it for seven days. Then everything of it is removed.",
    response: { ...project, status: "deleted", deletes_at: ENDS, updated_at: LATER },
  },
  "projects.restore": {
    summary: "Make a deleted project what it was before.",
    response: { ...project, updated_at: LATER },
  },
  "projects.replaceCredential": {
    summary: "Replace the credential that the service uses at the project's git server.",
    request: { username: "deploy", password: "a new password" },
    response: upstreamProject,
  },
  "projects.removeCredential": {
    summary: "Remove the credential that the service uses at the project's git server.",
  },
  "projects.usage": {
    summary: "Show the tokens and the cost of a project's agents, by day and model.",
    response: projectUsage,
  },
  "projects.setup": {
    summary: "Show what a project still needs before its first session.",
    response: {
      repository: {
        url: `https://agents.example.org/v1/git/${PROJECT}.git`,
        branch: "main",
        commit: null,
        empty: true,
      },
      model: { required: true, model: "anthropic/claude-sonnet-4-6", source: "secret" },
      providers: [
        {
          id: "anthropic",
          secrets: ["ANTHROPIC_API_KEY"],
          model: "anthropic/claude-sonnet-4-6",
          configured: true,
        },
      ],
    },
  },
  "projects.paths": {
    summary: "List the paths of all files of the repository, at a branch, a tag or a commit.",
    response: {
      commit: "6c1d0c54f4a4a36b8e4c1f0fd6b5e7c9aa1b2c3d",
      paths: ["README.md", "src/main.ts"],
      total: 2,
    },
  },
  "projects.sessionOptions": {
    summary: "List the branches, agents and models that a new session can have.",
    response: {
      default_branch: "main",
      branches: ["main", "release/2"],
      agents: ["reviewer"],
      agent_choices: [
        {
          name: "default",
          runtime: "opencode",
          model: null,
          mode: null,
          effort: null,
          permissions: null,
          fallback: [],
          problem: null,
        },
        {
          name: "reviewer",
          runtime: "opencode",
          model: "anthropic/claude-sonnet-4-6",
          mode: "plan",
          effort: "high",
          permissions: "ask",
          fallback: ["second"],
          problem: null,
        },
      ],
      runtimes: [
        {
          name: "opencode",
          takes_command: false,
          provider_models: [],
          models: "platform",
          modes: ["build", "plan"],
          plan_mode: "plan",
          efforts: true,
          permissions: ["ask", "allow"],
          instructions: true,
          conversation: true,
          lacks: [],
        },
      ],
      providers: [
        {
          name: "anthropic",
          kind: "anthropic",
          owner: "account",
          models: ["claude-sonnet-4-6"],
          unused: "secret",
        },
      ],
      default_model: "anthropic/claude-sonnet-4-6",
      models: ["anthropic/claude-sonnet-4-6", "openai/gpt-5.5"],
      model_choices: [
        {
          id: "anthropic/claude-sonnet-4-6",
          context: 1_000_000,
          price: { input: 3, cached: 0.3, output: 15 },
        },
      ],
    },
  },
  "projects.sync": {
    summary: "Read the manifest from the default branch now, and list the triggers.",
    response: triggers,
  },
  "operator.show": {
    summary: "Show the state of the service itself, with what is wrong first.",
    response: serviceState,
  },
  "operator.examine": {
    summary: "Start one real sandbox on this node, probe its isolation, and remove it.",
    response: examination,
  },
  "operator.resume": {
    summary: "Let a restored copy go: schedules, queues, webhooks and pushes to other servers begin.",
    response: { was_paused: true },
  },
  "sessions.create": {
    summary: "Start a session with its own branch, sandbox and agent.",
    request: { initial_prompt: session.initial_prompt, name: session.name },
    response: { ...session, warnings: [missingSecret] },
    accepted: { status: "queued", queue_id: FIRE, position: 3, expires_at: "2026-11-21T12:00:00.000Z" },
  },
  "sessions.list": {
    summary: "List a project's sessions, newest first.",
    response: { sessions: [running], next_cursor: null },
  },
  "sessions.listAll": {
    summary: "List the sessions of all projects that the token reaches, newest first.",
    response: { sessions: [running], next_cursor: null },
  },
  "sessions.get": { summary: "Show a session.", response: running },
  "sessions.changes": {
    summary:
      "Show the commits and files that a session has pushed, compared with the commit at which it began.",
    response: {
      base_commit: BASE_COMMIT,
      head_commit: COMMIT,
      commits_total: 1,
      commits: [{ sha: COMMIT, subject: "Refuse an empty cart", author_name: "agent", committed_at: LATER }],
      files_changed_total: 1,
      files_changed: [{ path: "src/checkout.ts", additions: 4, deletions: 1 }],
    },
  },
  "sessions.diff": {
    summary: "Show the diff of the work that a session has pushed.",
    response:
      "diff --git a/src/checkout.ts b/src/checkout.ts\n--- a/src/checkout.ts\n+++ b/src/checkout.ts\n@@ -1 +1,2 @@\n",
  },
  "conversation.get": {
    summary: "Show a session's conversation: the newest items first, in pages.",
    response: conversation,
  },
  "conversation.search": {
    summary: "Find what people and the agent said in a session, by words.",
    response: {
      found: [
        { item_id: message.id, at: message.created_at, text: "The checkout fails with an empty cart." },
      ],
    },
  },
  "conversation.output": { summary: "Read the whole kept output of a tool.", response: "1 test failed\n" },
  "conversation.text": { summary: "Read the whole text of an item.", response: "The checkout works.\n" },
  "messages.post": {
    summary: "Send a message to the agent. To a session that has ended, it also restarts the session.",
    request: { id: message.id, text: "Now add a test." },
    response: { message },
  },
  "messages.cancel": { summary: "Cancel a message that waits." },
  "messages.interrupt": {
    summary: "End the agent's turn. Its work so far stays, and the queue is held.",
    response: { interrupted: true },
  },
  "messages.resume": { summary: "Let the queue go on after an interrupt." },
  "messages.answer": {
    summary: "Answer a request of the agent. The first answer counts.",
    request: { choice: "once" },
    response: { request },
  },
  "messages.models": {
    summary: "List the models and agents that a running session offers.",
    response: {
      models: [
        {
          id: "anthropic/claude-sonnet-4-5",
          name: "Claude Sonnet 4.5",
          efforts: ["default", "high", "max"],
          writes_text: true,
          calls_tools: true,
          context: 1_000_000,
          price: { input: 3, cached: 0.3, output: 15 },
        },
      ],
      lacks: [],
      agents: [{ name: "build", description: "Changes files and runs commands." }],
      default_model: "anthropic/claude-sonnet-4-5",
    },
  },
  "sessions.see": { summary: "Say that you have seen what the session has to say." },
  "sessions.update": {
    summary: "Change a session's name or metadata.",
    request: { name: "Fix the checkout", metadata: { ticket: "SHOP-12" } },
    response: { ...running, metadata: { ticket: "SHOP-12" }, updated_at: LATER },
  },
  "sessions.delete": {
    summary: "Delete a session and its saved work. Its branch stays.",
  },
  ...SAVES_EXAMPLES,
  "sessions.ownCredentials": {
    summary: "Show whether the own credentials of the session's person work in it.",
    response: { connectors: ["mail"], subscription: false, suspended: null },
  },
  "sessions.giveOwnCredentials": {
    summary:
      "Give the own credentials back to a session that another person steered. For the session's person.",
  },
  "sessions.restart": {
    summary: "Start an ended session again, in a new sandbox on the same branch.",
    request: { restore_saved: true },
    response: { ...session, base_commit: BASE_COMMIT, warnings: [] },
  },
  "sessions.sandbox": {
    summary: "Show a session's newest sandbox.",
    response: sandbox,
  },
  "sessions.ports": {
    summary: "List the ports on which programs in the session's sandbox listen.",
    response: { ports: [5173] },
  },
  "sessions.terminal": {
    summary:
      "Ask whether a terminal can be opened in the session's sandbox. A WebSocket to the same address opens one: docs/use/terminal.md has its messages.",
    response: { limit: 8, kept_ms: 600_000, kept_bytes: 262_144 },
  },
  "sessions.preview": {
    summary: "Create a one-time link that opens a port of the sandbox in a browser.",
    request: { port: 3000 },
    response: {
      url: `http://p3000-${SESSION}.localhost:8080/?platform_preview=yZ3x`,
      expires_at: "2026-11-20T12:05:00.000Z",
    },
  },
  "secrets.list": {
    summary:
      "List the names of a project's secrets, and which ones its manifest declares. Values are never shown.",
    response: {
      secrets: [secret],
      declared: { required: ["OPENAI_API_KEY", "DATABASE_URL"], optional: [], missing: ["DATABASE_URL"] },
      revision: "4",
    },
  },
  "secrets.put": {
    summary: "Set a secret. Running sessions get it after their current turn.",
    request: { value: "sk-example" },
    response: secret,
  },
  "secrets.try": {
    summary: "Ask a model provider whether it accepts the key that is stored under this name.",
    response: {
      provider: "openai",
      outcome: "rejected",
      message: "api.openai.com rejects the key (401). It says: Incorrect API key provided.",
      advice: "Copy the key again from the provider's page, or make a new one there, and set it.",
    },
  },
  "secrets.delete": { summary: "Delete a secret. Running sessions lose it after their current turn." },
  "triggers.list": {
    summary: "List a project's triggers, and the errors of its manifest.",
    response: triggers,
  },
  "triggers.listAll": {
    summary: "List the triggers of all projects that you see.",
    response: { projects: [triggersOfShop], next_cursor: null },
  },
  "triggers.fire": {
    summary: "Fire a trigger by hand.",
    request: { text: "Look at the release branch.", source: "chat" },
    response: fired,
  },
  "triggers.preview": {
    summary: "Render a trigger's prompt without starting a session.",
    request: { kind: "manual", text: "Look at the release branch." },
    response: {
      prompt: "Look at the release branch.",
      variables: { message: { text: "Look at the release branch." } },
      outcome: "fires",
    },
  },
  ...REPOSITORY_CHECK_EXAMPLES,
  ...WORKSPACE_EXAMPLES,
  ...MACHINE_EXAMPLES,
  ...PEOPLE_EXAMPLES,
  ...AUDIT_EXAMPLES,
  "webhookRefusals.list": {
    summary: "List refused webhook deliveries, newest first. Bodies and signatures are not stored.",
    response: {
      webhook_refusals: [
        {
          id: FIRE,
          at: BEGAN,
          slug: "on-push",
          status: 401,
          code: "invalid_signature",
          reason: "signature_mismatched",
          delivery_id: fire.delivery_id,
          event: "push",
          declared_bytes: 7231,
          body_bytes: 7231,
          address: "192.0.2.17",
          forwarded_for: null,
        },
      ],
      next_cursor: null,
    },
  },
  "fires.ofProject": {
    summary: "List the fires of all triggers of a project, newest first.",
    response: fires,
  },
  "fires.ofTrigger": { summary: "List the fires of one trigger, newest first.", response: fires },
  "fires.get": {
    summary: "Show a fire with its request and its prompt.",
    response: {
      ...fire,
      request: {
        headers: { content_type: "application/json", user_agent: "GitHub-Hookshot/1", forwarded_for: null },
        body: '{"ref":"refs/heads/main"}',
        encoding: "utf8",
      },
      prompt: "Review the push to refs/heads/main.",
      position: null,
    },
  },
  "fires.replay": {
    summary: "Replay a fire: fire again with its request and the current trigger.",
    response: fired,
  },
  "fires.cancel": { summary: "Cancel a queued fire, or a person's request that waits." },
  "fires.queue": {
    summary: "List the account's queued fires and requests in the order in which they will start.",
    response: {
      queue: [
        {
          fire_id: FIRE,
          project_id: PROJECT,
          kind: "webhook",
          trigger_slug: "on-push",
          title: "Review the push",
          files: 0,
          person: null,
          position: 1,
          queued_at: BEGAN,
          expires_at: "2026-11-21T12:00:00.000Z",
        },
      ],
      next_cursor: null,
    },
  },
  "sandbox.cloneCredential": {
    summary: "Get a git password for the session's repository. Only the sandbox's own key can call this.",
    response: {
      repo_url: `http://platform.internal/v1/git/${PROJECT}.git`,
      auth: { type: "basic", username: "session", password: "Xq8mC0s1fH3kL5nP7rT9vW2y" },
      expires_at: ENDS,
      bootstrap: "pending",
    },
  },
};
