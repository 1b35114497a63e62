/** Records that the examples of operations show. */
export const ACCOUNT = "019a7c3e-5b10-7d4e-9c55-2f1d6a0b7c01";
export const USER = "019a7c3e-5b11-7a92-8f3c-64f0c1d2e302";
export const PROJECT = "019a7c40-11aa-7c08-b1f7-93d5e2a4f603";
export const SESSION = "019a7c41-8e2f-7b6a-a0c4-5d7e9f1b2c04";
export const SANDBOX = "019a7c41-8e30-7f11-9d2e-7a8b9c0d1e05";
export const TOKEN = "019a7c42-0c4d-7e3b-8a6f-1b2c3d4e5f06";
export const FIRE = "019a7c43-27f1-7d9c-b3e8-0f1e2d3c4b07";
export const BUILD = "019a7c45-31d8-7a60-8c1b-4e5f6a7b8c09";
export const MODEL_PROVIDER = "019a7c46-1a2b-7c3d-8e4f-5a6b7c8d9e12";
export const SPEND_LIMIT = "019a7c46-1a2b-7c3d-8e4f-5a6b7c8d9e13";
export const WEBHOOK = "019a7c47-05e2-7c14-8f3d-6a7b8c9d0e10";
export const DELIVERY = "019a7c48-19f3-7d25-9a4e-7b8c9d0e1f11";
export const COMMIT = "3f2c9a7d1e5b8064c2d7f9e0a1b3c4d5e6f70819";
export const BASE_COMMIT = "9b1d4e7f2a5c8063d1e6f8b9c0a2d3e4f5061728";

export const BEGAN = "2026-11-20T12:00:00.000Z";
export const LATER = "2026-11-20T12:01:30.000Z";
export const ENDS = "2026-11-20T13:00:00.000Z";

/** Path parameters of the example requests. */
export const PATH_EXAMPLES: Readonly<Record<string, string>> = {
  pid: PROJECT,
  sid: SESSION,
  bid: BUILD,
  did: DELIVERY,
  id: FIRE,
  slug: "on-push",
  name: "OPENAI_API_KEY",
  number: "7",
  port: "3000",
  path: "",
  repository: `${PROJECT}.git`,
};

export const browser = {
  id: "0198e0a0-0000-7000-8000-00000000000b",
  signed_in_by: "token",
  token_id: TOKEN,
  created_at: BEGAN,
  last_used_at: LATER,
  expires_at: ENDS,
  address: "192.0.2.7",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64)",
  current: true,
};

export const identity = {
  id: "0198e0a0-0000-7000-8000-00000000000e",
  provider: "github",
  issuer: "https://github.com",
  subject: "583231",
  name: "The Octocat",
  created_at: BEGAN,
  last_sign_in_at: LATER,
};

export const deviceLogin = {
  id: "0198e0a0-0000-7000-8000-00000000000d",
  client: "Command line on laptop",
  address: "192.0.2.7",
  user_agent: "platform",
  created_at: BEGAN,
  expires_at: ENDS,
};

export const token = {
  id: TOKEN,
  name: "laptop",
  origin: "user",
  user_id: USER,
  project_id: null,
  created_at: BEGAN,
  expires_at: null,
  last_used_at: null,
};

export const project = {
  id: PROJECT,
  account_id: ACCOUNT,
  name: "shop",
  status: "active",
  deletes_at: null,
  repository: { kind: "hosted" },
  default_branch: "main",
  triggers_paused: false,
  default_role: "member",
  merge_role: "member",
  approvals_required: 0,
  manifest: { commit: BASE_COMMIT, synced_at: BEGAN, error: null },
  created_at: BEGAN,
  updated_at: BEGAN,
};

export const upstreamProject = {
  ...project,
  repository: { kind: "git", url: "https://git.example.com/shop.git" },
};

const NO_USAGE = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };

export const session = {
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
  parent_session_id: null,
  created_by: USER,
  failure: null,
  stop_reason: null,
  saved: null,
  unsaved: null,
  restored: null,
  pending_approvals: 0,
  activity: "starting",
  waits_for: null,
  last_sentence: null,
  changes: null,
  change_request: null,
  person: { id: USER, name: "admin" },
  archived: false,
  unread: false,
  last_turn: null,
  turn: { state: "idle", since: BEGAN, waiting_for: null },
  usage: NO_USAGE,
  created_at: BEGAN,
  updated_at: BEGAN,
  running_at: null,
  stopped_at: null,
};

export const missingSecret = {
  code: "secret_missing",
  message:
    "The manifest requires the secret DATABASE_URL, but it has no value. Set it with `platform secrets set DATABASE_URL`.",
};

export const running = {
  ...session,
  status: "running",
  activity: "resting",
  base_commit: BASE_COMMIT,
  running_at: LATER,
};

