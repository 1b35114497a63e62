/** The usual values of examples: ids and instants, of fields by name, of records by noun. */
import { createHash } from "node:crypto";
import { uuidV7 } from "../../../domain/ids.ts";

export type Fields = Readonly<Record<string, unknown>>;
/** The usual values of records, by noun. */
export type Nouns = Readonly<Record<string, Fields>>;

export const BEGAN = "2026-11-20T12:00:00.000Z";
export const LATER = "2026-11-20T12:01:30.000Z";
export const ENDS = "2026-11-20T13:00:00.000Z";

/** Other names of a noun. */
const ALIASES: Readonly<Record<string, string>> = {
  user: "person",
  people: "person",
  member: "person",
  reviewer: "person",
  by: "person",
  startedsession: "session",
  firedetail: "fire",
  listedchangerequest: "changerequest",
  changerequestdetail: "changerequest",
  setspendlimit: "spendlimit",
  ownsubscription: "subscription",
  outboundwebhook: "webhook",
  newoutboundwebhook: "webhook",
  outbounddelivery: "delivery",
  triggersummary: "trigger",
  approver: "person",
  build: "environmentbuild",
};

/** What addresses call a noun otherwise. */
const SEGMENTS: Readonly<Record<string, string>> = {
  messages: "item",
  requests: "item",
  saves: "sandbox",
  "outbound-webhooks": "webhook",
};

const oneWord = (name: string): string =>
  name
    .replaceAll(/[_-]/g, "")
    .toLowerCase()
    .replace(/ies$/, "y")
    .replace(/(?<!s)s$/, "");

/** The noun of a record, by its schema's name or the field that has it. `created_by` is a person, `fires` are of the noun fire. */
export const nounFor = (identifier: string | undefined, field: string): string => {
  const word = oneWord(identifier ?? (field.endsWith("_by") ? "person" : field));
  return ALIASES[word] ?? word;
};

/** The id of the noun, the same in all examples. */
export const exampleId = (noun: string): string => {
  const bytes = createHash("sha256").update(noun).digest().subarray(0, 16);
  // They were not all made in one millisecond.
  return uuidV7(Date.parse(BEGAN) - bytes.readUInt16BE() * 1000, bytes);
};

export const ACCOUNT = exampleId("account");
export const USER = exampleId("person");
export const PROJECT = exampleId("project");
export const SESSION = exampleId("session");
export const FIRE = exampleId("fire");
export const COMMIT = "3f2c9a7d1e5b8064c2d7f9e0a1b3c4d5e6f70819";
export const BASE_COMMIT = "9b1d4e7f2a5c8063d1e6f8b9c0a2d3e4f5061728";
const MODEL = "anthropic/claude-sonnet-4-6";

/** By a field's name. It is used where its type fits. */
export const FIELDS: Fields = {
  // Ids and instants. Where the schema allows null, they stand for the usual case.
  project_id: PROJECT,
  session_id: SESSION,
  branch_name: SESSION,
  queue_id: FIRE,
  created_by: USER,
  updated_by: USER,
  user_id: USER,
  token_id: exampleId("token"),
  turn_id: exampleId("turn"),
  node_id: "node-1",
  person: {},
  at: LATER,
  since: BEGAN,
  created_at: BEGAN,
  updated_at: BEGAN,
  received_at: BEGAN,
  started_at: BEGAN,
  queued_at: BEGAN,
  asked_at: BEGAN,
  begun_at: BEGAN,
  synced_at: BEGAN,
  ticked_at: LATER,
  refreshed_at: LATER,
  ended_at: LATER,
  last_used_at: LATER,
  last_sign_in_at: LATER,
  last_run_at: LATER,
  expires_at: ENDS,
  // Git.
  base_ref: "main",
  branch: "main",
  default_branch: "main",
  base_commit: BASE_COMMIT,
  head_commit: COMMIT,
  pushed_commit: BASE_COMMIT,
  commit: COMMIT,
  manifest: { commit: BASE_COMMIT },
  sha: COMMIT,
  author_name: "agent",
  path: "src/checkout.ts",
  file: "src/checkout.ts",
  additions: 4,
  // Models.
  model: MODEL,
  default_model: MODEL,
  models: [MODEL],
  usage: {},
  price: { input: 3, cached: 0.3, output: 15 },
  context: 1_000_000,
  input_tokens: 184_220,
  output_tokens: 9_310,
  cached_tokens: 120_000,
  untold_calls: 0,
  estimated_tokens: 0,
  cost_usd: 1.52,
  usd: 31.4,
  tokens: 4_210_000,
  day: "2026-11-20",
  month: "2026-11",
  from: "2026-10-22",
  to: "2026-11-20",
  // Programs and callers.
  address: "192.0.2.7",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64)",
  agent: "default",
  agent_name: "default",
  provider: "anthropic",
  timezone: "Europe/Berlin",
  origin: "https://mcp.example.com",
  content_type: "application/json",
  upcoming: ["2026-11-21T01:30:00.000Z", "2026-11-22T01:30:00.000Z"],
  // Usually empty.
  errors: [],
  warnings: [],
  conflicts: [],
  left_out: [],
  left_out_total: 0,
  lacks: [],
  away: [],
  unseen: [],
  requests: [],
  queue: [],
};

