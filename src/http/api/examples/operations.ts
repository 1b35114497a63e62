/**
 * A one-sentence summary of each operation of the API, with the part of its example that is written by hand. The OpenAPI document and the
 * page at `/docs` show them. test/http/openapi.test.ts decodes each example with the operation's own schemas.
 */
import { CONVERSATION_EXAMPLES } from "./conversation.ts";
import type { Operations } from "./example.ts";
import { MACHINE_EXAMPLES } from "./machines.ts";
import { BASE_COMMIT, comparison, DIFF, ENDS, LATER, PROJECT, PROMPT, SESSION, starting } from "./records.ts";
import { examination, serviceState } from "./service-state.ts";

const CODE = "BCDF-GHJK";
const LINES =
  "With the header Accept: application/x-ndjson, the answer is all of them, one JSON object a line.";

const check = {
  usable: false,
  default_branch: null,
  steps: [
    { step: "host", outcome: "passed", message: "The API at api.github.com answers." },
    { step: "credential", outcome: "passed", message: "The code host accepts the token." },
    {
      step: "repository",
      outcome: "failed",
      message: "The code host shows no repository acme/shop to this credential.",
      advice: "Check owner and name. A fine-grained token must list this repository.",
    },
  ],
};

const triggers = {
  errors: [
    {
      slug: "on-push",
      index: 1,
      path: "triggers[1].secret_env",
      message: "secret_env is missing.",
      line: 14,
    },
  ],
  warnings: [{}],
};

const webhookFire = {
  trigger_slug: "on-push",
  kind: "webhook",
  scheduled_for: null,
  delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  session_name: "Review the push",
  verified_with: "current",
};

const IDENTITY: Operations = {
  "identity.me": {
    summary: "Show the caller: its user, its account and its token.",
    response: { user: { role: "owner" } },
  },
  "identity.listTokens": "List the account's tokens, newest first. Secrets are not shown.",
  "identity.createToken": {
    summary: "Create a token. Its secret is in this answer and is never shown again.",
    response: { last_used_at: null, token: "platform_pat_kQ3vX0aYw1nT7uR5sB9cD2eF4gH6jK8mN0pQ2rS" },
  },
  "identity.deleteToken": "Revoke a token. Requests and connections that it opened end within a second.",
  "identity.listBrowsers": "List the browsers that the caller is signed in with, newest first.",
  "identity.endBrowsers": "Sign the caller out of all browsers. Everything they opened ends within a second.",
  "identity.endBrowser": "Sign the caller out of one browser. Everything it opened ends within a second.",
  "identity.listIdentities":
    "List what sign-in providers call the caller, the oldest first. She signs in with each of them.",
  "identity.removeIdentity":
    "Take an identity from the caller, but not her last one. Browsers that it signed in end within a second.",
  "deviceLogins.lookAtDeviceLogin": {
    summary: "Show the program that waits for a person with this code. Changes nothing.",
    request: { code: CODE },
  },
  "deviceLogins.approveDeviceLogin": {
    summary: "Sign the program in as the caller. It gets a token that reaches what the caller says.",
    request: { code: CODE, expires_at: ENDS },
  },
  "deviceLogins.denyDeviceLogin": {
    summary: "Refuse the program. Its code is over.",
    request: { code: CODE },
  },
};

const PEOPLE: Operations = {
  "people.list": "List the people of the account, newest first.",
  "people.update": {
    summary: "Rename a person, or change her role in the account.",
    request: { role: "owner" },
  },
  "people.updateAccount": {
    summary: "Name the account. People see the name in invitations and on the account's page.",
    request: { name: "Greeters" },
  },
  "people.deactivate": {
    summary: "Deactivate a person: her tokens and sessions end, her work stays.",
    response: { deactivated_at: ENDS },
  },
  "people.reactivate": "Give a deactivated person her roles back. She needs a new token.",
  "people.invitations": "List the invitations that can still be accepted, newest first.",
  "people.invite": {
    summary: "Invite a person with a link that works once, within seven days.",
    request: { projects: [{ role: "owner" }] },
    response: { url: "http://127.0.0.1:8080/#/join/6f1d2c" },
  },
  "people.revoke": "Revoke an invitation.",
  "people.members": {
    summary: "List the people who have a role in a project.",
    response: { members: [{ role: "owner", own_role: "owner" }] },
  },
  "people.grant": "Give a person a role in a project.",
  "people.revokeGrant": "Remove a person's own role in a project. The project's default role stays.",
  "audit.list": `List who did what in the account, newest first. ${LINES}`,
  "audit.listOfProject": `List who did what in a project, newest first. ${LINES}`,
};

