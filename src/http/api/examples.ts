/**
 * What each operation of the API does, in a sentence, and an example of its request and answer. The OpenAPI document and
 * the page at `/docs` show them. test/http/openapi.test.ts decodes each example with the operation's own schemas.
 */

/** JSON of a request or an answer. */
type Json = Readonly<Record<string, unknown>>;

export interface OperationExample {
  readonly summary: string;
  readonly request?: Json;
  /** Of the operation's success; absent where that has no body. Text where it is text. */
  readonly response?: Json | string;
}

const ACCOUNT = "019a7c3e-5b10-7d4e-9c55-2f1d6a0b7c01";
const USER = "019a7c3e-5b11-7a92-8f3c-64f0c1d2e302";
const PROJECT = "019a7c40-11aa-7c08-b1f7-93d5e2a4f603";
const SESSION = "019a7c41-8e2f-7b6a-a0c4-5d7e9f1b2c04";
const SANDBOX = "019a7c41-8e30-7f11-9d2e-7a8b9c0d1e05";
const TOKEN = "019a7c42-0c4d-7e3b-8a6f-1b2c3d4e5f06";
const FIRE = "019a7c43-27f1-7d9c-b3e8-0f1e2d3c4b07";
const CHANGE_REQUEST = "019a7c44-6b55-7c2d-95a1-a0b1c2d3e408";
const COMMIT = "3f2c9a7d1e5b8064c2d7f9e0a1b3c4d5e6f70819";
const BASE_COMMIT = "9b1d4e7f2a5c8063d1e6f8b9c0a2d3e4f5061728";

const BEGAN = "2026-11-20T12:00:00.000Z";
const LATER = "2026-11-20T12:01:30.000Z";
const ENDS = "2026-11-20T13:00:00.000Z";

/** Path parameters of the example requests. */
export const PATH_EXAMPLES: Readonly<Record<string, string>> = {
  pid: PROJECT,
  sid: SESSION,
  id: FIRE,
  slug: "on-push",
  name: "OPENAI_API_KEY",
  number: "7",
  port: "3000",
  path: "",
  repository: `${PROJECT}.git`,
};

const token = {
  id: TOKEN,
  name: "laptop",
  origin: "user",
  project_id: null,
  created_at: BEGAN,
  expires_at: null,
  last_used_at: null,
};

const project = {
  id: PROJECT,
  account_id: ACCOUNT,
  name: "shop",
  status: "active",
  repository: { kind: "hosted" },
  default_branch: "main",
  triggers_paused: false,
  manifest: { commit: BASE_COMMIT, synced_at: BEGAN, error: null },
  created_at: BEGAN,
  updated_at: BEGAN,
};

const upstreamProject = {
  ...project,
  repository: { kind: "git", url: "https://git.example.com/shop.git" },
};

const session = {
  id: SESSION,
  project_id: PROJECT,
  account_id: ACCOUNT,
  status: "provisioning",
  base_ref: "main",
  base_commit: null,
  branch_name: SESSION,
  name: "Fix the checkout",
  agent_name: "default",
  agent_model: null,
  initial_prompt: "The checkout fails with an empty cart. Find out why and fix it.",
  metadata: {},
  trigger_slug: null,
  fire_id: null,
  created_by: USER,
  failure: null,
  stop_reason: null,
  saved: null,
  created_at: BEGAN,
  updated_at: BEGAN,
  running_at: null,
  stopped_at: null,
};

const running = { ...session, status: "running", base_commit: BASE_COMMIT, running_at: LATER };

const fire = {
  id: FIRE,
  trigger_slug: "on-push",
  kind: "webhook",
  status: "fired",
  reason: null,
  scheduled_for: null,
  received_at: BEGAN,
  delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  session_id: SESSION,
  attempts: 1,
  replay_of: null,
};

const fires = { fires: [fire], next_cursor: null };
const fired = { status: "fired", session_id: SESSION };

