/** A project in the midst of its life, for the page to show. */
import { makeMachines } from "./sample-machines.ts";
import { sampleConversation } from "./sample-conversation.ts";
import { sampleDoctor, sampleService } from "./sample-service.ts";
import { sampleActivity } from "../fakes/fake-activity.ts";
import { sampleEnvironment } from "./sample-environment.ts";
import { samplePeople } from "../fakes/fake-people.ts";
import { sampleConnectors } from "../fakes/fake-connectors.ts";
import { sampleReceivers } from "../fakes/fake-receivers.ts";
import { sampleSaved } from "./sample-saves.ts";
import { sampleSettings } from "./sample-settings.ts";
import type { World } from "../fakes/fake-service.ts";

export const PROJECT_ID = "01995f10-77aa-7c31-9f21-3d0c64b2a910";
export const SESSION_ID = "01995f2c-1e5b-7b0e-8a44-b7d15c2a90de";
export const FAILED_ID = "01995f2b-93c0-7d55-b6a1-52fd1e6c0a13";
/** The fire that waits, and the one that failed. */
export const QUEUED_ID = "01995f2c-aaaa-7b0e-8a44-b7d15c2a0a11";
export const FAILED_FIRE_ID = "01995f2c-bbbb-7b0e-8a44-b7d15c2a0b22";
export const FIRED_ID = "01995f2c-cccc-7b0e-8a44-b7d15c2a0c33";
export const STOPPED_ID = "01995e90-41f7-7a60-9a0d-cc4e8b1f7720";

/** An instant so many seconds before (or, negative, after) `now`. */
const ago = (now: number, seconds: number) => new Date(now - seconds * 1000).toISOString();

const PROMPT = `Write a note about the push below to \`notes/{{ body.head_commit.id }}.md\`.

Pushed by: {{ body.pusher.name }}
Message: {{ body.head_commit.message }}

{{ message.text }} {{ message.source }}`;

export const DIFF = `diff --git a/notes/6113728.md b/notes/6113728.md
new file mode 100644
index 0000000..3b18e51
--- /dev/null
+++ b/notes/6113728.md
@@ -0,0 +1,3 @@
+# Initial commit
+
+Codertocat pushed the first commit of Hello-World.
diff --git a/greet.sh b/greet.sh
index 9daeafb..180cf83 100644
--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,3 @@
 #!/bin/sh
-printf 'Hello, %s!\\n' "\${1:-world}"
+printf 'Good day, %s!\\n' "\${1:-world}"
`;

const remarksAt = (now: number) => {
  const remark = {
    kind: "comment",
    commit: "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5",
    outdated: false,
    place: null,
    reply_to: null,
    edited_at: null,
    resolved_by: null,
    resolved_at: null,
  };
  return [
    {
      ...remark,
      id: "r1",
      body: "Does this need the **whole** address?",
      outdated: true,
      place: { file: "greet.sh", side: "head", first_line: 1, last_line: 2 },
      created_by: { id: "v", name: "Ben" },
      created_at: ago(now, 5000),
    },
    {
      ...remark,
      id: "r2",
      body: "No. The last commit takes it out.",
      reply_to: "r1",
      created_by: { id: "u", name: "Mona" },
      created_at: ago(now, 4000),
    },
    {
      ...remark,
      id: "r3",
      kind: "approval",
      body: "",
      created_by: { id: "v", name: "Ben" },
      created_at: ago(now, 3000),
    },
  ];
};

export const logLine = (at: string | null, source: string, line: string, sandbox = "0199aaaa") => ({
  sandbox_id: `${sandbox}-0000-7000-8000-000000000001`,
  at,
  source,
  line,
});