/** The value of a parameter in an address, by the segment before it: `sessions` and `sid`. */
export const pathExample = (segment: string, parameter: string, nouns: Nouns): string => {
  const noun = SEGMENTS[segment] ?? nounFor(undefined, segment);
  if (/^(?:[a-z])?id$/.test(parameter)) return exampleId(noun);
  const value = nouns[noun]?.[parameter] ?? PARAMETERS[parameter];
  return typeof value === "string" || typeof value === "number" ? String(value) : parameter;
};

const PARAMETERS: Fields = { port: 3000, path: "", repository: `${PROJECT}.git` };

export const DIFF =
  "diff --git a/src/checkout.ts b/src/checkout.ts\n--- a/src/checkout.ts\n+++ b/src/checkout.ts\n@@ -1 +1,2 @@\n";
export const comparison = { commits: [{ subject: "Refuse an empty cart" }] };

const NIGHTLY = "0 30 2 * * *";
export const PROMPT = "The checkout fails with an empty cart. Find out why and fix it.";
const NO_USAGE = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
/** A session at its start. */
export const starting = {
  status: "provisioning",
  activity: "starting",
  base_commit: null,
  usage: NO_USAGE,
  running_at: null,
};

/** Of the core's records. A feature has its own. */
export const NOUNS: Nouns = {
  account: {
    name: "default",
    tier: "free",
    session_cap: 3,
    active_sessions: 1,
    queued_fires: 0,
    operator: true,
  },
  person: { name: "Mia", role: "member" },
  invitation: { name: "Mia", role: "member" },
  token: { name: "laptop", origin: "user", project_id: null, expires_at: null },
  browser: { current: true },
  identity: { provider: "github", issuer: "https://github.com", subject: "583231", name: "The Octocat" },
  devicelogin: { client: "Command line on laptop", user_agent: "platform" },
  auditevent: {
    actor: { kind: "person", id: USER, name: "Mia" },
    action: "secret.set",
    target: "OPENAI_API_KEY",
    user_agent: "curl/8.5.0",
    request_id: "8d3a2a5e-5f0b-4a43-9a55-0d3f1c1a7e10",
    changes: { new: true },
  },
  project: {
    name: "shop",
    status: "active",
    repository: { kind: "hosted" },
    default_role: "member",
    merge_role: "member",
    approvals_required: 0,
  },
  warning: {
    message:
      "The manifest requires the secret DATABASE_URL, but it has no value. Set it with `platform secrets set DATABASE_URL`.",
  },
  secret: { name: "OPENAI_API_KEY", masked: true, provider: "openai" },
  session: {
    status: "running",
    activity: "resting",
    name: "Fix the checkout",
    initial_prompt: PROMPT,
    pending_approvals: 0,
    turn: {},
    running_at: LATER,
  },
  sandbox: {
    provider: "local",
    environment: {},
    status: "active",
    boot_started_at: BEGAN,
    active_at: LATER,
    ended_at: null,
  },
  author: { kind: "agent", user_id: null, name: "default" },
  item: { model: null, agent: null, usage: null },
  trigger: {
    slug: "nightly",
    name: "Nightly clean-up",
    enabled: true,
    cron: NIGHTLY,
    timezone: "Europe/Berlin",
    next_fire_at: "2026-11-21T01:30:00.000Z",
    prompt: "Remove dead code. It is {{ cron.fired_at }}.",
  },
  fire: {
    trigger_slug: "nightly",
    status: "fired",
    scheduled_for: BEGAN,
    outcome: { state: "finished" },
    session_name: "Nightly clean-up",
  },
  webhookrefusal: {
    slug: "on-push",
    status: 401,
    code: "invalid_signature",
    reason: "signature_mismatched",
    delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    event: "push",
    declared_bytes: 7231,
    body_bytes: 7231,
  },
};