/** The initial prompt of a session. */
const promptItem = {
  id: SESSION,
  seq: 1,
  rev: 0,
  place: 1,
  kind: "message",
  role: "user",
  author: { kind: "user", user_id: USER, name: "admin", trigger_slug: null, fire_id: null },
  turn_id: null,
  parent_id: null,
  sandbox_id: null,
  status: "accepted",
  content: [{ type: "text", text: session.initial_prompt }],
  tool: null,
  plan: [],
  request: null,
  answer: null,
  model: null,
  agent: null,
  usage: null,
  error: null,
  pruned: false,
  truncated: false,
  created_at: BEGAN,
  completed_at: BEGAN,
};

const toolItem = {
  ...promptItem,
  id: "019a7c45-1d20-7e44-8b1c-3c4d5e6f7a09",
  seq: 4,
  rev: 3,
  place: 2,
  kind: "tool",
  role: "agent",
  author: { kind: "agent", user_id: null, name: "default", trigger_slug: null, fire_id: null },
  turn_id: SESSION,
  sandbox_id: SANDBOX,
  status: "running",
  content: [],
  tool: {
    name: "bash",
    kind: "execute",
    title: "Run the tests",
    input: { command: "npm test" },
    output: "1 test failed\n",
    truncated: false,
    changes: [],
  },
  created_at: LATER,
  completed_at: null,
};

export const message = {
  ...promptItem,
  id: "0a7c3f52-9c1e-4f6b-8d20-1c6f0b1a7e35",
  seq: 6,
  place: 6,
  turn_id: "0a7c3f52-9c1e-4f6b-8d20-1c6f0b1a7e35",
  status: "queued",
  content: [{ type: "text", text: "Now add a test." }],
  completed_at: null,
};

export const request = {
  ...promptItem,
  id: "5f2a1d9c-36de-5a1b-9a44-7a0f4f1c9d10",
  seq: 8,
  place: 7,
  kind: "request",
  role: "agent",
  author: { kind: "agent", user_id: null, name: "default", trigger_slug: null, fire_id: null },
  status: "running",
  content: [],
  request: { kind: "permission", title: "bash", patterns: ["git push"], questions: [] },
  answer: {
    by: { kind: "user", user_id: USER, name: "Ada", trigger_slug: null, fire_id: null },
    at: LATER,
    choice: "once",
    message: null,
  },
  completed_at: null,
};

export const conversation = {
  items: [toolItem, promptItem],
  state: { state: "running", since: BEGAN, waiting_for: null },
  queue: [],
  requests: [],
  queue_held: false,
  usage: { input_tokens: 5200, output_tokens: 310, cached_tokens: 4096, cost_usd: 0.02 },
  seq: 5,
  next_cursor: null,
};

export const fire = {
  id: FIRE,
  trigger_slug: "on-push",
  kind: "webhook",
  status: "fired",
  reason: null,
  scheduled_for: null,
  received_at: BEGAN,
  delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  session_id: SESSION,
  outcome: { state: "finished", code: null },
  session_name: "Note each push",
  started_by: null,
  attempts: 1,
  replay_of: null,
  duplicate_of: null,
  verified_with: "current",
};

export const fires = { fires: [fire], next_cursor: null };
export const fired = { status: "fired", session_id: SESSION };

const nightly = {
  slug: "nightly",
  name: "Nightly clean-up",
  type: "cron",
  agent: "default",
  enabled: true,
  cron: "0 0 2 * * *",
  timezone: "Europe/Berlin",
  last_fired_at: null,
  next_fire_at: "2026-11-21T01:00:00.000Z",
  last_fire: null,
};

export const triggersOfShop = {
  id: PROJECT,
  name: "shop",
  triggers: [nightly],
  errors: 1,
  stale: false,
  triggers_paused: false,
};

export const triggers = {
  triggers: [
    {
      ...nightly,
      prompt: "Remove dead code. It is {{ cron.fired_at }}.",
      upcoming: ["2026-11-21T01:00:00.000Z", "2026-11-22T01:00:00.000Z"],
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
  warnings: [missingSecret],
  triggers_paused: false,
  scheduler: { ticked_at: LATER, late: false },
};

export const secret = {
  name: "OPENAI_API_KEY",
  masked: true,
  unseen: [],
  created_at: BEGAN,
  updated_at: BEGAN,
  updated_by: USER,
  service: false,
  previous_valid_until: null,
  provider: "openai",
};

const spent = { input_tokens: 184_220, output_tokens: 9_310, cached_tokens: 120_000, cost_usd: 1.52 };
export const projectUsage = {
  from: "2026-10-22",
  to: "2026-11-20",
  days: [
    {
      day: "2026-11-20",
      model: "anthropic/claude-sonnet-5",
      ...spent,
      counted: true,
      untold_calls: 0,
      estimated_tokens: 0,
    },
  ],
  total: spent,
};

export const sandbox = {
  id: SANDBOX,
  session_id: SESSION,
  provider: "local",
  node_id: "node-1",
  image: null,
  environment: { build_id: BUILD, stale: false },
  status: "active",
  failure: null,
  created_at: BEGAN,
  waited: true,
  boot_started_at: BEGAN,
  active_at: LATER,
  ended_at: null,
};