const session = (now: number, rest: Readonly<Record<string, unknown>>) => ({
  id: SESSION_ID,
  project_id: PROJECT_ID,
  account_id: "a",
  status: "running",
  base_ref: "main",
  base_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
  branch_name: SESSION_ID,
  name: null,
  agent_name: "release-notes",
  agent_model: null,
  initial_prompt: "Write a note about the push below.\n\nPushed by: Codertocat\nMessage: Initial commit",
  metadata: {},
  trigger_slug: "on-push",
  fire_id: FIRED_ID,
  parent_session_id: null,
  created_by: "u",
  failure: null,
  stop_reason: null,
  saved: null,
  restored: null,
  unsaved: null,
  pending_approvals: 0,
  last_turn: null,
  turn: { state: "idle", since: ago(now, 95), waiting_for: null },
  usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
  created_at: ago(now, 95),
  updated_at: ago(now, 93),
  running_at: ago(now, 93),
  stopped_at: null,
  ...rest,
});

const trigger = (now: number, rest: Readonly<Record<string, unknown>>) => ({
  slug: "on-push",
  name: "Note each push",
  type: "webhook",
  agent: "release-notes",
  enabled: true,
  prompt: PROMPT,
  secret_env: "GITHUB_WEBHOOK_SECRET",
  webhook_url: `http://127.0.0.1:8080/v1/webhooks/projects/${PROJECT_ID}/on-push`,
  last_fired_at: ago(now, 95),
  next_fire_at: null,
  upcoming: [],
  last_fire: { id: QUEUED_ID, status: "queued", at: ago(now, 30), outcome: null },
  ...rest,
});

const fire = (now: number, rest: Readonly<Record<string, unknown>>) => ({
  id: FIRED_ID,
  project_id: PROJECT_ID,
  trigger_slug: "on-push",
  kind: "webhook",
  status: "fired",
  reason: null,
  scheduled_for: null,
  received_at: ago(now, 95),
  delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  session_id: SESSION_ID,
  session_name: "Note the first push",
  started_by: null,
  attempts: 1,
  replay_of: null,
  duplicate_of: null,
  verified_with: null,
  outcome: null,
  request: {
    headers: { content_type: "application/json", user_agent: "GitHub-Hookshot/044aadd", forwarded_for: null },
    body: '{"ref":"refs/heads/main","head_commit":{"id":"6113728","message":"Initial commit"},"commits":[]}',
    encoding: "utf8",
  },
  prompt: "Write a note about the push below.\n\nPushed by: Codertocat\nMessage: Initial commit",
  position: null,
  ...rest,
});

const refusal = (now: number, rest: Readonly<Record<string, unknown>>) => ({
  id: `01995f2c-ffff-7b0e-8a44-${String(rest["status"] ?? 401).padStart(12, "0")}`,
  at: ago(now, 60),
  slug: "on-push",
  status: 401,
  code: "invalid_signature",
  reason: "signature_mismatched",
  delivery_id: null,
  event: null,
  declared_bytes: null,
  body_bytes: null,
  address: "127.0.0.1",
  forwarded_for: "192.0.2.7",
  ...rest,
});

/** @param now ms since the epoch that the world's instants stand around */
const usageOf = (rows: readonly (readonly [string, string, number, number, number])[]) => {
  const days = rows.map(([day, model, input, output, cost]) => ({
    day,
    model,
    input_tokens: input,
    output_tokens: output,
    cached_tokens: 0,
    cost_usd: cost,
    // The account's own provider is counted as its calls pass.
    counted: model.startsWith("acme/"),
    untold_calls: 0,
    estimated_tokens: 0,
  }));
  const sum = (name: "input_tokens" | "output_tokens" | "cost_usd") =>
    days.reduce((all, day) => all + day[name], 0);
  const total = {
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cached_tokens: 0,
    cost_usd: sum("cost_usd"),
  };
  return { from: "2026-10-22", to: "2026-11-20", days, total };
};