const triggers = {
  triggers: [
    {
      slug: "nightly",
      name: "Nightly clean-up",
      type: "cron",
      agent: "default",
      enabled: true,
      prompt: "Remove dead code. It is {{ cron.fired_at }}.",
      cron: "0 0 2 * * *",
      timezone: "Europe/Berlin",
      last_fired_at: null,
      next_fire_at: "2026-11-21T01:00:00.000Z",
      upcoming: ["2026-11-21T01:00:00.000Z", "2026-11-22T01:00:00.000Z"],
      last_fire: null,
    },
  ],
  errors: [
    {
      slug: "on-push",
      index: 1,
      path: "triggers[1].secret_env",
      message: "secret_env is missing.",
      line: 14,
    },
  ],
  manifest: { commit: BASE_COMMIT, synced_at: BEGAN, stale: false },
  triggers_paused: false,
  scheduler: { ticked_at: LATER, late: false },
};

const changeRequest = {
  id: CHANGE_REQUEST,
  project_id: PROJECT,
  number: 7,
  session_id: SESSION,
  head_ref: SESSION,
  base_ref: "main",
  title: "Fix the checkout of empty carts",
  description: "",
  status: "open",
  created_by: USER,
  created_at: BEGAN,
  updated_at: BEGAN,
  merged_commit: null,
  merged_at: null,
  merged_by: null,
  pull_request: null,
};

const merged = {
  ...changeRequest,
  status: "merged",
  merged_commit: COMMIT,
  merged_at: LATER,
  merged_by: USER,
};

const secret = { name: "OPENAI_API_KEY", created_at: BEGAN, updated_at: BEGAN, updated_by: USER };