const PROJECTS: Operations = {
  "projects.list": "List the projects that the token reaches, newest first.",
  "projects.create":
    "Create a project with a repository that the service hosts, or one on another git server.",
  "projects.get": "Show a project.",
  "projects.update": {
    summary: "Rename, archive or reactivate a project, pause its triggers, or move its default branch.",
    request: { triggers_paused: true },
    response: { updated_at: LATER },
  },
  "projects.delete": {
    summary:
      "Delete a project. It starts nothing more, its sessions stop, and its owners can restore it for seven days. Then everything of it is removed.",
    response: { status: "deleted", deletes_at: "2026-11-27T12:01:30.000Z", updated_at: LATER },
  },
  "projects.restore": {
    summary: "Make a deleted project what it was before.",
    response: { updated_at: LATER },
  },
  "projects.replaceCredential": {
    summary: "Replace the credential that the service uses at the project's git server.",
    request: { username: "deploy", password: "a new password" },
    response: { repository: { kind: "git", url: "https://git.example.com/shop.git" } },
  },
  "projects.removeCredential": "Remove the credential that the service uses at the project's git server.",
  "projects.usage": {
    summary: "Show the tokens and the cost of a project's agents, by day and model.",
    response: { days: [{ counted: true }] },
  },
  "projects.setup": {
    summary: "Show what a project still needs before its first session.",
    response: {
      repository: {
        url: `https://agents.example.org/v1/git/${PROJECT}.git`,
        commit: null,
        empty: true,
      },
      model: { required: true, source: "secret" },
      providers: [{ id: "anthropic", secrets: ["ANTHROPIC_API_KEY"], configured: true }],
    },
  },
  "projects.paths": {
    summary: "List the paths of all files of the repository, at a branch, a tag or a commit.",
    response: { paths: ["README.md", "src/checkout.ts"], total: 2 },
  },
  "projects.sessionOptions": {
    summary: "List the branches, agents and models that a new session can have.",
    response: {
      branches: ["main", "release/2"],
      agents: ["reviewer"],
      agent_choices: [
        { name: "default", runtime: "opencode", model: null, fallback: [] },
        {
          name: "reviewer",
          runtime: "opencode",
          mode: "plan",
          effort: "high",
          permissions: "ask",
          fallback: ["second"],
        },
      ],
      runtimes: [
        {
          name: "opencode",
          provider_models: [],
          models: "platform",
          modes: ["build", "plan"],
          plan_mode: "plan",
          command_files: null,
          efforts: true,
          permissions: ["ask", "allow"],
          instructions: true,
          conversation: true,
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
      models: ["anthropic/claude-sonnet-4-6", "openai/gpt-5.5"],
      model_choices: [{ id: "anthropic/claude-sonnet-4-6", context: 1_000_000, price: {} }],
    },
  },
  "projects.sync": {
    summary: "Read the manifest from the default branch now, and list the triggers.",
    response: triggers,
  },
  "projects.checkRepository": {
    summary: "Check, step by step, whether the service could work with a repository. Nothing changes.",
    request: {
      repository: {
        kind: "github",
        owner: "acme",
        name: "shop",
        token: "github_pat_11AAB",
        pull_requests: true,
      },
    },
    response: check,
  },
  "projects.checkConnection": {
    summary: "Check the connection to a project's repository with its stored credential, and its webhook.",
    response: check,
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
};

const SESSIONS: Operations = {
  "sessions.create": {
    summary: "Start a session with its own branch, sandbox and agent.",
    request: { initial_prompt: PROMPT, name: "Fix the checkout" },
    response: { ...starting, warnings: [{}] },
    accepted: { position: 3, expires_at: "2026-11-21T12:00:00.000Z" },
  },
  "sessions.list": "List a project's sessions, newest first.",
  "sessions.listAll": "List the sessions of all projects that the token reaches, newest first.",
  "sessions.get": "Show a session.",
  "sessions.changes": {
    summary:
      "Show the commits and files that a session has pushed, compared with the commit at which it began.",
    response: comparison,
  },
  "sessions.diff": { summary: "Show the diff of the work that a session has pushed.", response: DIFF },
  "sessions.see": "Say that you have seen what the session has to say.",
  "sessions.update": {
    summary: "Change a session's name or metadata.",
    request: { name: "Fix the checkout", metadata: { ticket: "SHOP-12" } },
    response: { updated_at: LATER },
  },
  "sessions.delete": "Delete a session and its saved work. Its branch stays.",
  "sessions.stop": {
    summary: "Stop a session. Its sandbox saves its work and ends.",
    request: { save: "require" },
  },
  "sessions.turnSaves": "List the turns of a session whose saves are kept.",
  "sessions.deleteSave": "Delete a save of an earlier sandbox.",
  "sessions.saves": {
    summary: "List a project's sessions by the size of their saved work, largest first.",
    response: { bytes: 1_572_864, sessions: [{ status: "stopped", bytes: 1_572_864 }] },
  },
  "sessions.ownCredentials": {
    summary: "Show whether the own credentials of the session's person work in it.",
    response: { connectors: ["mail"] },
  },
  "sessions.giveOwnCredentials":
    "Give the own credentials back to a session that another person steered. For the session's person.",
  "sessions.restart": {
    summary: "Start an ended session again, in a new sandbox on the same branch.",
    request: { restore_saved: true },
    response: { ...starting, base_commit: BASE_COMMIT },
  },
  "sessions.sandbox": "Show a session's newest sandbox.",
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
  "sessions.workspaceChanges": {
    summary: "Show what the workspace of a running session has changed, pushed or not.",
    response: { files_changed: [{ status: "modified" }] },
  },
  "sessions.workspaceDiff": {
    summary: "Show the diff of what the workspace of a running session has changed.",
    response: DIFF,
  },
  "sessions.workspaceFiles": {
    summary: "List a directory of a running session's workspace, or show a file's text.",
    response: {
      kind: "directory",
      entries: [
        { name: "src", kind: "directory" },
        { name: "README.md", kind: "file", size: 312 },
      ],
    },
  },
};

const SECRETS: Operations = {
  "secrets.list": {
    summary:
      "List the names of a project's secrets, and which ones its manifest declares. Values are never shown.",
    response: {
      declared: { required: ["OPENAI_API_KEY", "DATABASE_URL"], optional: [], missing: ["DATABASE_URL"] },
      revision: "4",
    },
  },
  "secrets.put": {
    summary: "Set a secret. Running sessions get it after their current turn.",
    request: { value: "sk-example" },
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
  "secrets.delete": "Delete a secret. Running sessions lose it after their current turn.",
};

const TRIGGERS: Operations = {
  "triggers.list": {
    summary: "List a project's triggers, and the errors of its manifest.",
    response: triggers,
  },
  "triggers.listAll": {
    summary: "List the triggers of all projects that you see.",
    response: { projects: [{ errors: 1 }] },
  },
  "triggers.fire": {
    summary: "Fire a trigger by hand.",
    request: { text: "Look at the release branch.", source: "chat" },
  },
  "triggers.preview": {
    summary: "Render a trigger's prompt without starting a session.",
    request: { kind: "manual", text: "Look at the release branch." },
    response: {
      prompt: "Look at the release branch.",
      variables: { message: { text: "Look at the release branch." } },
    },
  },
  "webhookRefusals.list":
    "List refused webhook deliveries, newest first. Bodies and signatures are not stored.",
  "fires.ofProject": {
    summary: "List the fires of all triggers of a project, newest first.",
    response: { fires: [webhookFire] },
  },
  "fires.ofTrigger": "List the fires of one trigger, newest first.",
  "fires.get": {
    summary: "Show a fire with its request and its prompt.",
    response: {
      ...webhookFire,
      request: { headers: { user_agent: "GitHub-Hookshot/1" }, body: '{"ref":"refs/heads/main"}' },
      prompt: "Review the push to refs/heads/main.",
    },
  },
  "fires.replay": "Replay a fire: fire again with its request and the current trigger.",
  "fires.cancel": "Cancel a queued fire, or a person's request that waits.",
  "fires.queue": {
    summary: "List the account's queued fires and requests in the order in which they will start.",
    response: {
      queue: [
        {
          kind: "webhook",
          trigger_slug: "on-push",
          title: "Review the push",
          files: 0,
          person: null,
          expires_at: "2026-11-21T12:00:00.000Z",
        },
      ],
    },
  },
  "sandbox.cloneCredential": {
    summary: "Get a git password for the session's repository. Only the sandbox's own key can call this.",
    response: {
      repo_url: `http://platform.internal/v1/git/${PROJECT}.git`,
      auth: { username: "session", password: "Xq8mC0s1fH3kL5nP7rT9vW2y" },
    },
  },
};

export const OPERATION_EXAMPLES: Operations = {
  ...IDENTITY,
  ...PEOPLE,
  ...PROJECTS,
  ...SESSIONS,
  ...CONVERSATION_EXAMPLES,
  ...SECRETS,
  ...TRIGGERS,
  ...MACHINE_EXAMPLES,
};