export const makeWorld = (now: number): World => ({
  ...sampleSettings(now, PROJECT_ID),
  ...samplePeople(now, PROJECT_ID),
  ...sampleReceivers(now),
  ...sampleConnectors(now, SESSION_ID),
  ...sampleEnvironment(now, PROJECT_ID),
  me: {
    user: { id: "u", name: "Mona", role: "owner" },
    account: {
      id: "a",
      name: "Mona",
      tier: "free",
      session_cap: 50,
      active_sessions: 1,
      queued_fires: 1,
      operator: true,
    },
    token: { id: "t", origin: "user", project_id: null },
  },
  projects: [
    {
      id: PROJECT_ID,
      account_id: "a",
      name: "greeter",
      status: "active",
      deletes_at: null,
      repository: { kind: "hosted" },
      default_branch: "main",
      triggers_paused: false,
      default_role: "member",
      merge_role: "member",
      approvals_required: 0,
      manifest: { commit: "6113728f27ae82c7", synced_at: ago(now, 300), error: null },
      created_at: ago(now, 400),
      updated_at: ago(now, 400),
    },
  ],
  sessions: [
    session(now, {}),
    session(now, {
      id: FAILED_ID,
      branch_name: FAILED_ID,
      name: "Tidy the docs",
      trigger_slug: null,
      status: "failed",
      running_at: null,
      created_at: ago(now, 1250),
      failure: {
        code: "clone_failed",
        message: "The clone failed: fatal: couldn't find remote ref refs/heads/gone",
        at: ago(now, 1230),
      },
    }),
    session(now, {
      id: STOPPED_ID,
      branch_name: STOPPED_ID,
      status: "stopped",
      stop_reason: "idle",
      saved: sampleSaved(now),
      created_at: ago(now, 7600),
      running_at: ago(now, 7595),
      stopped_at: ago(now, 6600),
    }),
  ],
  ownCredentials: { connectors: [], subscription: false, suspended: null },
  sandbox: {
    environment: null,
    id: "s",
    session_id: SESSION_ID,
    provider: "local",
    node_id: "node-1",
    image: "greeter-tools",
    status: "active",
    failure: null,
    created_at: ago(now, 94.9),
    active_at: ago(now, 93.1),
    ended_at: null,
  },
  logs: [
    logLine("2026-11-20T06:52:05.045Z", "daemon", "listening port=8000"),
    logLine("2026-11-20T06:52:08.980Z", "runtime", "opencode server listening"),
    logLine(null, "sandbox", "a line of no form"),
  ],
  ...sampleActivity(now, { projectId: PROJECT_ID, sessionId: SESSION_ID, fireId: FAILED_FIRE_ID }),
  conversation: sampleConversation(now),
  listing: {
    triggers: [
      trigger(now, {}),
      trigger(now, {
        slug: "new-year",
        name: "Look back in the new year",
        type: "cron",
        cron: "0 0 9 2 1 *",
        timezone: "Europe/Berlin",
        secret_env: undefined,
        webhook_url: undefined,
        last_fired_at: null,
        last_fire: null,
        next_fire_at: ago(now, -3_600_000),
        upcoming: [1, 2, 3, 4, 5].map((year) => ago(now, -3_600_000 - (year - 1) * 31_536_000)),
      }),
    ],
    errors: [
      { slug: "nightly", index: 2, path: "cron", message: "a cron expression has six fields", line: 31 },
    ],
    manifest: { commit: "6113728f27ae82c7", synced_at: ago(now, 300), stale: false },
    warnings: [],
    triggers_paused: false,
    scheduler: { ticked_at: ago(now, 20), late: false },
  },
  changes: [
    {
      id: "c",
      project_id: PROJECT_ID,
      number: 7,
      session_id: STOPPED_ID,
      head_ref: STOPPED_ID,
      base_ref: "main",
      title: "Note the first push",
      description: "What the agent wrote when the first push came in.",
      status: "open",
      created_by: "u",
      created_at: ago(now, 6000),
      updated_at: ago(now, 6000),
      merged_commit: null,
      merged_at: null,
      mergeable: true,
      conflicts: [],
      warnings: [],
      merged_by: null,
      pull_request: null,
      review_asked: null,
      verdicts: [
        {
          kind: "approval",
          by: { id: "v", name: "Ben" },
          at: ago(now, 3000),
          commit: "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5",
          counts: true,
          why_not: null,
        },
      ],
      reviewers: [
        { id: "v", name: "Ben", asked_by: "u", asked_at: ago(now, 5500), answer: "approval" },
        { id: "u-karl", name: "Karl", asked_by: "u", asked_at: ago(now, 5400), answer: null },
      ],
      approvals_required: 0,
      head_commit: "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5",
      commits_total: 1,
      files_changed_total: 2,
      files_changed: [
        { path: "notes/6113728.md", additions: 3, deletions: 0 },
        { path: "greet.sh", additions: 1, deletions: 1 },
      ],
      commits: [
        {
          sha: "0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5",
          subject: "Write notes/6113728.md",
          author_name: "Scripted Model",
          committed_at: ago(now, 6100),
        },
      ],
    },
  ],
  remarks: remarksAt(now),
  diff: DIFF,
  queue: [
    {
      fire_id: QUEUED_ID,
      project_id: PROJECT_ID,
      kind: "webhook",
      trigger_slug: "on-push",
      title: null,
      files: 0,
      person: null,
      position: 1,
      queued_at: ago(now, 30),
      expires_at: ago(now, -86_000),
    },
  ],
  fires: [
    fire(now, {
      id: QUEUED_ID,
      status: "queued",
      reason: "account_session_cap",
      position: 1,
      received_at: ago(now, 30),
      session_id: null,
      delivery_id: "8f0f2a10-cc79-11e3-8c11-4c9367dc0958",
    }),
    fire(now, {}),
    fire(now, {
      id: FAILED_FIRE_ID,
      status: "failed",
      reason: "unknown_agent: the agent release-notes has no file at main",
      received_at: ago(now, 4000),
      session_id: null,
      attempts: 3,
      replay_of: FIRED_ID,
      delivery_id: null,
      request: null,
      prompt: null,
    }),
    fire(now, {
      id: "01995f2c-dddd-7b0e-8a44-b7d15c2a0d44",
      trigger_slug: "new-year",
      kind: "cron",
      status: "skipped",
      reason: "missed",
      scheduled_for: ago(now, 9000),
      received_at: ago(now, 5000),
      session_id: null,
      delivery_id: null,
      request: null,
      prompt: null,
    }),
    fire(now, {
      id: "01995f2c-eeee-7b0e-8a44-b7d15c2a0e55",
      trigger_slug: "gone-by-now",
      kind: "manual",
      session_id: STOPPED_ID,
      session_name: null,
      started_by: "Mona",
      received_at: ago(now, 90_000),
      delivery_id: null,
    }),
  ],
  counted: [
    {
      model: "acme/large-2",
      calls: 12,
      untold_calls: 1,
      estimated_tokens: 1_200,
      input_tokens: 184_220,
      cached_tokens: 120_000,
      output_tokens: 9_310,
      cost_usd: 0.38,
    },
  ],
  usage: usageOf([
    ["2026-11-20", "acme/large-2", 184_220, 9_310, 0],
    ["2026-11-20", "anthropic/claude-large", 184_220, 9_310, 1.52],
    ["2026-11-20", "openai/gpt-small", 20_100, 1_204, 0.031],
    ["2026-11-19", "anthropic/claude-large", 61_000, 2_870, 0.48],
    ["2026-11-16", "local/qwen", 402_000, 30_000, 0],
  ]),
  machines: makeMachines(now),
  refusals: [
    refusal(now, { delivery_id: "8f0f2a10-cc79-11e3-8c11-4c9367dc0958", event: "push", body_bytes: 7632 }),
    refusal(now, {
      slug: "on-pusch",
      status: 404,
      code: "not_found",
      reason: "unknown_trigger",
      at: ago(now, 70),
    }),
  ],
  ports: [],
  proposal: { number: 7, status: "merged" },
  draft: { lines: null, upcoming: [], webhook_url: null, issues: [] },
  link: "http://localhost:1/",
  preview: {
    prompt: "Write a note about the push below.\n\nPushed by: Mona",
    variables: {
      trigger: { slug: "on-push", type: "webhook", kind: "git" },
      body: { pusher: { name: "Mona" } },
    },
  },
  created: { id: "0199aaaa-0000-7000-8000-000000000001" },
  replay: { status: "fired", session_id: "0199aaaa-0000-7000-8000-000000000001" },
  operator: sampleService(now),
  doctor: sampleDoctor(now),
  refused: null,
  broken: null,
});