/** By the operation's id in the OpenAPI document. */
export const OPERATION_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "identity.me": {
    summary: "Show the caller: its user, its account and its token.",
    response: {
      user: { id: USER, name: "admin" },
      account: {
        id: ACCOUNT,
        name: "default",
        tier: "free",
        session_cap: 3,
        active_sessions: 1,
        queued_fires: 0,
      },
      token: { id: TOKEN, origin: "user", project_id: null },
    },
  },
  "identity.listTokens": {
    summary: "List the account's tokens, newest first. Secrets are not shown.",
    response: { tokens: [token], next_cursor: null },
  },
  "identity.createToken": {
    summary: "Create a token. Its secret is in this answer and is never shown again.",
    request: { name: "laptop" },
    response: { ...token, token: "platform_pat_kQ3vX0aYw1nT7uR5sB9cD2eF4gH6jK8mN0pQ2rS" },
  },
  "identity.deleteToken": {
    summary: "Revoke a token. Requests and connections that it opened end within a second.",
  },
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
  "projects.replaceCredential": {
    summary: "Replace the credential that the service uses at the project's git server.",
    request: { username: "deploy", password: "a new password" },
    response: upstreamProject,
  },
  "projects.removeCredential": {
    summary: "Remove the credential that the service uses at the project's git server.",
  },
  "projects.sync": {
    summary: "Read the manifest from the default branch now, and list the triggers.",
    response: triggers,
  },
  "sessions.create": {
    summary: "Start a session: a branch, a sandbox and an agent that works in it.",
    request: { initial_prompt: session.initial_prompt, name: session.name },
    response: session,
  },
  "sessions.list": {
    summary: "List a project's sessions, newest first.",
    response: { sessions: [running], next_cursor: null },
  },
  "sessions.get": { summary: "Show a session.", response: running },
  "sessions.update": {
    summary: "Change a session's name or metadata.",
    request: { name: "Fix the checkout", metadata: { ticket: "SHOP-12" } },
    response: { ...running, metadata: { ticket: "SHOP-12" }, updated_at: LATER },
  },
  "sessions.delete": {
    summary: "Delete a session. A running one saves its work first; its branch stays.",
  },
  "sessions.stop": {
    summary: "Stop a session. Its sandbox saves its work and ends.",
    response: running,
  },
  "sessions.restart": {
    summary: "Start an ended session again, in a new sandbox on the same branch.",
    response: { ...session, base_commit: BASE_COMMIT },
  },
  "sessions.sandbox": {
    summary: "Show a session's newest sandbox.",
    response: {
      id: SANDBOX,
      session_id: SESSION,
      provider: "local",
      status: "active",
      failure: null,
      created_at: BEGAN,
      active_at: LATER,
      ended_at: null,
    },
  },
  "sessions.preview": {
    summary: "Create a link that opens a port of the sandbox in a browser, once.",
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
  "secrets.delete": { summary: "Delete a secret. Running sessions lose it after their current turn." },
  "triggers.list": {
    summary: "List a project's triggers, and the errors of its manifest.",
    response: triggers,
  },
  "triggers.fire": {
    summary: "Fire a trigger by hand.",
    request: { text: "Look at the release branch.", source: "chat" },
    response: fired,
  },
  "triggers.preview": {
    summary: "Render a trigger's prompt as a fire would. Nothing is started.",
    request: { kind: "manual", text: "Look at the release branch." },
    response: {
      prompt: "Look at the release branch.",
      variables: { message: { text: "Look at the release branch." } },
    },
  },
  "fires.ofProject": {
    summary: "List the fires of all triggers of a project, newest first.",
    response: fires,
  },
  "fires.ofTrigger": { summary: "List the fires of one trigger, newest first.", response: fires },
  "fires.get": {
    summary: "Show a fire with the request and the prompt that it was made of.",
    response: {
      ...fire,
      request: {
        headers: { content_type: "application/json", user_agent: "GitHub-Hookshot/1", forwarded_for: null },
        body: '{"ref":"refs/heads/main"}',
        encoding: "utf8",
      },
      prompt: "Review the push to refs/heads/main.",
    },
  },
  "fires.replay": {
    summary: "Fire again with the request of an earlier fire and the trigger as it is now.",
    response: fired,
  },
  "fires.cancel": { summary: "Cancel a fire that waits in the queue." },
  "fires.queue": {
    summary: "List the fires that wait for a free session of the account, first come first.",
    response: {
      queue: [
        {
          fire_id: FIRE,
          project_id: PROJECT,
          trigger_slug: "on-push",
          position: 1,
          queued_at: BEGAN,
          expires_at: "2026-11-21T12:00:00.000Z",
        },
      ],
      next_cursor: null,
    },
  },
  "changeRequests.open": {
    summary: "Open a change request for a session's branch, or for another branch.",
    request: { session_id: SESSION, title: changeRequest.title },
    response: changeRequest,
  },
  "changeRequests.list": {
    summary: "List a project's change requests, newest first.",
    response: { change_requests: [changeRequest], next_cursor: null },
  },
  "changeRequests.get": {
    summary: "Show a change request with its commits, its files, and whether it can be merged.",
    response: {
      ...changeRequest,
      base_commit: BASE_COMMIT,
      head_commit: COMMIT,
      mergeable: true,
      conflicts: [],
      commits: [{ sha: COMMIT, subject: "Refuse an empty cart", author_name: "agent", committed_at: LATER }],
      files_changed: [{ path: "src/checkout.ts", additions: 4, deletions: 1 }],
    },
  },
  "changeRequests.diff": {
    summary: "Show the diff of a change request as text.",
    response:
      "diff --git a/src/checkout.ts b/src/checkout.ts\n--- a/src/checkout.ts\n+++ b/src/checkout.ts\n@@ -1 +1,2 @@\n",
  },
  "changeRequests.merge": {
    summary: "Merge a change request into the default branch.",
    request: { message: "Fix the checkout of empty carts" },
    response: merged,
  },
  "changeRequests.close": {
    summary: "Close a change request without merging it.",
    response: { ...changeRequest, status: "closed", updated_at: LATER },
  },
  "sandbox.cloneCredential": {
    summary: "Get a git password for the session's repository. Only the sandbox's own key may ask.",
    response: {
      repo_url: `http://platform.internal/v1/git/${PROJECT}.git`,
      auth: { type: "basic", username: "session", password: "Xq8mC0s1fH3kL5nP7rT9vW2y" },
      expires_at: ENDS,
      bootstrap: "pending",
    },
  },
};
